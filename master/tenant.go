package master

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/announced"
	"github.com/brine-salt/brine/master/bootstrap"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// border restricts a job to a tenant's minions. The empty tenant means minions without one.
type border struct {
	tenant string
	listed bool // the target is a list of ids
}

// Tenant is one tenant's view of a master. It shows only this tenant's minions, jobs and events. A minion
// belongs to the tenant for which it was announced (EnsureMinion).
type Tenant struct {
	m    *Master
	name string
}

// Tenant returns a tenant's view. The name must not be empty or contain "/".
func (m *Master) Tenant(name string) (*Tenant, error) {
	if err := announced.CheckTenant(name); err != nil {
		return nil, err
	}
	if m.announced.Minions == nil {
		return nil, ErrNoMinionRecords
	}
	return &Tenant{m, name}, nil
}

// EnsureMinion is Master.EnsureMinion for this tenant. It returns ErrOtherTenant for an id whose key was
// accepted without an announcement.
func (t *Tenant) EnsureMinion(ctx context.Context, s MinionSpec) (bootstrap.Bootstrap, error) {
	if s.Tenant != "" && s.Tenant != t.name {
		return bootstrap.Bootstrap{}, fmt.Errorf("cannot announce minion: %w", ErrOtherTenant)
	}
	_, announced, err := t.m.tenants.Of(ctx, s.ID)
	if err != nil {
		return bootstrap.Bootstrap{}, fmt.Errorf("cannot announce minion: %w", err)
	}
	if !announced && protocol.ValidID(s.ID) == nil && t.m.accepted(s.ID) {
		return bootstrap.Bootstrap{}, fmt.Errorf(
			"cannot announce minion %q: it is here already, as nobody's: %w", s.ID, ErrOtherTenant)
	}
	s.Tenant = t.name
	return t.m.ensureMinion(ctx, s, true)
}

// RevokeMinion is Master.RevokeMinion. It returns store.ErrNotFound if the minion is not the tenant's.
func (t *Tenant) RevokeMinion(ctx context.Context, id string) error {
	tenant, _, err := t.m.tenants.Of(ctx, id)
	if err == nil && tenant != t.name {
		err = store.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("cannot revoke minion %.80q: %w", id, err)
	}
	return t.m.RevokeMinion(ctx, id)
}

// Announced returns the tenant's announced minions.
func (t *Tenant) Announced(ctx context.Context) ([]Announced, error) {
	return t.m.Announced(ctx, t.name)
}

