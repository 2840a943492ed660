package master

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/orders"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/targets"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// DefaultTTL is the default of OrderOptions.TTL.
const DefaultTTL = 24 * time.Hour

// DefaultMaxUnfinished is the default of OrderOptions.MaxUnfinished.
const DefaultMaxUnfinished = 100_000

var (
	// ErrBusy is returned by PlaceOrder and RunOrder while OrderOptions.MaxUnfinished deliveries are
	// unfinished, or as many of the tenant as it may have. Place the order again later.
	ErrBusy = orders.ErrBusy
	// ErrNoOrders is returned by all methods for orders if Options.Store cannot keep orders.
	ErrNoOrders = errors.New("the store cannot keep orders")
	// ErrOrderDiffers means that a different order was placed before under the same id.
	ErrOrderDiffers = errors.New("another order has this id")
	// ErrDraining is returned by PlaceOrder after Drain was called.
	ErrDraining = errors.New("master is being drained")
)

// Order is a job for minions that need not be connected. It waits in the store for each of them, and is sent
// when the minion is known to receive publishes. Each minion runs it once, or never if its TTL or deadline ends
// first. Every field but Job may be zero.
type Order struct {
	// ID is the caller's id for the order, at most store.MaxOrderID bytes; empty means the job id. Placing an
	// order again under the same id returns the first one, so a retry after a crash is safe. The first one's
	// TTL and Deadline stay, because a retry has less time left.
	ID string
	// Job is what to run, and where. A list target may name minions that are still unknown. Other targets match
	// the minions that are accepted, or announced with EnsureMinion, at this moment. NoCache, Timeout and
	// GatherTimeout do not apply to orders.
	Job
	// Tenant, if set, restricts the order to minions announced for this tenant.
	Tenant string
	// Owner is who placed the order, by the program's own naming, for programs that show orders only to some
	// users. Another owner cannot place it again.
	Owner string
	// TTL is how long the order may wait for a minion; 0 means OrderOptions.TTL, below 0 for ever.
	TTL time.Duration
	// Deadline is when the minions must have returned. A job that still runs then is stopped. The zero time
	// means never.
	Deadline time.Time
	// Priority orders the pending orders of one minion: higher first, equal ones in the order of placement.
	Priority int
	// Parallel lets the order run beside others on a minion. Otherwise a minion gets one order at a time.
	Parallel bool
	// Files are files of the order, content by name. Only its minions can read them, as
	// salt://_order/<ID>/<name> in the environment "base", until the order has ended. A file <name>.sls is the
	// state _order.<ID>.<name>. An order with files needs an ID of 1 to 128 letters, digits, "_" and "-". Names
	// have no directories (see content.CheckName).
	Files map[string]string
	// FileStream, if set, is called once to add further files, which may be larger than memory; add reads
	// content to its end. It is called after all other checks of the order. PlaceOrder returns its error.
	FileStream func(add func(name string, content io.Reader) error) error `json:"-"`
	// Pillar is merged over the pillar of the order's minions while the order runs on them. Targets and other
	// minions do not see it.
	Pillar map[string]any
	// Secret seals the arguments wherever the master stores them, and replaces them by content.Sealed in
	// events, in the job cache and for users. Files and pillar are always sealed. All of it is deleted when the
	// order has ended. Metadata, target, function and the minions' returns are not secret.
	Secret bool
	// FileNames are the names of the files. Master.Order and Master.Orders set it.
	FileNames []string
	// Idempotent declares that running the order twice does no harm. If it cannot be determined whether a
	// minion received it, it is sent again; otherwise it counts as Lost.
	Idempotent bool
}

// Outcome is the state of an order.
type Outcome struct {
	ID, JID string
	Created time.Time
	// Done reports whether all results are final.
	Done bool
	// Results are the results by minion id; see Status.
	Results map[string]Result
}

// Success reports whether every minion returned successfully.
func (o Outcome) Success() bool {
	for _, r := range o.Results {
		if r.Status != Returned || !r.Success {
			return false
		}
	}
	return o.Done
}

