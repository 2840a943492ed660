package minion

import (
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// TestSlowMasterKeepsItsConnections: a master that answers no request in time loses its publish connection on suspicion,
// in pauses that grow; an answer makes them short again. One that answers something is slow, and loses none.
func TestSlowMasterKeepsItsConnections(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		const slow = 5 * time.Minute // no request waits that long
		answers := func(takes func(v protocol.Verified) time.Duration) {
			f.set(func() {
				f.answer = func(v protocol.Verified) (any, bool) {
					time.Sleep(takes(v))
					return nil, false
				}
			})
		}
		all := func(v protocol.Verified) time.Duration {
			if v.Cmd() == "_pillar" { // for which others wait at a mutex, where this test's clock would stand still
				return 0
			}
			return slow
		}
		answers(all)
		r := newRig(t, n, nil)
		r.start()
		r.until(Connected)
		given := func() int { return r.log.times("reconnecting") }
		time.Sleep(time.Hour)
		auths, _ := f.signIns()
		if n := given(); n < 4 || n > 12 {
			t.Errorf("the connection was given up %d times in an hour without an answer", n)
		}
		if made := r.log.times("Connected to publisher"); made != given()+1 {
			t.Errorf("%d connections, %d given up", made, given())
		}
		if auths > 20 {
			t.Errorf("%d sign-ins", auths)
		}

		answers(func(protocol.Verified) time.Duration { return 0 })
		f.publish(jobMap(jidAt(1), "test.ping", nil))
		f.await("return", isReturn(jidAt(1)))
		time.Sleep(slow)
		answers(all)
		before := given()
		f.publish(jobMap(jidAt(2), "test.ping", nil))
		time.Sleep(45 * time.Second)
		if given() != before+1 {
			t.Errorf("given up %d times when the master stopped to answer", given()-before)
		}

		answers(func(v protocol.Verified) time.Duration {
			if v.Cmd() == "_minion_event" {
				return slow
			}
			return 0
		})
		time.Sleep(time.Hour)
		before = given()
		stop := time.Now().Add(time.Hour)
		for i := 3; time.Now().Before(stop); i++ {
			f.publish(jobMap(jidAt(i), "test.ping", nil))
			go func() { _ = r.m.eachLink()[0].fire(r.m.ctx, "custom", nil, nil) }()
			time.Sleep(5 * time.Second)
		}
		if n := given() - before; n > 0 {
			t.Errorf("given up %d times though the master answered", n)
		}
	})
}

// TestLostAtOnce: a master that accepts the minion and then rejects its session is not asked without pauses.
func TestLostAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, nil)
		r.start()
		r.until(Connected)
		begun, _ := f.signIns()
		stop := time.Now().Add(10 * time.Minute)
		for time.Now().Before(stop) {
			r.m.eachLink()[0].signedOut(errSignedOut)
			time.Sleep(10 * time.Millisecond)
		}
		// Pauses are up to 10 s, 5 on average.
		if n, _ := f.signIns(); n-begun < 10*60/10 || n-begun > 10*60/3 {
			t.Errorf("%d sign-ins in ten minutes", n-begun)
		}
	})
}
