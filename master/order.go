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

// DefaultTTL is how long an order waits for a minion where nothing else is said.
const DefaultTTL = 24 * time.Hour

// DefaultMaxUnfinished is OrderOptions.MaxUnfinished where it is 0.
const DefaultMaxUnfinished = 100_000

var (
	// ErrBusy is returned by PlaceOrder and RunOrder when OrderOptions.MaxUnfinished deliveries are open, or
	// MaxUnfinishedTenant of the order's tenant: place the order again a little later.
	ErrBusy = orders.ErrBusy
	// ErrNoOrders is returned by everything about orders when Options.Store cannot keep any.
	ErrNoOrders = errors.New("the store keeps no orders")
	// ErrOrderDiffers says that an order with the same id was placed before and asks for something else.
	ErrOrderDiffers = errors.New("another order has this id")
	// ErrDraining is returned by PlaceOrder after Drain was called.
	ErrDraining = errors.New("master is being drained")
)

// Order is a job that does not need its minions to be there: it waits for each of them, in the store, and is sent
// when the minion is known to listen. Each minion runs it once or, when its time to live or deadline ends before
// that, never. The zero value of every field but Job is usable.
type Order struct {
	// ID is the caller's own name for the order, at most store.MaxOrderID bytes. Placing an order again under the
	// same id gives the first one, which makes a retry after a crash safe; its TTL and Deadline stay, whatever the
	// second says of them, for less time is left then. Empty means the job id.
	ID string
	// Job is what to run and where. A list target may name minions that nobody has heard of yet; other targets mean
	// the minions that are accepted, or announced with EnsureMinion, at this moment. NoCache, Timeout and
	// GatherTimeout have no meaning here.
	Job
	// Tenant, when set, bounds the order to minions that were announced for this tenant.
	Tenant string
	// Owner is who placed the order, in words of the program that shows orders only to some. Nobody else can place it
	// again.
	Owner string
	// TTL is how long it may wait for a minion; 0 means OrderOptions.TTL, below 0 for ever.
	TTL time.Duration
	// Deadline is when the minions must have returned; a job that still runs then is told to end. The zero time is
	// never.
	Deadline time.Time
	// Priority orders what waits for one minion: the larger goes first, equal ones in the order in which they were
	// placed.
	Priority int
	// Parallel lets the order run beside others on a minion. Without it a minion gets one at a time.
	Parallel bool
	// Files are what the order brings along, by name: its minions, and no others, read them as
	// salt://_order/<ID>/<name> in the environment "base" until the order has ended. A file <name>.sls is the state
	// _order.<ID>.<name>. An order with files needs an ID of 1 to 128 letters, digits, "_" and "-"; names have no
	// directories (see content.CheckName).
	Files map[string]string
	// FileStream, when set, is called once and adds further files, which may be larger than memory: add reads content
	// to its end. It is called after everything else about the order was checked. Its error is that of PlaceOrder.
	FileStream func(add func(name string, content io.Reader) error) error `json:"-"`
	// Pillar is merged over the pillar that the master answers to the order's minions, while the order runs on them.
	// Targets do not see it, and other minions do not.
	Pillar map[string]any
	// Secret seals the arguments wherever the master stores them, and shows content.Sealed in their place in events,
	// in the job cache and to users. Files and pillar are always sealed. All of it is dropped when the order has
	// ended. Metadata, target and function are not secret, nor is what the minions return.
	Secret bool
	// FileNames are set by Master.Order and Master.Orders: the names of the files.
	FileNames []string
	// Idempotent says that running it twice does no harm. It is then sent again where nobody can tell whether a
	// minion got it; otherwise it counts as Lost.
	Idempotent bool
}

// Outcome is what has become of an order so far.
type Outcome struct {
	ID, JID string
	Created time.Time
	// Done says that no result changes any more.
	Done bool
	// Results are by minion id. See Status for the kinds of ends that there are.
	Results map[string]Result
}

