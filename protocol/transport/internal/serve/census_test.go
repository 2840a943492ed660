package serve

import (
	"container/list"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// from is a connection from an address.
type from struct {
	net.Conn
	addr string
}

func (f from) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(f.addr)) }
func (from) Close() error           { return nil }

func TestVictim(t *testing.T) {
	start := time.Unix(1e9, 0)
	fill := func(addrs ...string) *census {
		s := &census{byAddr: make(map[netip.Prefix]*list.List)}
		for i, a := range addrs {
			s.enter(from{addr: a}, true, start.Add(time.Duration(i)*time.Millisecond))
		}
		return s
	}
	for _, c := range []struct {
		name  string
		s     *census
		by    string
		after time.Duration
		want  string
	}{
		{"nobody there", fill(), "10.0.0.9:1", 0, ""},
		{"the oldest of the address that has most", fill("10.0.0.1:1", "10.0.0.2:1", "10.0.0.2:2"), "10.0.0.9:1", 0, "10.0.0.2:1"},
		{"its own address, too soon", fill("10.0.0.1:1", "10.0.0.2:1", "10.0.0.2:2"), "10.0.0.2:3", 0, ""},
		{"its own address, a second later", fill("10.0.0.1:1", "10.0.0.2:1", "10.0.0.2:2"), "10.0.0.2:3", 1100 * time.Millisecond, "10.0.0.2:1"},
		{"as many as the newcomer's own", fill("10.0.0.1:1", "10.0.0.2:1"), "10.0.0.2:3", 0, ""},
		{"one host's IPv6 network", fill("10.0.0.1:1", "[2001:db8::1]:1", "[2001:db8::2]:1"), "10.0.0.9:1", 0, "[2001:db8::1]:1"},
		{"two networks of IPv6", fill("[2001:db8:0:1::1]:1", "[2001:db8:0:2::2]:1", "[2001:db8:0:2::3]:1"), "10.0.0.9:1", 0, "[2001:db8:0:2::2]:1"},
		{"IPv4 in IPv6 form", fill("10.0.0.1:1", "[::ffff:10.0.0.2]:1", "10.0.0.2:2"), "10.0.0.9:1", 0, "[::ffff:10.0.0.2]:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if u := c.s.victim(prefix(from{addr: c.by}), start.Add(c.after)); u != nil {
				got = u.c.(from).addr
			}
			if got != c.want {
				t.Errorf("victim %q, want %q", got, c.want)
			}
		})
	}
}

// TestSilentRequests: a request connection of an unapproved peer ends when there was no request for a minute. One with requests
// stays, and so do an approved one and a subscriber.
func TestSilentRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, nil)
		g.EndSilent(silentRequests)
		end := func(request bool) (net.Conn, chan struct{}) {
			a, b := net.Pipe()
			if g.add(a, request) != admitted {
				t.Fatal("not admitted")
			}
			g.wg.Done() // there is no handshake
			gone := make(chan struct{})
			go func() {
				_, _ = b.Read(make([]byte, 1))
				close(gone)
			}()
			t.Cleanup(func() { a.Close() })
			return a, gone
		}
		_, silent := end(true)
		asking, asked := end(true)
		known, approved := end(true)
		_, subscriber := end(false)
		g.Vouch(known)
		for range 10 {
			time.Sleep(10 * time.Second)
			g.touch(asking)
		}
		synctest.Wait()
		is := func(c chan struct{}) bool {
			select {
			case <-c:
				return true
			default:
				return false
			}
		}
		if !is(silent) || is(asked) || is(approved) || is(subscriber) {
			t.Errorf("closed: silent %v, asking %v, approved %v, subscriber %v", is(silent), is(asked), is(approved), is(subscriber))
		}
		g.Close()
	})
}
