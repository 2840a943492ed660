package orders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/master/internal/probe"
	"github.com/brine-salt/brine/master/store"
)

// plain is the return of a job that is no question of a master.
func plain() map[string]any { return map[string]any{"fun": "test.ping", "return": true} }

// answerTo is a minion's answer to a probe that a master sent over its own connections.
func answerTo(master string) map[string]any {
	return probe.SentBy(probe.Metadata(probe.Listening, true), master)
}

// probes are the moments at which a minion was probed, counted from a time.
func (w *fakeWire) probes(id string, from time.Time) (at []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.probed[id] {
		at = append(at, x.Sub(from))
	}
	return at
}

// parcels returns what was sent so far.
func (w *fakeWire) parcels() []Parcel {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}

// questions returns the status queries so far.
func (w *fakeWire) questions() []Question {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked)
}

// TestFreshAnswerSparesTheProbe: a minion that has just answered is not probed again until the proof is too old,
// its connection may have broken, or it signs in.
func TestFreshAnswerSparesTheProbe(t *testing.T) {
	w := &fakeWire{places: map[string]Place{"here": Here}}
	inBubble(t, w, "", func(t *testing.T, d *Deliverer) {
		d.Heard("old", plain())
		time.Sleep(time.Second)
		d.Heard("fresh", plain())
		d.Heard("signed", plain())
		time.Sleep(proofLife - time.Second)
		d.Contact("signed")
		place(t, d, jobA, store.Delivery{}, "fresh", "old", "signed")
		time.Sleep(time.Second)
		for id, sent := range map[string]bool{"fresh": true, "old": false, "signed": false} {
			got, asked := w.deliveredTo(id), w.probes(id, time.Now())
			if len(got) > 0 != sent || len(asked) > 0 == sent {
				t.Errorf("%s: sent %v, probed %v", id, got, asked)
			}
		}
		d.Heard("here", plain())
		d.Heard("gone", plain())
		d.PathChanged(false)
		place(t, d, jobB, store.Delivery{}, "here", "gone")
		time.Sleep(time.Second)
		if w.deliveredTo("here") == nil || w.deliveredTo("gone") != nil {
			t.Errorf("here got %v, gone got %v", w.deliveredTo("here"), w.deliveredTo("gone"))
		}
	})
}

// TestSilentMinionIsQueriedWhenItAnswers: a minion that did not answer a status query is asked again
// with its next sign of life, and not only when the delivery is due.
func TestSilentMinionIsQueriedWhenItAnswers(t *testing.T) {
	w := &fakeWire{}
	w.listens("alpha")
	inBubble(t, w, "", func(t *testing.T, d *Deliverer) {
		place(t, d, jobA, store.Delivery{}, "alpha")
		time.Sleep(5 * time.Minute)
		before := len(w.questions())
		time.Sleep(time.Second)
		if n := len(w.questions()); before < 5 || n != before {
			t.Fatalf("queried %d times, then %d", before, n)
		}
		d.Heard("alpha", plain())
		time.Sleep(time.Second)
		if n := len(w.questions()); n != before+1 {
			t.Errorf("queried %d times after it answered, %d before", n, before)
		}
		time.Sleep(time.Second)
		d.Heard("alpha", plain()) // it did not answer the last one either
		time.Sleep(time.Second)
		if n := len(w.questions()); n != before+2 {
			t.Errorf("queried %d times after it answered again, %d before", n, before)
		}
	})
}

// TestSignInQueriesWhatWasSent: a minion that signs in may have lost what it was sent. It is probed, and as soon as
// it answers the status of its delivery is queried.
func TestSignInQueriesWhatWasSent(t *testing.T) {
	w := &fakeWire{}
	w.listens("alpha")
	inBubble(t, w, "", func(t *testing.T, d *Deliverer) {
		place(t, d, jobA, store.Delivery{}, "alpha")
		time.Sleep(2 * time.Second)
		if got := w.deliveredTo("alpha"); len(got) != 1 || len(w.questions()) != 0 {
			t.Fatalf("sent %v, queried %v", got, w.questions())
		}
		now := time.Now()
		d.Contact("alpha")
		time.Sleep(probeFirst - time.Millisecond)
		if n := len(w.questions()); n != 0 {
			t.Errorf("queried %d times before it listens", n)
		}
		time.Sleep(10 * time.Millisecond)
		if at := w.probes("alpha", now); at[len(at)-1] != probeFirst || len(w.questions()) != 1 {
			t.Errorf("probed %v, queried %v", at, w.questions())
		}
	})
}

