package orders

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/events"
)

// herd is a network of minions with a journal. Each runs a job once, however often it is sent, and reports its
// return to a master that queries it. A return is lost if no master is running.
type herd struct {
	*fakeWire
	mu    sync.Mutex     // guards the fields below
	came  map[string]int // how often jobs came, by job and minion
	alive *Deliverer
}

func (h *herd) Send(ctx context.Context, list ...Parcel) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range list {
		jid := p.Job["jid"].(string)
		for _, id := range p.IDs {
			h.came[jid+" "+id]++
			if d := h.alive; d != nil {
				go func() {
					time.Sleep(time.Second)
					d.Returned(ctx, jid, id, map[string]any{"jid": jid, "id": id, "fun": "test.ping", "return": true, "retcode": 0})
				}()
			}
		}
	}
	return nil
}

func (h *herd) Ask(_ context.Context, q Question) map[string]Answer {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make(map[string]Answer)
	for _, id := range slices.Concat(q.Here, q.Others) {
		if q.Fun == any("saltutil.running") {
			out[id] = Answer{Value: []any{}}
			continue
		}
		jid := fmt.Sprint(q.Arg[0].([]any)[0])
		var cached any = "not found"
		if h.came[jid+" "+id] > 0 {
			cached = map[string]any{"jid": jid, "id": id, "fun": "test.ping", "return": true, "retcode": 0}
		}
		out[id] = Answer{Value: map[string]any{findJob: map[string]any{}, findCachedJob: cached}}
	}
	return out
}

// mortal is the store of a master that dies after some claims: nothing that it does afterwards has an effect.
type mortal struct {
	store.Queue
	left atomic.Int32
	die  func()
}

var errDead = errors.New("the master is dead")

func (q *mortal) SwapDeliveries(ctx context.Context, list []*store.Delivery) []error {
	n := q.left.Add(-1)
	if n < 0 {
		return slices.Repeat([]error{errDead}, len(list))
	}
	errs := q.Queue.SwapDeliveries(ctx, list)
	if n == 0 {
		q.die()
	}
	return errs
}

func (q *mortal) SwapDelivery(ctx context.Context, x *store.Delivery) error {
	if q.left.Load() <= 0 {
		return errDead
	}
	return q.Queue.SwapDelivery(ctx, x)
}

func (q *mortal) OrderOf(ctx context.Context, jid string) (store.Order, error) {
	if q.left.Load() <= 0 {
		return store.Order{}, errDead
	}
	return q.Queue.OrderOf(ctx, jid)
}

// TestDeathBetweenBatches: a master dies at each of the first batches of an order for a thousand minions: before
// and after the claimed deliveries are sent, and while returns are stored. The next master brings every delivery to
// its end: all are returned, and no minion gets a job after it has run it.
func TestDeathBetweenBatches(t *testing.T) {
	for batches := range int32(16) {
		synctest.Test(t, func(t *testing.T) {
			ids := make([]string, 1000)
			for i := range ids {
				ids[i] = fmt.Sprintf("m%03d", i)
			}
			kept := store.NewMemory()
			q, _ := store.QueueOf(kept)
			h := &herd{fakeWire: &fakeWire{}, came: make(map[string]int)}
			start := func(name string, q store.Queue) (d *Deliverer, stop func()) {
				d = New(Options{Wire: h, Queue: q, Store: kept, Events: events.New(nil), Log: slog.New(slog.DiscardHandler), ID: name,
					Timeout: 5 * time.Second, GatherTimeout: 10 * time.Second, LostAfter: time.Hour, MaxUnfinished: -1})
				h.mu.Lock()
				h.alive = d
				h.mu.Unlock()
				h.fakeWire.mu.Lock()
				h.d = d
				h.fakeWire.mu.Unlock()
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					d.Run(ctx)
				}()
				return d, func() { cancel(); <-done }
			}
			m := &mortal{Queue: q}
			m.left.Store(batches + 1)
			m.die = func() {
				h.mu.Lock()
				h.alive = nil
				h.mu.Unlock()
			}
			for _, id := range ids {
				h.listens(id)
			}
			first, end := start("first", m)
			for _, id := range ids {
				spec := map[string]any{"started": time.Now().Add(-48 * time.Hour).UnixMicro(), "journal": true}
				if err := first.minions.SwapMinion(t.Context(), &store.Minion{ID: id, Spec: spec}); err != nil {
					t.Fatal(err)
				}
			}
			place(t, first, jobA, store.Delivery{}, ids...)
			time.Sleep(10 * time.Second)
			end()
			second, end := start("second", q)
			for range 40 {
				time.Sleep(30 * time.Second)
				for _, id := range ids {
					second.Contact(id)
				}
			}
			open := map[store.State]int{}
			for _, s := range states(t, second, jobA) {
				open[s]++
			}
			if open[store.Returned] != len(ids) {
				t.Errorf("%d batches before its death: %v", batches, open)
			}
			h.mu.Lock()
			for key, n := range h.came {
				if n != 1 {
					t.Errorf("%d batches before its death: %s came %d times", batches, key, n)
				}
			}
			if len(h.came) != len(ids) {
				t.Errorf("%d batches before its death: %d minions got it", batches, len(h.came))
			}
			h.mu.Unlock()
			end()
		})
	}
}

