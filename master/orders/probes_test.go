package orders

import (
	"testing"
	"time"

	"github.com/brine-salt/brine/master/internal/probe"
)

// TestSlowMinionsAreNotAskedForEachOrder: a connected minion is probed at growing intervals, however many orders
// are placed. A sign-in starts with the shortest again.
func TestSlowMinionsAreNotAskedForEachOrder(t *testing.T) {
	for _, name := range []string{"", "a"} {
		d := newDeliverer(&fakeWire{all: Here}, name)
		now := time.Now()
		asked := func(at time.Time) int {
			near, others, _ := d.dueProbes(d.moment(at))
			return len(near) + len(others)
		}
		order := func(at time.Time) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.expectOne(d.peers.of("m"), d.moment(at), false)
		}
		n := 0
		for i := range 290 { // an order every 100 ms
			order(now.Add(time.Duration(i) * 100 * time.Millisecond))
			n += asked(now.Add(time.Duration(i) * 100 * time.Millisecond))
		}
		if n != 4 { // after 0, 2, 6 and 14 seconds
			t.Errorf("asked %d times", n)
		}
		last := time.Duration(0)
		for at, was := 30*time.Second, 14*time.Second; at < time.Hour; at += time.Second { // nothing else is ordered
			if asked(now.Add(at)) > 0 {
				last, was = at-was, at
			}
		}
		if last != probeHere {
			t.Errorf("asked every %v in the end", last)
		}
		now = now.Add(time.Hour)
		d.Contact("m")
		at := now.Add(29 * time.Second)
		if order(at); asked(at) != 1 {
			t.Error("not asked after it signed in")
		}
	}
}

// TestConnectionsDoNotMakeQuestions: a minion that is not known to be connected is probed soon after any subscriber
// connects, but not after each one, and not by every master if one has probed over the connections of all.
func TestConnectionsDoNotMakeQuestions(t *testing.T) {
	d := newDeliverer(&fakeWire{}, "a")
	begin := time.Now()
	asked := func(at time.Time) int {
		near, others, _ := d.dueProbes(d.moment(at))
		return len(near) + len(others)
	}
	k := d.peers.of("m")
	d.expectOne(k, d.moment(begin), true)
	n := 0
	for i := range 30 { // the next answer would be awaited for minutes
		n += asked(begin.Add(time.Duration(i) * time.Minute))
	}
	if n < 8 || k.wait != probeLast {
		t.Fatal(n, k.wait)
	}
	now := begin.Add(time.Hour)
	n = 0
	for at := time.Duration(0); at < time.Minute; at += 50 * time.Millisecond { // somebody connects all the time
		d.wakeAwaited(d.moment(now.Add(at)))
		n += asked(now.Add(at))
	}
	if n < 25 || n > 35 { // some with growing pauses, then one each probeWake
		t.Errorf("asked %d times in a minute", n)
	}
	for _, ago := range []time.Duration{0, time.Minute, time.Hour} {
		k.asked, k.next, k.wait = d.now()-ago, d.now(), time.Second
		d.AskedElsewhere([]string{"m", "n"})
		want := min(max(time.Second, ago), probeLast)
		if k.wait < want || k.wait > want+time.Minute || k.next < k.asked+want || d.peers.byID["n"] != nil {
			t.Errorf("another one asked %v after this one: %+v", ago, k)
		}
	}
}

// TestOneOfSeveralMastersSends: the one that a minion has shown to listen to; others look later whether something is left to do.
func TestOneOfSeveralMastersSends(t *testing.T) {
	d := newDeliverer(&fakeWire{all: Here}, "a")
	answer := func(of string) map[string]any {
		return probe.SentBy(probe.Metadata(probe.Listening, false), of)
	}
	d.ExpectElsewhere([]string{"m", "n"}, []string{"m"})
	m, n := d.peers.of("m"), d.peers.of("n")
	if m.state != deferred || n.state != probing {
		t.Errorf("%+v %+v", m, n)
	}
	d.expectOne(m, d.now(), true)
	d.Heard("m", answer("b"))
	if len(d.peers.answers) > 0 || m.state != deferred || m.path != 0 {
		t.Errorf("%+v", m)
	}
	d.Heard("m", answer("a"))
	if !m.answered || m.state != idle || m.path == 0 {
		t.Errorf("%+v", m)
	}
}

// TestARepeatTakesOneWay: a repeat is sent over the connection over which its minion has just answered, and a first
// message over one that is known. Without such a connection it is sent over all.
func TestARepeatTakesOneWay(t *testing.T) {
	d := newDeliverer(&fakeWire{peers: []string{"b"}}, "a")
	d.Heard("proved", probe.SentBy(probe.Metadata(probe.Listening, true), "a"))
	via := map[string]string{"there": "b", "own": "a", "gone": "c"}
	for _, c := range []struct {
		id, want string
		via      map[string]string
	}{
		{"there", "b", via}, {"own", "a", via}, {"gone", "", via}, {"unknown", "", via}, {"proved", "", via}, {"proved", "a", nil}, {"there", "", nil},
	} {
		if got := d.pathTo(c.id, c.via); got != c.want {
			t.Errorf("%s: %q instead of %q", c.id, got, c.want)
		}
	}
	if d = newDeliverer(&fakeWire{all: Here}, "a"); d.pathTo("connected", nil) != "a" || d.pathTo("connected", via) != "a" {
		t.Error("not to the own connection")
	}
}