// TestFailedStoreIsTriedAgain: a delivery that could not be claimed stays waiting and is sent later, once.
func TestFailedStoreIsTriedAgain(t *testing.T) {
	w := &fakeWire{}
	w.listens("alpha")
	inBubble(t, w, "", func(t *testing.T, d *Deliverer) {
		w.failing.Store(1)
		now := time.Now()
		place(t, d, jobA, store.Delivery{}, "alpha")
		time.Sleep(PollInterval - time.Millisecond)
		if got := states(t, d, jobA)["alpha"]; got != store.Waiting || w.failing.Load() != 0 {
			t.Fatalf("%s, and %d failures left", got, w.failing.Load())
		}
		time.Sleep(time.Second)
		at := w.probes("alpha", now)
		if got := w.deliveredTo("alpha"); len(got) != 1 || len(at) != 2 || at[1] != PollInterval {
			t.Errorf("sent %v, probed %v", got, at)
		}
	})
}

// put stores an order of another master, which this master was not notified of.
func put(t *testing.T, d *Deliverer, jid string, ids ...string) {
	t.Helper()
	var list []store.Delivery
	for _, id := range ids {
		list = append(list, store.Delivery{JID: jid, Minion: id, State: store.Waiting, Version: 1,
			Due: time.Now().Add(time.Hour)})
	}
	rec := store.Order{ID: jid, JID: jid, Created: time.Now(), Spec: map[string]any{"fun": "test.ping",
		"arg": []any{}, "tgt": ids[0], "tgt_type": "list", "extra": map[string]any{}}}
	if err := d.q.SaveOrder(t.Context(), rec, list); err != nil {
		t.Fatal(err)
	}
}

