package orders

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/store"
)

// slowQueue is a queue whose uses take a millisecond, and are counted.
type slowQueue struct {
	store.Queue
	uses *atomic.Int64
}

func (q slowQueue) use() {
	q.uses.Add(1)
	time.Sleep(time.Millisecond)
}

func (q slowQueue) Deliveries(ctx context.Context, f store.DeliveryFilter) ([]store.Delivery, error) {
	q.use()
	return q.Queue.Deliveries(ctx, f)
}

func (q slowQueue) SwapDelivery(ctx context.Context, x *store.Delivery) error {
	q.use()
	return q.Queue.SwapDelivery(ctx, x)
}

func (q slowQueue) SwapDeliveries(ctx context.Context, list []*store.Delivery) []error {
	q.use()
	return q.Queue.SwapDeliveries(ctx, list)
}

// TestStatementsOfALargeOrder: an order to a thousand minions, and their sign-in at another master afterwards, use the
// store a few times for a hundred minions, not for each.
func TestStatementsOfALargeOrder(t *testing.T) {
	const n = 1000
	var uses atomic.Int64
	w := &fakeWire{around: func(q store.Queue) store.Queue { return slowQueue{q, &uses} }}
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("web%04d", i)
		w.listens(ids[i])
	}
	inBubble(t, w, "", func(t *testing.T, d *Deliverer) {
		place(t, d, jobA, store.Delivery{}, ids...)
		time.Sleep(time.Second)
		for _, id := range ids {
			go d.Returned(t.Context(), jobA, id, map[string]any{"return": true})
		}
		time.Sleep(time.Second)
		ended := 0
		for id, s := range states(t, d, jobA) {
			if s != store.Returned {
				t.Fatal(id, s)
			}
			ended++
		}
		if sent := w.deliveredTo(ids[n-1]); ended != n || len(sent) != 1 {
			t.Error(ended, "ended, sent", sent)
		}
		for _, id := range ids {
			d.Contact(id)
		}
		time.Sleep(time.Second)
		if got := uses.Load(); got > n/10 {
			t.Errorf("%d uses of the store", got)
		}
	})
}

// TestOutcomesOfManyKinds: what returns together may end in different ways, be over already, or be of no order.
func TestOutcomesOfManyKinds(t *testing.T) {
	w := &fakeWire{}
	for _, id := range []string{"alpha", "beta", "gamma"} {
		w.listens(id)
	}
	inBubble(t, w, "", func(t *testing.T, d *Deliverer) {
		place(t, d, jobA, store.Delivery{}, "alpha", "beta", "gamma")
		place(t, d, jobB, store.Delivery{Parallel: true}, "alpha")
		time.Sleep(time.Second)
		list, err := d.q.Deliveries(t.Context(), store.DeliveryFilter{JID: jobA, Minion: "gamma"})
		if err != nil {
			t.Fatal(err)
		}
		d.settleDelivery(t.Context(), list[0], store.Cancelled, false, "enough")
		refusal := map[string]any{"retcode": int64(1),
			"return": "the policy of this minion does not allow test.ping"}
		watch := d.Watch(jobB)
		d.Returned(t.Context(), jobB, "alpha", plain())
		select {
		case <-watch:
		default:
			t.Error("who watches the job does not hear of its end")
		}
		for id, load := range map[string]map[string]any{"alpha": plain(), "beta": refusal,
			"gamma": plain(), "delta": plain()} {
			go d.Returned(t.Context(), jobA, id, load)
		}
		time.Sleep(time.Second)
		got := states(t, d, jobA)
		if len(got) != 3 || got["alpha"] != store.Returned || got["beta"] != store.Refused ||
			got["gamma"] != store.Cancelled || states(t, d, jobB)["alpha"] != store.Returned {
			t.Errorf("%v", got)
		}
	})
}

// TestFirstOfTwoReturnsCounts: of two returns of a minion that are stored together, the first ends the delivery.
func TestFirstOfTwoReturnsCounts(t *testing.T) {
	w := &fakeWire{}
	w.listens("alpha")
	inBubble(t, w, "", func(t *testing.T, d *Deliverer) {
		place(t, d, jobA, store.Delivery{}, "alpha")
		time.Sleep(time.Second)
		refusal := map[string]any{"retcode": int64(1),
			"return": "the policy of this minion does not allow test.ping"}
		d.storeOutcomes(t.Context(), jobA, []*outcome{
			{jid: jobA, id: "alpha", load: refusal}, {jid: jobA, id: "alpha", load: plain()}})
		if got := states(t, d, jobA)["alpha"]; got != store.Refused {
			t.Error(got)
		}
	})
}

// changedQueue is a queue in which another master changes deliveries between their read and their end.
type changedQueue struct{ store.Queue }

func (q changedQueue) SwapDeliveries(ctx context.Context, list []*store.Delivery) []error {
	for _, x := range list {
		if x.State.Open() {
			continue
		}
		now, err := q.Queue.Deliveries(ctx, store.DeliveryFilter{JID: x.JID, Minion: x.Minion})
		if err == nil && len(now) == 1 {
			_ = q.Queue.SwapDelivery(ctx, &now[0])
		}
	}
	return q.Queue.SwapDeliveries(ctx, list)
}

// TestOutcomeOfAChangedDelivery: a delivery that another master changes at the same time still ends.
func TestOutcomeOfAChangedDelivery(t *testing.T) {
	w := &fakeWire{around: func(q store.Queue) store.Queue { return changedQueue{q} }}
	w.listens("alpha")
	inBubble(t, w, "", func(t *testing.T, d *Deliverer) {
		place(t, d, jobA, store.Delivery{}, "alpha")
		time.Sleep(time.Second)
		d.Returned(t.Context(), jobA, "alpha", plain())
		if got := states(t, d, jobA)["alpha"]; got != store.Returned {
			t.Error(got)
		}
	})
}

// TestPace: some turns that publish follow each other at once; of many, fifty a second. Turns that publish nothing do
// not wait.
func TestPace(t *testing.T) {
	var p pace
	now := time.Now()
	for i := range 100 {
		p.published()
		wait := p.wait(now)
		if i < turnBurst && wait != 0 || i >= turnBurst && wait != turnPace {
			t.Fatalf("turn %d waits %v", i, wait)
		}
		now = now.Add(wait)
		if p.wait(now) != 0 {
			t.Fatalf("turn %d waits for nothing", i)
		}
	}
	p.published()
	if wait := p.wait(now.Add(time.Second)); wait != 0 {
		t.Errorf("after a rest: %v", wait)
	}
}
