package orders

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/master/internal/probe"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/events"
)

// fakeWire is a network without sockets. Minions that listen answer probes and get jobs; what they were sent is recorded.
type fakeWire struct {
	all      Place         // where every minion is that places does not name
	peers    []string      // other masters
	slowness time.Duration // of status queries
	failing  atomic.Int32  // how many changes of deliveries fail from now on

	around func(q store.Queue) store.Queue // what the deliverer uses in place of q; nil is q

	mu         sync.Mutex // guards the fields below
	places     map[string]Place
	listening  map[string]bool
	unaccepted map[string]bool
	probed     map[string][]time.Time
	sent       []Parcel
	asked      []Question
	answers    map[string]any            // to status queries, by minion
	kept       map[string]map[string]any // returns that were adopted, by minion
	d          *Deliverer
}

func (w *fakeWire) Send(_ context.Context, list ...Parcel) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, list...)
	return nil
}

func (w *fakeWire) Probe(_ context.Context, ids []string, local bool) (unaccepted []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if w.unaccepted[id] {
			unaccepted = append(unaccepted, id)
			continue
		}
		if w.probed == nil {
			w.probed = make(map[string][]time.Time)
		}
		w.probed[id] = append(w.probed[id], time.Now())
		if w.listening[id] {
			go w.d.Heard(id, probe.SentBy(probe.Metadata(probe.Listening, local), w.d.opts.Name))
		}
	}
	return unaccepted, nil
}

func (w *fakeWire) Ask(_ context.Context, q Question) map[string]Answer {
	w.mu.Lock()
	w.asked = append(w.asked, q)
	w.mu.Unlock()
	time.Sleep(w.slowness)
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[string]Answer)
	for _, id := range slices.Concat(q.Here, q.Others) {
		if v, ok := w.answers[id]; ok {
			out[id] = Answer{Value: v}
		}
	}
	return out
}

func (w *fakeWire) Where(id string) Place {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.places[id]; ok {
		return p
	}
	return w.all
}

func (w *fakeWire) KnowsPeer(name string) bool { return slices.Contains(w.peers, name) }

func (w *fakeWire) Adopt(_ context.Context, jid, id string, load map[string]any) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kept == nil {
		w.kept = make(map[string]map[string]any)
	}
	w.kept[id] = load
	return true
}

// listens makes a minion answer probes from now on.
func (w *fakeWire) listens(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listening == nil {
		w.listening = make(map[string]bool)
	}
	w.listening[id] = true
}

// deliveredTo lists the jobs that a minion was sent.
func (w *fakeWire) deliveredTo(id string) (jids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.sent {
		if slices.Contains(p.IDs, id) {
			jids = append(jids, p.Job["jid"].(string))
		}
	}
	return jids
}

func newDeliverer(w *fakeWire, name string) *Deliverer {
	kept := store.NewMemory()
	q, _ := store.QueueOf(kept)
	if w.around != nil {
		q = w.around(q)
	}
	w.d = New(Options{Wire: w, Queue: failingQueue{q, w}, Store: kept, Events: events.New(nil),
		Log: slog.New(slog.DiscardHandler), ID: "m", Name: name, Timeout: 5 * time.Second,
		GatherTimeout: 10 * time.Second, LostAfter: time.Hour, MaxUnfinished: 100})
	return w.d
}

// place stores an order for some minions, as the master does.
func place(t *testing.T, d *Deliverer, jid string, o store.Delivery, ids ...string) {
	t.Helper()
	var list []store.Delivery
	for _, id := range ids {
		x := o
		x.JID, x.Minion, x.State, x.Version = jid, id, store.Waiting, 1
		x.Due = Overdue(x)
		list = append(list, x)
		d.LookBy(x.Due)
	}
	rec := store.Order{ID: jid, JID: jid, Created: time.Now(), Spec: map[string]any{"fun": "test.ping", "arg": []any{}, "tgt": ids[0], "tgt_type": "list", "extra": map[string]any{}}}
	if err := d.q.SaveOrder(t.Context(), rec, list); err != nil {
		t.Fatal(err)
	}
	d.Expect(ids...)
}

// states are the states of an order's deliveries, by minion.
func states(t *testing.T, d *Deliverer, jid string) map[string]store.State {
	t.Helper()
	list, err := d.q.Deliveries(t.Context(), store.DeliveryFilter{JID: jid})
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]store.State)
	for _, x := range list {
		out[x.Minion] = x.State
	}
	return out
}

// inBubble runs a deliverer under a clock that jumps, until f returns.
func inBubble(t *testing.T, w *fakeWire, name string, f func(t *testing.T, d *Deliverer)) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeliverer(w, name)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.Run(ctx)
		}()
		f(t, d)
		stop()
		<-done
	})
}

const jobA, jobB = "20260101000000000001", "20260101000000000002"

// TestDeliveryWaitsForProof: nothing is sent before the minion has answered a probe, and then at once and only once.
func TestDeliveryWaitsForProof(t *testing.T) {
	w := &fakeWire{}
	inBubble(t, w, "", func(t *testing.T, d *Deliverer) {
		place(t, d, jobA, store.Delivery{}, "alpha", "beta")
		time.Sleep(10 * time.Minute)
		if got := w.deliveredTo("alpha"); got != nil || len(w.probed["alpha"]) < 8 || len(w.probed["alpha"]) > 16 {
			t.Errorf("sent %v after %d probes", got, len(w.probed["alpha"]))
		}
		w.listens("alpha")
		d.Contact("alpha") // it signs in
		d.PathChanged(true)
		time.Sleep(time.Second)
		if got := w.deliveredTo("alpha"); !slices.Equal(got, []string{jobA}) {
			t.Errorf("alpha got %v", got)
		}
		if got := w.deliveredTo("beta"); got != nil {
			t.Errorf("beta got %v", got)
		}
		if got := states(t, d, jobA); !maps.Equal(got, map[string]store.State{"alpha": store.Sent, "beta": store.Waiting}) {
			t.Error(got)
		}
	})
}