// PlaceOrder stores an order for delivery and does not wait for results. If an order was placed under the same
// id before, it returns that one's outcome, or ErrOrderDiffers if the two differ. It returns a *NoMinionsError
// if the target matches no minion, and ErrBusy if there are too many unfinished orders.
func (m *Master) PlaceOrder(ctx context.Context, o Order) (Outcome, error) {
	if m.orders == nil {
		return Outcome{}, ErrNoOrders
	}
	if m.orders.IsDraining() {
		return Outcome{}, ErrDraining
	}
	out, err := m.placeOrder(ctx, o)
	if err != nil {
		return Outcome{}, fmt.Errorf("cannot place order: %w", err)
	}
	return out, nil
}

// RunOrder is PlaceOrder followed by AwaitOrder.
func (m *Master) RunOrder(ctx context.Context, o Order) (Outcome, error) {
	out, err := m.PlaceOrder(ctx, o)
	if err != nil {
		return out, err
	}
	return m.AwaitOrder(ctx, out.ID)
}

func (m *Master) placeOrder(ctx context.Context, o Order) (Outcome, error) {
	if len(o.ID) > store.MaxOrderID {
		return Outcome{}, fmt.Errorf("its id has %d bytes, more than %d",
			len(o.ID), store.MaxOrderID)
	}
	if o.JID != "" && !protocol.ValidJID(o.JID) {
		return Outcome{}, fmt.Errorf("%.40q is not a valid job id", o.JID)
	}
	if o.NoCache {
		return Outcome{}, errors.New("NoCache: an order is kept in the store")
	}
	spec, err := o.spec()
	if err == nil {
		err = m.checkContent(o)
	}
	if err != nil {
		return Outcome{}, err
	}
	if m.Denied(o.User, fields.Functions(spec["fun"])...) {
		return Outcome{}, ErrDenied
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	if o.ID != "" {
		// Look the order up before the target is matched, which may match other minions by now.
		if old, err := m.orders.Queue().Order(ctx, o.ID); err == nil {
			if err := m.requests.Files.Orders.Compare(ctx, o.cargo(), spec); err != nil {
				return Outcome{}, err
			}
			return m.castAgain(ctx, old, o, spec)
		} else if !errors.Is(err, store.ErrNotFound) {
			return Outcome{}, err
		}
	}
	ids, err := m.meant(ctx, o)
	if err != nil {
		return Outcome{}, err
	}
	labels, err := content.Labels(o.Metadata)
	if err != nil {
		return Outcome{}, err
	}
	list := m.deliveries(ctx, o, ids, now)
	open := 0
	for _, d := range list {
		if d.State.Open() {
			open++
		}
	}
	if err := m.orders.Reserve(ctx, o.Tenant, open); err != nil {
		return Outcome{}, err
	}
	content, drop, err := m.storeContent(ctx, o, spec, open > 0)
	if err != nil {
		return Outcome{}, err
	}
	out, owned, err := m.saveNew(ctx, o, store.Order{Tenant: o.Tenant, Spec: spec, Created: now,
		Content: content, Labels: labels}, list, ids)
	if !owned {
		drop()
	}
	return out, err
}

// saveNew stores an order with its deliveries and announces it. ids are its minions. owned reports whether the
// order was stored, so that its content belongs to it.
func (m *Master) saveNew(ctx context.Context, o Order, rec store.Order, list []store.Delivery,
	ids []string) (out Outcome, owned bool, err error) {
	spec := rec.Spec
	rec.Spec = maps.Clone(spec)
	delete(rec.Spec, "digests") // only needed to compare orders
	for range 10 {
		rec.ID, rec.JID = o.ID, o.JID
		if rec.JID == "" {
			rec.JID = string(m.clock.Next(rec.Created))
		}
		if rec.ID == "" {
			rec.ID = rec.JID
		}
		for i := range list {
			list[i].JID = rec.JID
		}
		err = m.peers.SaveOrder(ctx, rec, list, ids)
		if err == nil {
			out, err = m.placed(ctx, rec, ids)
			return out, true, err
		}
		if !errors.Is(err, store.ErrExists) {
			return Outcome{}, false, err
		}
		if old, err := m.orders.Queue().Order(ctx, rec.ID); err == nil && o.ID != "" {
			out, err = m.castAgain(ctx, old, o, spec)
			return out, false, err
		}
		if o.JID != "" {
			break
		}
	}
	return Outcome{}, false, err
}

// castAgain returns the outcome of an order that exists already, or ErrOrderDiffers.
func (m *Master) castAgain(ctx context.Context, old store.Order, o Order,
	spec map[string]any) (Outcome, error) {
	if !content.SameDigest(old.Spec, spec) || old.Tenant != o.Tenant ||
		o.JID != "" && o.JID != old.JID {
		return Outcome{}, fmt.Errorf("%q: %w", o.ID, ErrOrderDiffers)
	}
	out, err := m.outcome(ctx, old)
	if err == nil && !out.Done {
		// The master that stored it may have died before it announced the order.
		out, err = m.placed(ctx, old, slices.Sorted(maps.Keys(out.Results)))
	}
	return out, err
}

// placed announces a stored order and returns its outcome.
func (m *Master) placed(ctx context.Context, rec store.Order, ids []string) (Outcome, error) {
	load := m.orders.JobMap(rec, ids)
	tgt, tgtType, user := rec.Spec["tgt"], rec.Spec["tgt_type"], fields.Text(load, "user")
	err := m.store.SaveJob(ctx, store.Job{JID: rec.JID, Fun: load["fun"],
		Arg: fields.List(load["arg"]), Tgt: tgt, TgtType: fields.Text(rec.Spec, "tgt_type"),
		User: user, Minions: ids, Load: load, Created: rec.Created})
	if err == nil {
		m.events.Publish("salt/job/"+rec.JID+"/new", map[string]any{"jid": rec.JID,
			"tgt_type": tgtType, "tgt": tgt, "user": user, "fun": load["fun"], "arg": load["arg"],
			"minions": nested.Anys(ids), "missing": []any{}})
	} else if !errors.Is(err, store.ErrExists) {
		return Outcome{}, err
	}
	m.orders.Expect(ids...)
	return m.outcome(ctx, rec)
}

// spec returns the stored form of an order: the fields of the published job, and a digest for comparison. The
// digest covers what is to be done, but not TTL and deadline.
func (o Order) spec() (map[string]any, error) {
	p, err := o.publication()
	if err != nil {
		return nil, err
	}
	tgt := p.tgt
	if ids, ok := tgt.([]string); ok {
		tgt = nested.Anys(ids)
	}
	arg := p.arg
	if arg == nil {
		arg = []any{}
	}
	spec := map[string]any{"fun": p.fun, "arg": arg, "tgt": tgt,
		"tgt_type": targets.KindOf(o.TgtType, tgt), "delimiter": p.delimiter, "ret": p.ret,
		"user": p.user, "extra": p.extra, "idempotent": o.Idempotent, "parallel": o.Parallel,
		"priority": o.Priority}
	if o.Owner != "" {
		spec["owner"] = o.Owner
	}
	b, err := payload.Marshal(spec)
	if err != nil {
		return nil, err
	}
	v, err := payload.Unmarshal(b)
	if err != nil {
		return nil, err
	}
	spec, _ = payload.Map(v)
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", spec)) // %#v prints maps sorted by key
	spec["digest"] = hex.EncodeToString(sum[:])
	if v, err = payload.UnmarshalOrdered(b, payload.Limits{}); err != nil {
		return nil, err
	}
	inOrder, _ := payload.Map(v)
	spec["arg"] = inOrder["arg"] // key order does not distinguish orders
	return spec, nil
}

// deliveries returns the deliveries of a new order. Those that a policy refuses are final at once.
func (m *Master) deliveries(ctx context.Context, o Order, ids []string,
	now time.Time) []store.Delivery {
	ttl := o.TTL
	setDefault(&ttl, m.opts.Orders.TTL)
	var out []store.Delivery
	for _, id := range ids {
		d := store.Delivery{Minion: id, State: store.Waiting, Priority: o.Priority,
			Parallel: o.Parallel, Deadline: o.Deadline.UTC().Truncate(time.Microsecond), Version: 1}
		if o.Deadline.IsZero() {
			d.Deadline = time.Time{}
		}
		if ttl > 0 {
			d.Expires = now.Add(ttl)
		}
		d.Due = orders.Overdue(d)
		m.orders.LookBy(d.Due)
		if err := m.authorized(ctx, o, id); err != nil {
			d.State, d.Reason, d.Due, d.Ended = store.Refused, err.Error(), time.Time{}, now
		}
		out = append(out, d)
	}
	return out
}

// authorized checks the tenant and OrderOptions.Authorize.
func (m *Master) authorized(ctx context.Context, o Order, id string) error {
	if o.Tenant != "" {
		if tenant, _, err := m.tenants.Of(ctx, id); err != nil || tenant != o.Tenant {
			return errors.New("the minion does not belong to this tenant")
		}
	}
	if m.opts.Orders.Authorize == nil {
		return nil
	}
	return m.opts.Orders.Authorize(ctx, o, id)
}

// meant returns the minions that an order targets.
func (m *Master) meant(ctx context.Context, o Order) ([]string, error) {
	tgtType, tgt, err := m.targets.OnWire(o.TgtType, o.Tgt)
	if err != nil {
		return nil, err
	}
	if tgtType == target.TypeList {
		known, others, err := targets.Listed(tgt, nil)
		ids := append(known, others...)
		for _, id := range ids {
			if err := protocol.ValidID(id); err != nil {
				return nil, err
			}
		}
		if err == nil && len(ids) == 0 {
			err = &NoMinionsError{Tgt: o.Tgt}
		}
		slices.Sort(ids)
		return ids, err
	}
	ids, _, err := m.targets.Expected(tgtType, tgt, o.Delimiter)
	if err != nil {
		return nil, err
	}
	absent, err := m.announced.Absent(ctx, o.Tenant)
	if err != nil {
		return nil, err
	}
	e, err := target.Compile(tgtType, tgt, o.Delimiter, m.opts.Jobs.Nodegroups)
	if err != nil {
		return nil, err
	}
	for _, a := range absent {
		ok, err := e.Match(target.Subject{ID: a.ID, Nodegroups: m.opts.Jobs.Nodegroups,
			Grains: func() map[string]any { return a.Grains },
			Pillar: func() map[string]any { return nil }})
		if err != nil {
			return nil, err
		}
		if ok {
			ids = append(ids, a.ID)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if o.Tenant != "" {
		// Patterns match only the tenant's own minions; others are not reported as refused.
		ids = slices.DeleteFunc(ids, func(id string) bool {
			tenant, _, err := m.tenants.Of(ctx, id)
			return err != nil || tenant != o.Tenant
		})
	}
	if len(ids) == 0 {
		return nil, &NoMinionsError{Tgt: o.Tgt}
	}
	return ids, nil
}

// Order returns an order as it was placed: its id, owner and job. Arguments of a secret order are replaced by
// content.Sealed. It returns store.ErrNotFound if the id is unknown.
func (m *Master) Order(ctx context.Context, id string) (Order, error) {
	if m.orders == nil {
		return Order{}, ErrNoOrders
	}
	rec, err := m.orders.Queue().Order(ctx, id)
	if err != nil {
		return Order{}, err
	}
	return orderOf(rec), nil
}

// orderOf returns the form of an order that is shown to users.
func orderOf(rec store.Order) Order {
	o := Order{ID: rec.ID, Tenant: rec.Tenant, Owner: fields.Text(rec.Spec, "owner"),
		Secret: rec.Spec["secret"] == true, FileNames: fields.Texts(rec.Spec["files"])}
	if extra, ok := payload.Map(rec.Spec["extra"]); ok {
		o.Metadata = extra["metadata"]
	}
	o.JID, o.User, o.Tgt, o.TgtType = rec.JID, fields.Text(rec.Spec, "user"), rec.Spec["tgt"],
		fields.Text(rec.Spec, "tgt_type")
	args := fields.List(rec.Spec["arg"])
	funs, compound := payload.List(rec.Spec["fun"])
	if !compound {
		c := callOnWire(rec.Spec["fun"], args)
		o.Fun, o.Args, o.Kwargs = c.Fun, c.Args, c.Kwargs
		return o
	}
	for i, fun := range funs {
		var arg []any
		if i < len(args) {
			arg = fields.List(args[i])
		}
		o.Steps = append(o.Steps, callOnWire(fun, arg))
	}
	return o
}

// OrderOutcome returns the state of an order. It returns store.ErrNotFound if the id is unknown.
func (m *Master) OrderOutcome(ctx context.Context, id string) (Outcome, error) {
	if m.orders == nil {
		return Outcome{}, ErrNoOrders
	}
	rec, err := m.orders.Queue().Order(ctx, id)
	if err != nil {
		return Outcome{}, err
	}
	return m.outcome(ctx, rec)
}

// AwaitOrder waits until an order is done. If ctx ends first, it returns the outcome so far and ctx's error.
func (m *Master) AwaitOrder(ctx context.Context, id string) (Outcome, error) {
	if m.orders == nil {
		return Outcome{}, ErrNoOrders
	}
	rec, err := m.orders.Queue().Order(ctx, id)
	if err != nil {
		return Outcome{}, err
	}
	// Results that peer masters receive are not announced here, so the store is polled.
	poll := time.NewTicker(orders.PollInterval)
	defer poll.Stop()
	for {
		changed := m.orders.Watch(rec.JID)
		out, err := m.outcome(ctx, rec)
		if err != nil || out.Done {
			return out, err
		}
		select {
		case <-changed:
		case <-poll.C:
		case <-m.life.Ended():
			return out, ErrNotServing
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
}

func (m *Master) outcome(ctx context.Context, rec store.Order) (Outcome, error) {
	out := Outcome{ID: rec.ID, JID: rec.JID, Created: rec.Created, Results: make(map[string]Result)}
	ds, err := m.orders.Queue().Deliveries(ctx,
		store.DeliveryFilter{JID: rec.JID, Limit: orders.MaxDeliveries})
	if err != nil {
		return out, err
	}
	loads := make(map[string]map[string]any)
	answered := func(d store.Delivery) bool {
		return d.State == store.Returned || d.State == store.Refused
	}
	if slices.ContainsFunc(ds, answered) {
		rets, err := m.store.Returns(ctx, rec.JID)
		if err != nil {
			return out, err
		}
		for _, r := range rets {
			loads[r.ID] = r.Load
		}
	}
	out.Done = true
	for _, d := range ds {
		r := Result{ID: d.Minion}
		if load := loads[d.Minion]; load != nil && answered(d) {
			r = resultOf(d.Minion, load)
		}
		r.Status, r.StillRunning, r.Reason = statusOf(d.State), d.Running, d.Reason
		out.Results[d.Minion] = r
		out.Done = out.Done && !d.State.Open()
	}
	return out, nil
}

// statusOf returns the Status for a delivery's state.
func statusOf(s store.State) Status {
	switch s {
	case store.Waiting:
		return Queued
	case store.Sent:
		return Underway
	case store.Returned:
		return Returned
	case store.Undeliverable:
		return Undeliverable
	case store.TimedOut:
		return TimedOut
	case store.Cancelled:
		return Cancelled
	case store.Refused:
		return Refused
	}
	return Lost
}

// CancelOrder ends an order. Pending deliveries are never sent, and minions that run it are told to stop. It
// returns when they have answered, or after GatherTimeout. Final results do not change.
func (m *Master) CancelOrder(ctx context.Context, id string) (Outcome, error) {
	if m.orders == nil {
		return Outcome{}, ErrNoOrders
	}
	rec, err := m.orders.Queue().Order(ctx, id)
	if err != nil {
		return Outcome{}, err
	}
	if err := m.orders.Cancel(ctx, rec); err != nil {
		return Outcome{}, fmt.Errorf("cannot cancel order %q: %w", id, err)
	}
	return m.outcome(ctx, rec)
}

// accepted reports whether a minion has an accepted key.
func (m *Master) accepted(id string) bool { return m.keys.State(id) == keys.Accepted }