// unreadable is a store that cannot read orders for a time.
type unreadable struct {
	store.Queue
	until time.Time
}

func (q unreadable) OrderOf(ctx context.Context, jid string) (store.Order, error) {
	if time.Now().Before(q.until) {
		return store.Order{}, errDead
	}
	return q.Queue.OrderOf(ctx, jid)
}

// TestUnreadOrderIsNotClaimed: an order that the store cannot read does not count as sent, and is sent once the
// store can. A stock minion gets it too, although after two minutes it could not tell whether it ran a job.
func TestUnreadOrderIsNotClaimed(t *testing.T) {
	w := &fakeWire{answers: map[string]any{"alpha": map[string]any{findJob: map[string]any{}, findCachedJob: "none"}}}
	w.around = func(q store.Queue) store.Queue { return unreadable{q, time.Now().Add(10 * time.Minute)} }
	w.listens("alpha")
	inBubble(t, w, "", func(t *testing.T, d *Deliverer) {
		place(t, d, jobA, store.Delivery{}, "alpha")
		time.Sleep(9 * time.Minute)
		if got := states(t, d, jobA)["alpha"]; got != store.Waiting {
			t.Errorf("%s while the store cannot read it", got)
		}
		time.Sleep(3 * time.Minute)
		if got := w.deliveredTo("alpha"); !slices.Equal(got, []string{jobA}) {
			t.Errorf("sent %v", got)
		}
	})
}

// otherwise is a store whose database sorts ids in another way than by bytes: here backwards.
type otherwise struct{ store.Queue }

func (q otherwise) Deliveries(ctx context.Context, f store.DeliveryFilter) ([]store.Delivery, error) {
	limit := f.Limit
	if f.Minions == nil {
		return q.Queue.Deliveries(ctx, f)
	}
	f.Limit = MaxDeliveries
	list, err := q.Queue.Deliveries(ctx, f)
	slices.SortStableFunc(list, func(a, b store.Delivery) int { return strings.Compare(b.Minion, a.Minion) })
	return list[:min(len(list), limit)], err
}

// TestCollation: minions of whose deliveries one read returns nothing, because there are too many of them, are read by themselves,
// however the database sorts ids.
func TestCollation(t *testing.T) {
	w := &fakeWire{around: func(q store.Queue) store.Queue { return otherwise{q} }}
	synctest.Test(t, func(t *testing.T) {
		d := newDeliverer(w, "")
		ids := make([]string, readTogether)
		for i := range ids {
			ids[i] = fmt.Sprintf("m%03d", i)
		}
		orders := maxRead/readTogether + 20
		for i := range orders {
			place(t, d, fmt.Sprintf("2026010100000000%04d", i), store.Delivery{}, ids...)
		}
		open, err := d.openDeliveries(t.Context(), ids)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if len(open[id]) != orders {
				t.Errorf("%s has %d of %d", id, len(open[id]), orders)
			}
		}
	})
}