// TestOneJobAtATime: a minion gets its orders one after the other, by priority, and parallel ones at once.
func TestOneJobAtATime(t *testing.T) {
	w := &fakeWire{}
	w.listens("alpha")
	inBubble(t, w, "", func(t *testing.T, d *Deliverer) {
		place(t, d, jobA, store.Delivery{}, "alpha")
		time.Sleep(time.Second)
		place(t, d, jobB, store.Delivery{}, "alpha")
		place(t, d, "20260101000000000003", store.Delivery{Parallel: true}, "alpha")
		place(t, d, "20260101000000000004", store.Delivery{Priority: 1}, "alpha")
		time.Sleep(time.Second)
		if got := w.deliveredTo("alpha"); !slices.Equal(got, []string{jobA, "20260101000000000003"}) {
			t.Fatal(got)
		}
		d.Returned(t.Context(), jobA, "alpha", map[string]any{"return": true, "retcode": 0})
		time.Sleep(time.Second)
		if got := w.deliveredTo("alpha"); !slices.Equal(got[2:], []string{"20260101000000000004"}) {
			t.Fatal(got)
		}
		d.Returned(t.Context(), "20260101000000000004", "alpha", map[string]any{"return": true, "retcode": 0})
		time.Sleep(time.Second)
		if got := w.deliveredTo("alpha"); !slices.Equal(got[3:], []string{jobB}) {
			t.Fatal(got)
		}
	})
}

// TestDeliveryEnds: what waited too long is never sent, and what a silent minion was sent is lost, after its time.
func TestDeliveryEnds(t *testing.T) {
	w := &fakeWire{}
	w.listens("silent")
	inBubble(t, w, "", func(t *testing.T, d *Deliverer) {
		place(t, d, jobA, store.Delivery{Expires: time.Now().Add(time.Minute)}, "absent")
		place(t, d, jobB, store.Delivery{}, "silent")
		time.Sleep(59 * time.Second)
		if got := states(t, d, jobA)["absent"]; got != store.Waiting {
			t.Errorf("absent: %s before its time", got)
		}
		time.Sleep(5 * time.Second)
		if got := states(t, d, jobA)["absent"]; got != store.Undeliverable {
			t.Errorf("absent: %s", got)
		}
		time.Sleep(54 * time.Minute)
		if got := states(t, d, jobB)["silent"]; got != store.Sent {
			t.Errorf("silent: %s before its time", got)
		}
		time.Sleep(10 * time.Minute)
		if got := states(t, d, jobB)["silent"]; got != store.Lost || len(w.deliveredTo("silent")) != 1 {
			t.Errorf("silent: %s after %d jobs", got, len(w.deliveredTo("silent")))
		}
	})
}

// TestKeptReturnIsAdopted: a return that was lost on its way, and that the minion has kept, ends the delivery.
func TestKeptReturnIsAdopted(t *testing.T) {
	ret := map[string]any{"jid": jobA, "id": "alpha", "fun": "test.ping", "return": true, "retcode": 0}
	w := &fakeWire{answers: map[string]any{"alpha": map[string]any{findJob: map[string]any{}, findCachedJob: ret}}}
	w.listens("alpha")
	inBubble(t, w, "", func(t *testing.T, d *Deliverer) {
		place(t, d, jobA, store.Delivery{}, "alpha")
		time.Sleep(time.Minute)
		if got := states(t, d, jobA)["alpha"]; got != store.Returned || w.kept["alpha"]["return"] != true {
			t.Errorf("%s, adopted %v", got, w.kept)
		}
		if len(w.asked) != 1 || fmt.Sprint(w.asked[0].Fun) != "[saltutil.find_job saltutil.find_cached_job]" {
			t.Errorf("asked %v", w.asked)
		}
	})
}

// TestUnacceptedIsNotAwaited: a minion without an accepted key is not asked again until it signs in.
func TestUnacceptedIsNotAwaited(t *testing.T) {
	w := &fakeWire{unaccepted: map[string]bool{"alpha": true}}
	inBubble(t, w, "", func(t *testing.T, d *Deliverer) {
		place(t, d, jobA, store.Delivery{}, "alpha")
		time.Sleep(time.Second)
		d.mu.Lock()
		if d.peers.of("alpha").state != idle {
			t.Error("it is still awaited")
		}
		d.mu.Unlock()
		w.mu.Lock()
		w.unaccepted = nil
		w.mu.Unlock()
		w.listens("alpha")
		d.Contact("alpha")
		time.Sleep(5 * time.Second)
		if got := w.deliveredTo("alpha"); !slices.Equal(got, []string{jobA}) {
			t.Error(got)
		}
	})
}

// TestRevokeEndsAll: all that a minion has open is cancelled, and nothing of it is sent.
func TestRevokeEndsAll(t *testing.T) {
	w := &fakeWire{}
	w.listens("alpha")
	inBubble(t, w, "", func(t *testing.T, d *Deliverer) {
		place(t, d, jobA, store.Delivery{}, "alpha")
		time.Sleep(time.Second)
		place(t, d, jobB, store.Delivery{}, "alpha")
		if err := d.Revoke(t.Context(), "alpha"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if a, b := states(t, d, jobA)["alpha"], states(t, d, jobB)["alpha"]; a != store.Cancelled || b != store.Cancelled {
			t.Error(a, b)
		}
		if got := w.deliveredTo("alpha"); !slices.Equal(got, []string{jobA}) {
			t.Error(got)
		}
	})
}
