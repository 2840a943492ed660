package orders

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/store"
)

// maxOutcomes is how many returns end their deliveries together.
const maxOutcomes = 500

// outcomes are returns whose deliveries are to end. Those that come while others are being stored are stored together:
// thousands of minions return the same job within a second, and their deliveries change in the same way.
type outcomes struct {
	mu      sync.Mutex // guards the fields below
	waiting []*outcome
	busy    bool // one of those that wait stores what waits
}

// outcome is the return of a minion.
type outcome struct {
	jid, id string
	load    map[string]any
	// turn is closed when the outcome is stored, and gets a value before if it is to store what waits.
	turn chan struct{}
}

// enter adds an outcome. It returns those to be stored by the caller, itself among them, or nil once another one has
// stored it.
func (o *outcomes) enter(x *outcome) []*outcome {
	o.mu.Lock()
	o.waiting = append(o.waiting, x)
	lead := !o.busy
	o.busy = true
	o.mu.Unlock()
	if !lead {
		if _, lead = <-x.turn; !lead {
			return nil
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(len(o.waiting), maxOutcomes)
	list := o.waiting[:n:n]
	o.waiting = o.waiting[n:]
	return list
}

// leave ends the work on a list, and has the next one begin.
func (o *outcomes) leave(list []*outcome) {
	for _, x := range list {
		close(x.turn)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy = len(o.waiting) > 0; o.busy {
		o.waiting[0].turn <- struct{}{}
	}
}

// Returned ends the delivery that a return belongs to, if there is one. It returns when that is stored. The caller may
// store outcomes of others too: ctx must last as long as the master serves, not only as long as one connection.
func (d *Deliverer) Returned(ctx context.Context, jid, id string, load map[string]any) {
	list := d.outcomes.enter(&outcome{jid, id, load, make(chan struct{}, 1)})
	if list == nil {
		return
	}
	defer d.outcomes.leave(list)
	byJob := make(map[string][]*outcome)
	var jids []string
	for _, x := range list {
		if byJob[x.jid] == nil {
			jids = append(jids, x.jid)
		}
		byJob[x.jid] = append(byJob[x.jid], x)
	}
	inParallel(len(jids), sendWorkers, func(i int) {
		d.storeOutcomes(ctx, jids[i], byJob[jids[i]])
	})
}

// storeOutcomes ends deliveries of one job.
func (d *Deliverer) storeOutcomes(ctx context.Context, jid string, list []*outcome) {
	loads := make(map[string]map[string]any, len(list))
	for _, x := range list {
		if _, ok := loads[x.id]; !ok { // the first return counts
			loads[x.id] = x.load
		}
	}
	ids := slices.Collect(maps.Keys(loads))
	stored, err := d.q.Deliveries(ctx, store.DeliveryFilter{JID: jid, Minions: ids,
		Limit: len(ids)})
	d.logFailure(ctx, "Cannot end order", err)
	stored = slices.DeleteFunc(stored, func(x store.Delivery) bool { return !x.State.Open() })
	now := time.Now().UTC()
	ended := make([]*store.Delivery, len(stored))
	for i, x := range stored {
		applyReturn(&x, loads[x.Minion])
		endNow(&x, now)
		ended[i] = &x
	}
	for i, err := range d.q.SwapDeliveries(ctx, ended) {
		switch {
		case err == nil:
			d.tellEnd(*ended[i])
		case errors.Is(err, store.ErrChanged):
			d.finishReturned(ctx, stored[i], loads[stored[i].Minion])
		default:
			d.logFailure(ctx, "Cannot change order", err)
		}
	}
}

// finishReturned ends a delivery whose minion returned.
func (d *Deliverer) finishReturned(ctx context.Context, x store.Delivery, load map[string]any) {
	d.finishDelivery(ctx, x, func(x *store.Delivery) bool {
		applyReturn(x, load)
		return true
	})
}

// applyReturn makes a delivery final as a return says.
func applyReturn(x *store.Delivery, load map[string]any) {
	x.State = store.Returned
	if why := refusalText(load); why != "" {
		x.State, x.Reason = store.Refused, why
	} else if x.Reason == cancelling {
		x.State, x.Reason = store.Cancelled, "cancelled while it ran"
	}
}