// Success reports whether every minion returned, and successfully.
func (o Outcome) Success() bool {
	for _, r := range o.Results {
		if r.Status != Returned || !r.Success {
			return false
		}
	}
	return o.Done
}

// PlaceOrder places an order and does not wait. When an order with its id was placed before, that one is reported, or
// ErrOrderDiffers when it asks for something else. The error is a *NoMinionsError when the target means nobody, and
// ErrBusy when the master takes no new orders for the moment.
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

// RunOrder places an order and waits for its end, as PlaceOrder and AwaitOrder do.
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
		return Outcome{}, fmt.Errorf("job id %.40q is none", o.JID)
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
		// Before the target is looked at, which may mean somebody else by now.
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

// saveNew stores an order with its deliveries, to some minions, and announces it. owned says that the store has it,
// and what it carries.
func (m *Master) saveNew(ctx context.Context, o Order, rec store.Order, list []store.Delivery,
	ids []string) (out Outcome, owned bool, err error) {
	spec := rec.Spec
	rec.Spec = maps.Clone(spec)
	delete(rec.Spec, "digests") // for comparing only
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

// castAgain answers for an order that is there already.
func (m *Master) castAgain(ctx context.Context, old store.Order, o Order,
	spec map[string]any) (Outcome, error) {
	if !content.SameDigest(old.Spec, spec) || old.Tenant != o.Tenant ||
		o.JID != "" && o.JID != old.JID {
		return Outcome{}, fmt.Errorf("%q: %w", o.ID, ErrOrderDiffers)
	}
	out, err := m.outcome(ctx, old)
	if err == nil && !out.Done {
		// The master that took it may have died before it told anybody.
		out, err = m.placed(ctx, old, slices.Sorted(maps.Keys(out.Results)))
	}
	return out, err
}

// placed announces an order that is in the store.
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

// spec is what the store keeps of an order: the fields of the published job, and a digest to know it again, of what
// is to be done but not of how long that may take.
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
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", spec)) // maps are printed sorted
	spec["digest"] = hex.EncodeToString(sum[:])
	if v, err = payload.UnmarshalOrdered(b, payload.Limits{}); err != nil {
		return nil, err
	}
	inOrder, _ := payload.Map(v)
	spec["arg"] = inOrder["arg"] // the order of keys is no difference between orders
	return spec, nil
}

// deliveries makes the deliveries of a new order. Those that a policy refuses are final from the beginning.
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

// authorized asks the program's policy and the tenant's border.
func (m *Master) authorized(ctx context.Context, o Order, id string) error {
	if o.Tenant != "" {
		if tenant, _, err := m.tenants.Of(ctx, id); err != nil || tenant != o.Tenant {
			return errors.New("the minion is not of this tenant")
		}
	}
	if m.opts.Orders.Authorize == nil {
		return nil
	}
	return m.opts.Orders.Authorize(ctx, o, id)
}

// meant lists the minions that an order is for.
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
		// A pattern means the tenant's own minions; others are not refused but not meant.
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

// Order reports what an order asks for: its id, owner and job, the functions with their arguments and the target as
// they were placed. In place of the arguments of a secret one there is content.Sealed. store.ErrNotFound when there
// is none of this id.
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

// orderOf is an order as it is shown.
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

// OrderOutcome reports what has become of an order so far. store.ErrNotFound when there is none of this id.
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

// AwaitOrder waits until an order is done. When ctx ends first, the outcome so far is returned with its error.
func (m *Master) AwaitOrder(ctx context.Context, id string) (Outcome, error) {
	if m.orders == nil {
		return Outcome{}, ErrNoOrders
	}
	rec, err := m.orders.Queue().Order(ctx, id)
	if err != nil {
		return Outcome{}, err
	}
	// Other masters of the same store tell nobody here.
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

// statusOf is the status of a delivery.
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

// CancelOrder ends an order: what waits is never sent, and minions that run it are told to end it. It returns when
// they have answered, or have not in GatherTimeout. What has ended already stays as it is.
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
