package orders

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/store"
)

// String is the state of a peer with its marks, as doc.go draws them.
func (p *peer) String() string {
	out := []string{map[state]string{idle: "idle", probing: "probing", deferred: "deferred"}[p.state]}
	for mark, has := range map[string]bool{"answered": p.answered, "silent": p.silent} {
		if has {
			out = append(out, mark)
		}
	}
	if p.lookUp {
		out = append(out, "lookUp")
	}
	if p.signedIn {
		out = append(out, "signedIn")
	}
	return strings.Join(out, " ")
}

// TestPeerStates: the state that each event leads to from each state, in a cluster.
func TestPeerStates(t *testing.T) {
	for _, c := range []struct {
		event string
		// the state that follows from idle, probing, deferred
		idle, probing, deferred string
		do                      func(d *Deliverer, w *fakeWire, p *peer)
	}{
		{"an order", "probing", "probing", "probing",
			func(d *Deliverer, _ *fakeWire, p *peer) { d.Expect(p.id) }},
		{"an order, it is connected elsewhere", "deferred", "deferred", "deferred",
			func(d *Deliverer, w *fakeWire, p *peer) { w.all = Elsewhere; d.Expect(p.id) }},
		{"an order, it was probed just now", "probing", "probing", "deferred",
			func(d *Deliverer, _ *fakeWire, p *peer) { p.asked = d.now(); d.Expect(p.id) }},
		{"an order, it listens", "idle answered", "probing answered", "deferred answered",
			func(d *Deliverer, _ *fakeWire, p *peer) { p.path = d.now(); d.Expect(p.id) }},
		{"an order, it listens, a turn", "idle", "idle", "idle",
			func(d *Deliverer, _ *fakeWire, p *peer) {
				p.path = d.now()
				d.Expect(p.id)
				d.peers.takeAnswers()
			}},
		{"an order, it listened before it fell silent, a turn", "idle silent", "probing silent",
			"deferred silent", func(d *Deliverer, _ *fakeWire, p *peer) {
				p.path, p.silent = d.now(), true
				d.Expect(p.id)
				d.peers.takeAnswers()
			}},
		{"another master's order", "deferred", "probing", "deferred",
			func(d *Deliverer, _ *fakeWire, p *peer) { d.ExpectElsewhere([]string{p.id}, nil) }},
		{"another master's order, it is connected here", "probing", "probing", "probing",
			func(d *Deliverer, w *fakeWire, p *peer) {
				w.all = Here
				d.ExpectElsewhere([]string{p.id}, nil)
			}},
		{"a return", "idle", "probing", "deferred",
			func(d *Deliverer, _ *fakeWire, p *peer) { d.Heard(p.id, plain()) }},
		{"a return over its connection here", "idle", "idle answered", "idle answered",
			func(d *Deliverer, w *fakeWire, p *peer) { w.all = Here; d.Heard(p.id, plain()) }},
		{"a return after a query that it did not answer", "idle silent lookUp", "probing silent lookUp",
			"deferred silent lookUp",
			func(d *Deliverer, _ *fakeWire, p *peer) { p.silent = true; d.Heard(p.id, plain()) }},
		{"an answer to our probe", "idle answered", "idle answered", "idle answered",
			func(d *Deliverer, _ *fakeWire, p *peer) { d.Heard(p.id, answerTo("a")) }},
		{"an answer to another's probe", "idle", "deferred", "deferred",
			func(d *Deliverer, _ *fakeWire, p *peer) { d.Heard(p.id, answerTo("b")) }},
		{"another master heard it", "idle", "deferred", "deferred",
			func(d *Deliverer, _ *fakeWire, p *peer) { d.HeardElsewhere(p.id) }},
		{"another master probes it", "idle", "probing", "deferred",
			func(d *Deliverer, _ *fakeWire, p *peer) { d.AskedElsewhere([]string{p.id}) }},
		{"a sign-in", "idle lookUp signedIn", "probing lookUp signedIn", "deferred lookUp signedIn",
			func(d *Deliverer, _ *fakeWire, p *peer) { d.Contact(p.id) }},
		{"a connection", "idle", "probing", "deferred",
			func(d *Deliverer, _ *fakeWire, _ *peer) { d.PathChanged(true) }},
		{"its time came", "idle", "probing", "idle lookUp",
			func(d *Deliverer, _ *fakeWire, p *peer) { p.next = 0; d.dueProbes(d.now()) }},
		{"its time came, it has no accepted key", "idle", "idle", "idle lookUp",
			func(d *Deliverer, w *fakeWire, p *peer) {
				p.next, w.unaccepted = 0, map[string]bool{p.id: true}
				d.sendProbes(context.Background(), time.Now())
			}},
		{"the store failed", "probing", "probing", "probing",
			func(d *Deliverer, _ *fakeWire, p *peer) { d.retryLater(p.id) }},
	} {
		for from, want := range map[state]string{idle: c.idle, probing: c.probing, deferred: c.deferred} {
			w := &fakeWire{}
			d := newDeliverer(w, "a")
			for _, id := range []string{"x", "m", "y"} { // others are awaited, too
				switch p := d.peers.of(id); from {
				case probing:
					d.peers.probe(p, d.now()+time.Hour, probeFirst)
				case deferred:
					d.peers.leave(p, d.now()+time.Hour)
				}
			}
			p := d.peers.of("m")
			was := p.String()
			c.do(d, w, p)
			if got := p.String(); got != want {
				t.Errorf("%s, %s: %s, not %s", was, c.event, got, want)
			}
			for i, q := range d.peers.awaited {
				if int(q.slot) != i || q.state == idle {
					t.Errorf("%s, %s: %v is awaited at %d, not %d", was, c.event, q, i, q.slot)
				}
			}
			awaits := 0
			for _, q := range d.peers.byID {
				if q.state != idle {
					awaits++
				}
			}
			if awaits != len(d.peers.awaited) {
				t.Errorf("%s, %s: %d are awaited, not %d", was, c.event, len(d.peers.awaited), awaits)
			}
		}
	}
}

// TestIdleMinionsHaveNoPeer: once nothing waits for a minion and its last answer is old, nothing is
// kept of it. In a cluster, that it listens to this master is.
func TestIdleMinionsHaveNoPeer(t *testing.T) {
	for name, kept := range map[string]int{"": 0, "a": 1} {
		w := &fakeWire{}
		w.listens("works")
		inBubble(t, w, name, func(t *testing.T, d *Deliverer) {
			for i := range 1000 {
				d.Heard(fmt.Sprint(i), plain())
				d.Contact(fmt.Sprint(i + 500))
			}
			place(t, d, jobA, store.Delivery{}, "works")
			time.Sleep(time.Second)
			d.Returned(t.Context(), jobA, "works", plain())
			d.mu.Lock()
			if n := len(d.peers.byID); n != 1501 || d.peers.proven != 1001 {
				t.Errorf("%q: %d peers, %d proofs", name, n, d.peers.proven)
			}
			d.mu.Unlock()
			time.Sleep(proofLife + orderResume)
			d.mu.Lock()
			defer d.mu.Unlock()
			if n := len(d.peers.byID); n != kept || d.peers.proven != kept {
				t.Errorf("%q: %d peers stay, and %d proofs", name, n, d.peers.proven)
			}
		})
	}
}