// own returns the tenant's minions among ids.
func (t *Tenant) own(ctx context.Context, ids []string) ([]string, error) {
	of, err := t.m.tenants.All(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(ids, func(id string) bool { return of[id] != t.name }), nil
}

// Present returns the tenant's connected minions.
func (t *Tenant) Present(ctx context.Context) ([]string, error) { return t.own(ctx, t.m.Present()) }

// Match is Master.Match for the tenant's minions.
func (t *Tenant) Match(ctx context.Context, tgtType string, tgt any) ([]string, error) {
	ids, err := t.m.Match(tgtType, tgt)
	if err != nil {
		return nil, err
	}
	return t.own(ctx, ids)
}

// within restricts a job to the tenant.
func (t *Tenant) within(j Job) Job {
	j.border = &border{tenant: t.name}
	return j
}

// Publish is Master.Publish for the tenant's minions. Other ids count as unknown.
func (t *Tenant) Publish(ctx context.Context, j Job) (Published, error) {
	return t.m.Publish(ctx, t.within(j))
}

// Submit is Master.Submit with Publish's restriction.
func (t *Tenant) Submit(ctx context.Context, j Job) (*Run, error) {
	return t.m.Submit(ctx, t.within(j))
}

// Run is Master.Run with Publish's restriction.
func (t *Tenant) Run(ctx context.Context, j Job) (map[string]Result, error) {
	return t.m.Run(ctx, t.within(j))
}

// PlaceOrder is Master.PlaceOrder for the tenant. Each tenant has its own order ids.
func (t *Tenant) PlaceOrder(ctx context.Context, o Order) (Outcome, error) {
	if o.Tenant != "" && o.Tenant != t.name {
		return Outcome{}, errors.New("cannot place order: it belongs to another tenant")
	}
	if o.ID == "" {
		o.ID = rand.Text()
	}
	o.Tenant, o.ID = t.name, t.name+"/"+o.ID
	return t.outcome(t.m.PlaceOrder(ctx, o))
}

// RunOrder is PlaceOrder followed by AwaitOrder.
func (t *Tenant) RunOrder(ctx context.Context, o Order) (Outcome, error) {
	out, err := t.PlaceOrder(ctx, o)
	if err != nil {
		return out, err
	}
	return t.AwaitOrder(ctx, out.ID)
}

// AwaitOrder is Master.AwaitOrder for the tenant's orders.
func (t *Tenant) AwaitOrder(ctx context.Context, id string) (Outcome, error) {
	return t.outcome(own(ctx, t, id, t.m.AwaitOrder))
}

// Order is Master.Order for the tenant's orders.
func (t *Tenant) Order(ctx context.Context, id string) (Order, error) {
	o, err := own(ctx, t, id, t.m.Order)
	o.ID = strings.TrimPrefix(o.ID, t.name+"/")
	return o, err
}

// OrderOutcome is Master.OrderOutcome for the tenant's orders.
func (t *Tenant) OrderOutcome(ctx context.Context, id string) (Outcome, error) {
	return t.outcome(own(ctx, t, id, t.m.OrderOutcome))
}

// CancelOrder is Master.CancelOrder for the tenant's orders.
func (t *Tenant) CancelOrder(ctx context.Context, id string) (Outcome, error) {
	return t.outcome(own(ctx, t, id, t.m.CancelOrder))
}

// own calls f for an order if it is the tenant's. The check is needed because the program may have placed an
// order without a tenant under the same id.
func own[T any](ctx context.Context, t *Tenant, id string,
	f func(context.Context, string) (T, error)) (out T, err error) {
	id = t.name + "/" + id
	if o, err := t.m.Order(ctx, id); err != nil {
		return out, err
	} else if o.Tenant != t.name {
		return out, store.ErrNotFound
	}
	return f(ctx, id)
}

func (t *Tenant) outcome(out Outcome, err error) (Outcome, error) {
	out.ID = strings.TrimPrefix(out.ID, t.name+"/")
	return out, err
}

// Follow is Master.Follow for events about the tenant's minions. An event about several minions is included
// only if all are the tenant's.
func (t *Tenant) Follow(ctx context.Context, cursor string,
	tags ...string) iter.Seq[events.Logged] {
	return t.FollowMarked(ctx, 0, cursor, tags...)
}

// FollowMarked is Master.FollowMarked for the same events.
func (t *Tenant) FollowMarked(ctx context.Context, every time.Duration, cursor string,
	tags ...string) iter.Seq[events.Logged] {
	return func(yield func(events.Logged) bool) {
		for e := range t.m.FollowMarked(ctx, every, cursor, tags...) {
			// Without a tag it is a gap or a mark.
			if (e.Tag == "" || t.concerns(ctx, e.Data)) && !yield(e) {
				return
			}
		}
	}
}

// concerns reports whether an event is about the tenant's minions only. An event that names no minion is not.
func (t *Tenant) concerns(ctx context.Context, data map[string]any) bool {
	of, err := t.m.tenants.All(ctx)
	if err != nil {
		return false
	}
	if id, ok := payload.Text(data["id"]); ok {
		return of[id] == t.name
	}
	list, _ := payload.List(data["minions"])
	return len(list) > 0 && !slices.ContainsFunc(list, func(x any) bool {
		id, ok := payload.Text(x)
		return !ok || of[id] != t.name
	})
}

// bounded applies a publication's border: the target becomes the list of the minions within it.
func (m *Master) bounded(ctx context.Context, p publication, tgtType string, tgt any,
	ids, missing []string) (string, any, []string, []string, error) {
	b := *p.border
	b.listed = tgtType == target.TypeList
	ids, missing, bounded, err := m.tenants.Within(ctx, b.tenant, b.listed, ids, missing)
	if err != nil || !bounded {
		return tgtType, tgt, ids, missing, err
	}
	return target.TypeList, nested.Anys(ids), ids, missing, nil
}
