package serve

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestUnknownSubscribers: of the connections without a name from an address without a known minion, a few receive
// publishes. The others receive them, and those that they missed within seconds, when a minion becomes known there:
// the peer of one of them, or of a request.
func TestUnknownSubscribers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoster(nil)
		got := map[*Member]string{}
		publish := func(msg string, topics ...string) {
			r.Each(topics, 1, func(m *Member, late bool) {
				got[m] += msg
				if late {
					got[m] += " late "
				}
			})
			time.Sleep(time.Millisecond)
		}
		port := 1000
		join := func(addr string, n int) (ms []*Member) {
			for range n {
				port++
				ms = append(ms, r.Add(fmt.Sprintf("%s:%d", addr, port), nil, nil, nil))
			}
			return ms
		}
		texts := func(ms []*Member) string {
			var all []string
			for _, m := range ms {
				all = append(all, got[m])
			}
			return strings.Join(slices.Compact(all), ",")
		}
		check := func(ms []*Member, want string) {
			t.Helper()
			if got := texts(ms); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}

		crowd := join("10.0.0.1", unknownShare+4)
		first, rest := crowd[:unknownShare], crowd[unknownShare:]
		other := join("10.0.0.2", 1)
		publish("a")
		publish("b", "web1")
		publish("c", "web2")
		check(first, "abc")
		check(rest, "")
		check(other, "abc")
		if rest[0].Receives() || r.MinionAt(crowd[0].peer) || r.kept == nil {
			t.Error("a connection that gets nothing counts, or a minion is known, or nothing is kept")
		}
		// A place that becomes free is not given to an earlier connection.
		r.Remove(first[0])
		publish("d")
		check(rest, "")
		check(join("10.0.0.1", 2)[:1], "")
		publish("e", "web3")

		// One identifies itself: the others there may be minions too.
		r.NamePeer(rest[1].peer, "web2")
		check(rest[1:2], "acd")
		check([]*Member{rest[0], rest[2], rest[3]}, "abcde")
		check(first[1:], "abcde")
		if !r.MinionAt(rest[0].peer) || !rest[0].Receives() || r.MinionAt(other[0].peer) {
			t.Error("a minion is known at the wrong place")
		}
		publish("f")
		check(rest[1:2], "acdf")
		check(rest[2:], "abcdef")
		after := join("10.0.0.1", 50)
		publish("g")
		check(after, "g")

		// An hour after a minion was last seen, the address counts as unknown again.
		for m := range r.all {
			r.Remove(m)
		}
		time.Sleep(minionTime - time.Second)
		check(join("10.0.0.1", 1), "")
		for m := range r.all {
			r.Remove(m)
		}
		if a := r.at[prefixOf("10.0.0.1:1")]; a == nil || a.share+a.withheld+a.named != 0 {
			t.Errorf("left %+v", a)
		}
		time.Sleep(time.Second)
		crowd = join("10.0.0.1", unknownShare+2)
		publish("h")
		check(crowd[unknownShare:], "")
		// A request makes the address known, too. Messages older than a few seconds are not sent.
		time.Sleep(withheldTime)
		publish("i")
		if !r.proveAddress(prefixOf("10.0.0.1:9")) {
			t.Error("nobody is to be released")
		}
		r.releaseAt(prefixOf("10.0.0.1:9"))
		check(crowd[unknownShare:], "")
		publish("j")
		check(crowd[unknownShare:], "j")
		check(crowd[:unknownShare], "hij")
	})
}

// TestAddressesAreForgotten: the state of addresses is bounded by their connections and minions.
func TestAddressesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoster(nil)
		for i := range 2 * maxAddresses {
			m := r.Add(fmt.Sprintf("10.%d.%d.1:1", i>>8, i&0xff), nil, nil, nil)
			if i%4 == 0 {
				r.proveAddress(m.addr)
			}
			r.Remove(m)
		}
		if len(r.at) != maxAddresses/2 {
			t.Errorf("%d addresses, want those of %d minions", len(r.at), maxAddresses/2)
		}
		time.Sleep(minionTime)
		for i := range maxAddresses {
			r.Add(fmt.Sprintf("11.%d.%d.1:1", i>>8, i&0xff), nil, nil, nil)
		}
		if len(r.at) != maxAddresses {
			t.Errorf("%d addresses, want %d", len(r.at), maxAddresses)
		}
	})
}
