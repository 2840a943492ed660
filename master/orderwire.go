package master

import (
	"context"
	"errors"
	"slices"

	"github.com/brine-salt/brine/master/cluster"
	"github.com/brine-salt/brine/master/internal/probe"
	"github.com/brine-salt/brine/master/orders"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/subscribers"
	"github.com/brine-salt/brine/master/targets"
	"github.com/brine-salt/brine/protocol/target"
)

// orderWire implements orders.Wire.
type orderWire struct{ m *Master }

var _ orders.Wire = orderWire{}

// openOrders prepares the delivery of orders, if the store can keep them.
func (m *Master) openOrders() error {
	q, ok := store.QueueOf(m.store)
	if !ok {
		return nil
	}
	if err := m.openCarried(q); err != nil {
		return err
	}
	o := m.opts
	m.orders = orders.New(orders.Options{Wire: orderWire{m}, Queue: q, Store: m.store,
		Events: m.events, Log: m.log, Content: m.requests.Files.Orders,
		ID: o.ID, Name: m.peers.Name(), Timeout: o.Jobs.Timeout,
		GatherTimeout: o.Jobs.GatherTimeout, LostAfter: o.Orders.LostAfter,
		MaxUnfinished: o.Orders.MaxUnfinished, MaxUnfinishedTenant: o.Orders.MaxUnfinishedTenant})
	return nil
}

// Send implements orders.Wire.
func (w orderWire) Send(ctx context.Context, list ...orders.Parcel) error {
	var errs []error
	var others []cluster.Publication
	for _, p := range list {
		to := subscribers.Audience{IDs: p.IDs, Topics: p.IDs}
		if p.Here {
			errs = append(errs, w.m.network.Sender.Send(p.Job, to))
			continue
		}
		others = append(others, w.m.publicationFor(p.Via, p.Job, to))
	}
	if len(others) > 0 {
		errs = append(errs, w.m.peers.Publish(ctx, others...))
	}
	return errors.Join(errs...)
}

// Probe implements orders.Wire.
func (w orderWire) Probe(ctx context.Context, ids []string,
	local bool) (unaccepted []string, err error) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		if w.m.accepted(id) {
			return false
		}
		unaccepted = append(unaccepted, id)
		return true
	})
	if len(ids) == 0 {
		return unaccepted, nil
	}
	_, err = w.m.publish(ctx, publication{fun: "test.ping", tgt: ids, tgtType: target.TypeList,
		internal: true, here: local, extra: probe.Metadata(probe.Listening, local)})
	if targets.IsNoMinions(err) || errors.Is(err, ErrNotServing) {
		err = nil
	}
	return unaccepted, err
}

// Ask implements orders.Wire.
func (w orderWire) Ask(ctx context.Context, q orders.Question) map[string]orders.Answer {
	var runs []*Run
	for i, ids := range [][]string{q.Here, q.Others} {
		if len(ids) == 0 {
			continue
		}
		ids = slices.Compact(slices.Sorted(slices.Values(ids)))
		run := w.m.newRun(w.m.opts.Jobs.GatherTimeout, w.m.opts.Jobs.GatherTimeout)
		run.internal = true
		_, err := w.m.publish(ctx, publication{fun: q.Fun, arg: q.Arg, tgt: ids,
			tgtType: target.TypeList, internal: true, here: i == 0,
			wait: run, extra: probe.Metadata(probe.Status, i == 0)})
		if err != nil {
			if !targets.IsNoMinions(err) && ctx.Err() == nil {
				w.m.log.Error("Cannot query the status of an order", "err", err)
			}
			continue
		}
		defer run.Close()
		runs = append(runs, run)
	}
	out := make(map[string]orders.Answer)
	for _, run := range runs {
		for _, res := range run.gather(ctx) {
			out[res.ID] = orders.Answer{Value: res.Return, Via: probe.Sender(res.Load)}
		}
	}
	return out
}

// Where implements orders.Wire.
func (w orderWire) Where(id string) orders.Place {
	switch {
	case clusterHost(w).Here(id):
		return orders.Here
	case w.m.network.Presence.Elsewhere(id):
		return orders.Elsewhere
	}
	return orders.Unknown
}

// KnowsPeer implements orders.Wire.
func (w orderWire) KnowsPeer(name string) bool { return w.m.network.Presence.Knows(name) }

// Adopt implements orders.Wire.
func (w orderWire) Adopt(ctx context.Context, jid, id string, load map[string]any) bool {
	return w.m.requests.Returns.Adopt(ctx, jid, id, load)
}