// TestOrderOfAnotherMaster: the other master has some seconds to send its order. This one then probes for what is
// still pending; minions connected here and not there are probed at once.
func TestOrderOfAnotherMaster(t *testing.T) {
	w := &fakeWire{places: map[string]Place{"here": Here}}
	inBubble(t, w, "a", func(t *testing.T, d *Deliverer) {
		time.Sleep(time.Second) // what Run finds at its start is its own
		ids := []string{"done", "here", "there", "unknown"}
		put(t, d, jobA, ids...)
		now := time.Now()
		d.ExpectElsewhere(ids, []string{"there"})
		list, err := d.q.Deliveries(t.Context(), store.DeliveryFilter{Minion: "done"})
		if err != nil {
			t.Fatal(err)
		}
		list[0].State, list[0].Owner, list[0].Sent = store.Sent, "b", now
		if err := d.q.SwapDelivery(t.Context(), &list[0]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		for _, c := range []struct {
			id         string
			from, till time.Duration
		}{
			{"here", 0, 0},
			{"unknown", PollInterval + probeFirst, 2*PollInterval + probeFirst},
			{"there", probeOther + probeFirst, 2*probeOther + probeFirst},
		} {
			if at := w.probes(c.id, now); len(at) == 0 || at[0] < c.from || at[0] > c.till {
				t.Errorf("%s: probed at %v, not from %v to %v", c.id, at, c.from, c.till)
			}
		}
		if at := w.probes("done", now); at != nil {
			t.Errorf("what was sent already was probed for at %v", at)
		}
	})
}

// TestAnswerToAnotherMaster: a minion that answers another master's probe is left to that master for a while. If
// the delivery is still pending then, this master probes again.
func TestAnswerToAnotherMaster(t *testing.T) {
	w := &fakeWire{}
	inBubble(t, w, "a", func(t *testing.T, d *Deliverer) {
		place(t, d, jobA, store.Delivery{}, "alpha", "beta")
		time.Sleep(5 * time.Second)
		now := time.Now()
		alpha, beta := len(w.probes("alpha", now)), len(w.probes("beta", now))
		d.Heard("alpha", answerTo("b"))
		d.HeardElsewhere("beta")
		time.Sleep(PollInterval)
		if len(w.probes("alpha", now)) != alpha || len(w.probes("beta", now)) != beta {
			t.Error("probed although another master heard them")
		}
		time.Sleep(PollInterval + probeFirst)
		for id, first := range map[string]int{"alpha": alpha, "beta": beta} {
			at := w.probes(id, now)
			if len(at) == first || at[first] < PollInterval || w.deliveredTo(id) != nil {
				t.Errorf("%s: probed %v, got %v", id, at, w.deliveredTo(id))
			}
		}
		d.Heard("alpha", answerTo("a"))
		time.Sleep(time.Second)
		if got := w.deliveredTo("alpha"); !slices.Equal(got, []string{jobA}) || !w.parcels()[0].Here {
			t.Errorf("alpha got %v: %+v", got, w.parcels())
		}
	})
}

// TestOwnPathSparesProbes: a minion that answered this master's own probe gets its next orders over that connection
// alone. Any later answer extends this, even after the proof became old.
func TestOwnPathSparesProbes(t *testing.T) {
	w := &fakeWire{}
	inBubble(t, w, "a", func(t *testing.T, d *Deliverer) {
		d.Heard("alpha", answerTo("a"))
		d.Heard("beta", plain())
		place(t, d, jobA, store.Delivery{Parallel: true}, "alpha", "beta")
		time.Sleep(100 * time.Millisecond)
		if sent := w.parcels(); len(sent) != 1 || !sent[0].Here ||
			!slices.Equal(sent[0].IDs, []string{"alpha"}) {
			t.Fatalf("sent %+v", sent)
		}
		time.Sleep(10 * proofLife)
		w.listens("beta")
		d.Heard("alpha", plain())
		now := time.Now()
		place(t, d, jobB, store.Delivery{Parallel: true}, "alpha")
		time.Sleep(100 * time.Millisecond)
		sent := w.parcels()
		last := sent[len(sent)-1]
		if last.Job["jid"] != jobB || !last.Here || slices.Max(append(w.probes("alpha", now), -1)) > 0 {
			t.Errorf("sent %+v, probed %v", last, w.probes("alpha", now))
		}
		time.Sleep(proofLife)
		now = time.Now()
		place(t, d, "20260101000000000003", store.Delivery{Parallel: true}, "alpha")
		time.Sleep(time.Second)
		if at := w.probes("alpha", now); len(at) == 0 || at[0] != probeFirst {
			t.Errorf("probed %v with an old proof", at)
		}
	})
}

// TestReturnBringsTheProbeForward: in a cluster, a return shows that a minion lives but not where it
// listens. It is probed at once, unless that was done just now.
func TestReturnBringsTheProbeForward(t *testing.T) {
	w := &fakeWire{}
	inBubble(t, w, "a", func(t *testing.T, d *Deliverer) {
		place(t, d, jobA, store.Delivery{}, "alpha")
		time.Sleep(20 * time.Minute)
		now := time.Now()
		before := len(w.probes("alpha", now))
		d.Heard("alpha", plain())
		time.Sleep(100 * time.Millisecond)
		d.Heard("alpha", plain())
		time.Sleep(100 * time.Millisecond)
		if at := w.probes("alpha", now); len(at) != before+1 || at[before] != 0 {
			t.Errorf("probed %v", at[before:])
		}
		time.Sleep(PollInterval)
		d.Heard("alpha", plain())
		time.Sleep(100 * time.Millisecond)
		if at := w.probes("alpha", now); len(at) != before+2 {
			t.Errorf("probed %v", at[before:])
		}
		if got := w.deliveredTo("alpha"); got != nil {
			t.Errorf("sent %v", got)
		}
	})
}

// TestOneQueryAtATime: a minion has one status query at a time, and the number of deliveries that are queried at
// once is limited.
func TestOneQueryAtATime(t *testing.T) {
	w := &fakeWire{slowness: 8 * time.Second}
	var ids []string
	for i := range maxAsking + 100 {
		ids = append(ids, fmt.Sprintf("m%03d", i))
		w.listens(ids[i])
	}
	w.listens("alpha")
	inBubble(t, w, "", func(t *testing.T, d *Deliverer) {
		place(t, d, jobA, store.Delivery{Parallel: true}, "alpha")
		time.Sleep(2 * time.Second)
		place(t, d, jobB, store.Delivery{Parallel: true}, "alpha")
		time.Sleep(10 * time.Second) // the first is queried for 8 seconds, the second is due since 7
		if n := len(w.questions()); n != 1 {
			t.Errorf("alpha has %d queries at a time", n)
		}
		time.Sleep(6 * time.Second)
		if n := len(w.questions()); n != 2 {
			t.Errorf("alpha has got %d queries", n)
		}
		if err := d.Revoke(t.Context(), "alpha"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		before := len(w.questions())
		place(t, d, "20260101000000000003", store.Delivery{}, ids...)
		time.Sleep(10 * time.Second)
		if q := w.questions()[before:]; len(q) != 1 || len(q[0].Others) != maxAsking {
			t.Fatalf("%d queries of %d minions", len(q), len(q[0].Others))
		}
		time.Sleep(8 * time.Second)
		if q := w.questions()[before:]; len(q) < 2 {
			t.Errorf("%d queries after the first ended", len(q))
		}
	})
}

// TestResume: what waits since before the start is probed for, unless an earlier job of the minion is
// under way.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWire{}
		d := newDeliverer(w, "")
		put(t, d, jobA, "alpha", "busy")
		list, err := d.q.Deliveries(t.Context(), store.DeliveryFilter{Minion: "busy"})
		if err != nil {
			t.Fatal(err)
		}
		list[0].State, list[0].Owner, list[0].Sent = store.Sent, d.owner, time.Now()
		if err := d.q.SwapDelivery(t.Context(), &list[0]); err != nil {
			t.Fatal(err)
		}
		put(t, d, jobB, "busy")
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.Run(ctx)
		}()
		now := time.Now()
		time.Sleep(time.Second)
		if a, b := w.probes("alpha", now), w.probes("busy", now); len(a) == 0 || a[0] != 0 || b != nil {
			t.Errorf("alpha was probed %v, busy %v", a, b)
		}
		d.Returned(t.Context(), jobA, "busy", plain())
		time.Sleep(time.Second)
		if b := w.probes("busy", now); len(b) == 0 || b[0] != time.Second {
			t.Errorf("busy was probed %v after it returned", b)
		}
		stop()
		<-done
	})
}

