package master

import (
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

// connectedServer is a transport that has a connection of every minion.
type connectedServer struct{ transport.Server }

func (connectedServer) Reach(topics ...string) (named, nameless int) { return len(topics), 0 }

func connected(s *shared) *dispatcher {
	m := &Master{presence: newPresence(), servers: []transport.Server{connectedServer{}}, shared: s}
	m.serving.Store(true)
	return newDispatcher(m, nil)
}

// TestSlowMinionsAreNotAskedForEachOrder: one that is connected is asked with growing pauses, whatever else is ordered; a sign-in begins anew.
func TestSlowMinionsAreNotAskedForEachOrder(t *testing.T) {
	for _, s := range []*shared{nil, {name: "a"}} {
		d := connected(s)
		now := time.Now()
		asked := func(at time.Time) int {
			near, others, _ := d.knocks(at)
			return len(near) + len(others)
		}
		order := func(at time.Time) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.expectOne("m", at, false)
		}
		n := 0
		for i := range 290 { // an order every 100 ms
			order(now.Add(time.Duration(i) * 100 * time.Millisecond))
			n += asked(now.Add(time.Duration(i) * 100 * time.Millisecond))
		}
		if n != 4 { // after 0, 2, 6 and 14 seconds
			t.Errorf("asked %d times", n)
		}
		d.contact("m")
		at := now.Add(29 * time.Second)
		if order(at); asked(at) != 1 {
			t.Error("not asked after it signed in")
		}
	}
}

// TestOneOfSeveralMastersSends: the one that a minion has shown to listen to; others look later whether something is left to do.
func TestOneOfSeveralMastersSends(t *testing.T) {
	d := connected(&shared{name: "a"})
	answer := func(of string) map[string]any {
		return map[string]any{"metadata": map[string]any{"brine": knockMark, "of": of}}
	}
	now := time.Now()
	d.expectElsewhere([]string{"m", "n"}, []string{"m"})
	if !d.targets["m"].look || d.targets["n"].look {
		t.Errorf("%+v %+v", d.targets["m"], d.targets["n"])
	}
	d.expectOne("m", now, true)
	d.heard("m", answer("b"))
	if k := d.targets["m"]; len(d.ready) > 0 || k == nil || !k.look || !d.paths["m"].IsZero() {
		t.Errorf("%+v %v", k, d.ready)
	}
	d.heard("m", answer("a"))
	if _, ready := d.ready["m"]; !ready || d.targets["m"] != nil || d.paths["m"].IsZero() {
		t.Errorf("%+v %v", d.targets["m"], d.ready)
	}
}