// TestDrainSendsNothingMore: a master that drains sends no delivery, whichever minion answers.
func TestDrainSendsNothingMore(t *testing.T) {
	w := &fakeWire{}
	w.listens("alpha")
	inBubble(t, w, "", func(t *testing.T, d *Deliverer) {
		if err := d.Drain(t.Context()); err != nil || !d.IsDraining() {
			t.Fatal(err)
		}
		place(t, d, jobA, store.Delivery{}, "alpha")
		d.Heard("alpha", plain())
		time.Sleep(time.Minute)
		if got := w.deliveredTo("alpha"); got != nil || w.probes("alpha", time.Now()) != nil {
			t.Errorf("sent %v, probed %v", got, w.probes("alpha", time.Now()))
		}
	})
}

// TestProofsAreBounded: when too many minions have answered, all proofs are forgotten, and what waits is not.
func TestProofsAreBounded(t *testing.T) {
	w := &fakeWire{}
	inBubble(t, w, "", func(t *testing.T, d *Deliverer) {
		place(t, d, jobA, store.Delivery{}, "waits")
		d.Heard("first", plain())
		for i := range maxProofs - 1 {
			d.Heard(fmt.Sprint(i), plain())
		}
		now := time.Now()
		d.Heard("last", plain())
		place(t, d, jobB, store.Delivery{}, "first", "last")
		time.Sleep(time.Second)
		if w.deliveredTo("first") != nil || len(w.probes("first", now)) == 0 {
			t.Error("the first proof holds")
		}
		if w.deliveredTo("last") == nil || len(w.probes("waits", now)) == 0 {
			t.Error("more was forgotten than the proofs")
		}
	})
}

// failingQueue is a queue in which the next claims fail, as many as failing holds.
type failingQueue struct {
	store.Queue
	w *fakeWire
}

func (q failingQueue) SwapDelivery(ctx context.Context, x *store.Delivery) error {
	if n := q.w.failing.Load(); n > 0 && q.w.failing.CompareAndSwap(n, n-1) {
		return errors.New("the store is away")
	}
	return q.Queue.SwapDelivery(ctx, x)
}

func (q failingQueue) SwapDeliveries(ctx context.Context, list []*store.Delivery) []error {
	if n := q.w.failing.Load(); len(list) > 0 && n > 0 && q.w.failing.CompareAndSwap(n, n-1) {
		return slices.Repeat([]error{errors.New("the store is away")}, len(list))
	}
	return q.Queue.SwapDeliveries(ctx, list)
}
