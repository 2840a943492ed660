package serve

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

// from is a connection from a given address.
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
			s.addConn(from{addr: a}, true, start.Add(time.Duration(i)*time.Millisecond))
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
		{"its own address, too soon", fill("10.0.0.1:1", "10.0.0.2:1", "10.0.0.2:2"), "10.0.0.2:3", ownTurn - time.Second, ""},
		{"its own address, later", fill("10.0.0.1:1", "10.0.0.2:1", "10.0.0.2:2"), "10.0.0.2:3", ownTurn + time.Second, "10.0.0.2:1"},
		{"as many as the newcomer's own", fill("10.0.0.1:1", "10.0.0.2:1"), "10.0.0.2:3", 0, ""},
		{"as many as the newcomer's own, among others", fill("10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"), "10.0.0.2:3", ownTurn + time.Second, "10.0.0.2:1"},
		{"as many from each, the longest silent", fill("10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1", "10.0.0.4:1", "10.0.0.5:1"), "10.0.0.9:1", 0, "10.0.0.1:1"},
		{"one host's IPv6 network", fill("10.0.0.1:1", "[2001:db8::1]:1", "[2001:db8::2]:1"), "10.0.0.9:1", 0, "[2001:db8::1]:1"},
		{"two networks of IPv6", fill("[2001:db8:0:1::1]:1", "[2001:db8:0:2::2]:1", "[2001:db8:0:2::3]:1"), "10.0.0.9:1", 0, "[2001:db8:0:2::2]:1"},
		{"IPv4 in IPv6 form", fill("10.0.0.1:1", "[::ffff:10.0.0.2]:1", "10.0.0.2:2"), "10.0.0.9:1", 0, "[::ffff:10.0.0.2]:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if u := c.s.findVictim(connPrefix(from{addr: c.by}), start.Add(c.after)); u != nil {
				got = u.c.(from).addr
			}
			if got != c.want {
				t.Errorf("victim %q, want %q", got, c.want)
			}
		})
	}
}

// TestPeerCredit: an address waits for less of its debt the more connections of approved peers it has, up to maxDebt. A
// connection that ended, or lost its place before it was approved, does not count.
func TestPeerCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, nil)
		defer g.Close()
		g.census.max = 2000
		addr := netip.MustParsePrefix("10.0.0.1/32")
		debt := func() time.Duration {
			g.mu.Lock()
			defer g.mu.Unlock()
			delete(g.census.paid, addr)
			g.census.chargeAddress(addr, 2*maxDebt/priceFactor, time.Now())
			return g.census.chargeAddress(addr, 0, time.Now())
		}
		var conns []net.Conn
		for i := range 2000 {
			c := from{addr: fmt.Sprintf("10.0.0.1:%d", i+1)}
			if _, as := g.addConn(c, true); as != admitted {
				t.Fatal("not admitted")
			}
			g.wg.Done() // there is no handshake
			conns = append(conns, c)
		}
		if got := debt(); got != maxDebt {
			t.Errorf("without an approved peer it waits %v", got)
		}
		for _, c := range conns[:500] {
			g.Vouch(c)
			g.Vouch(c) // counts once
		}
		credit := g.census.creditOf(addr)
		if got := debt(); credit != 500*peerCredit || got != maxDebt {
			t.Errorf("with 500 approved peers it has a credit of %v and waits %v", credit, got)
		}
		// An address that was never charged, or whose account was cleared, owes nothing.
		g.census.paid = nil
		if g.census.owes(addr, time.Now()) {
			t.Error("without an account its connections are debtors")
		}
		// A hundred handshakes at once cost less than the credit.
		g.census.paid = nil
		for range 100 {
			if wait := g.census.chargeAddress(addr, HandshakePrice, time.Now()); wait != 0 {
				t.Fatalf("waits %v", wait)
			}
		}
		if g.census.owes(addr, time.Now()) {
			t.Error("its connections are debtors")
		}
		for _, c := range conns[500:1900] {
			g.Vouch(c)
		}
		if credit := g.census.creditOf(addr); credit != maxDebt {
			t.Errorf("the credit of 1,900 approved peers is %v", credit)
		}
		g.mu.Lock()
		lost := g.expelConn(g.conns[conns[1950]])
		g.mu.Unlock()
		g.Drop(lost)
		// A debt with credit is cut when the credit ends, and what a connection was charged does not become negative.
		g.mu.Lock()
		u := g.conns[conns[1960]]
		g.census.paid = nil
		g.census.chargeConn(u, maxDebt, time.Now())
		u.charged = 0
		g.mu.Unlock()
		for _, c := range conns[:1900] {
			g.Drop(c)
			g.Drop(c) // counts once
		}
		g.mu.Lock()
		if wait := g.census.chargeConn(u, messagePrice, time.Now()); wait != maxDebt || u.charged < 0 {
			t.Errorf("without the credit it waits %v, charged %v", wait, u.charged)
		}
		g.mu.Unlock()
		for _, c := range conns[1900:] {
			g.Drop(c)
		}
		if n := len(g.census.approved); n != 0 {
			t.Errorf("%d addresses have approved peers, and no connections", n)
		}
	})
}

// TestSilentRequests: a request connection of an unapproved peer is closed after a minute without a request. A
// connection with requests stays open, and so do an approved one and a subscriber.
func TestSilentRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, nil)
		g.EndSilent(silentRequests)
		end := func(request bool) (net.Conn, chan struct{}) {
			a, b := net.Pipe()
			if _, as := g.addConn(a, request); as != admitted {
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
			g.noteMessage(asking)
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

// slowConn takes a while to close, like a descriptor that another goroutine reads.
type slowConn struct {
	from
	open   *atomic.Int32
	closed chan struct{}
	ended  atomic.Bool
}

func (c *slowConn) Read([]byte) (int, error)    { <-c.closed; return 0, net.ErrClosed }
func (c *slowConn) SetDeadline(time.Time) error { return nil }
func (c *slowConn) Close() error {
	if c.ended.CompareAndSwap(false, true) {
		time.Sleep(100 * time.Millisecond)
		c.open.Add(-1)
		close(c.closed)
	}
	return nil
}

// arrivingConns is a listener with an endless supply of connections.
type arrivingConns struct {
	open, most *atomic.Int32
	accepted   atomic.Int32
	closed     atomic.Bool
}

func (l *arrivingConns) Accept() (net.Conn, error) {
	if time.Sleep(time.Millisecond); l.closed.Load() {
		return nil, net.ErrClosed
	}
	n := l.accepted.Add(1)
	l.most.Store(max(l.most.Load(), l.open.Add(1)))
	return &slowConn{from: from{addr: fmt.Sprintf("10.0.%d.%d:1", n/256, n%256)}, open: l.open, closed: make(chan struct{})}, nil
}
func (l *arrivingConns) Close() error { l.closed.Store(true); return nil }
func (*arrivingConns) Addr() net.Addr { return &net.TCPAddr{} }

// TestPlacesAreFreed: even if connections arrive fast and others end slowly, there are never many beyond the limit.
func TestPlacesAreFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, func(o *transport.ServerOptions) { o.MaxConnections = 20 })
		l := &arrivingConns{open: new(atomic.Int32), most: new(atomic.Int32)}
		g.Accept(l, true, func(c net.Conn) (Session, error) {
			return &session{await: func() error { _, err := c.Read(nil); return err }}, nil
		}, HandshakePrice)
		time.Sleep(3 * time.Second)
		if n := l.most.Load(); n > 20+maxClosing+1 {
			t.Errorf("%d connections were open at once, at most %d are allowed", n, 20+maxClosing+1)
		}
		if n := l.accepted.Load(); n < 400 {
			t.Errorf("only %d were accepted", n)
		}
	})
}

// TestLostPlacesAreBounded: few connections that lost their place while their request is answered exist beyond the
// limit, however many arrive. When the replies are sent there is room again.
func TestLostPlacesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 20
		g := group(t, func(o *transport.ServerOptions) { o.MaxConnections = most })
		l := &arrivingConns{open: new(atomic.Int32), most: new(atomic.Int32)}
		slow := make(chan struct{})
		var at, served atomic.Int32
		g.Accept(l, true, func(net.Conn) (Session, error) {
			return &session{await: func() error { return nil }, answer: func() error {
				at.Add(1)
				served.Add(1)
				<-slow
				at.Add(-1)
				return net.ErrClosed
			}}, nil
		}, HandshakePrice)
		time.Sleep(3 * time.Second)
		if n := at.Load(); n < most || n > most+minLost {
			t.Errorf("%d requests are answered at once, want %d to %d", n, most, most+minLost)
		}
		before := served.Load()
		close(slow)
		time.Sleep(3 * time.Second)
		if served.Load() < before+100 {
			t.Errorf("only %d more were served", served.Load()-before)
		}
	})
}

// TestCharge: messages of one address are spaced by the price of earlier ones, up to a limit, and do not delay other
// addresses.
func TestCharge(t *testing.T) {
	s := &census{byAddr: make(map[netip.Prefix]*list.List)}
	now := time.Unix(1e9, 0)
	flood, other := netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.2/32")
	for i := range 10 {
		if got, want := s.chargeAddress(flood, messagePrice, now), time.Duration(i)*priceFactor*messagePrice; got != want {
			t.Errorf("message %d waits %v, want %v", i, got, want)
		}
	}
	if got := s.chargeAddress(other, messagePrice, now); got != 0 {
		t.Errorf("another address waits %v", got)
	}
	if got := s.chargeAddress(flood, 0, now.Add(10*priceFactor*messagePrice)); got != 0 {
		t.Errorf("waits %v for what is paid for", got)
	}
	for range 10 {
		s.chargeAddress(flood, time.Second, now)
	}
	if got := s.chargeAddress(flood, 0, now); got != maxDebt {
		t.Errorf("waits %v, want %v", got, maxDebt)
	}
}

// TestFailuresArePaced: handshakes that fail delay the next ones of their address.
func TestFailuresArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, nil)
		p := newPending(1000)
		var last time.Duration
		begin := time.Now()
		for range 100 {
			_, c := net.Pipe()
			g.addConn(c, true)
			g.runHandshake(c, func(net.Conn) (Session, error) { last = time.Since(begin); return nil, errors.New("no") }, HandshakePrice, p, p.push(c))
		}
		if want := 99 * priceFactor * failurePrice; last != want {
			t.Errorf("the last one began after %v, want %v", last, want)
		}
	})
}

// TestConnectionsArePaced: handshakes that succeed hold up the next ones of their address, unless their peer is approved.
func TestConnectionsArePaced(t *testing.T) {
	for _, approved := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := group(t, nil)
			p := newPending(1000)
			begin := time.Now()
			var last time.Duration
			for range 100 {
				_, c := net.Pipe()
				g.addConn(c, true)
				g.runHandshake(c, func(net.Conn) (Session, error) {
					last = time.Since(begin)
					return &session{await: func() error { return io.EOF }, begin: func() error {
						if approved {
							g.Vouch(c)
						}
						return nil
					}}, nil
				}, HandshakePrice, p, p.push(c))
			}
			synctest.Wait()
			want := 99 * priceFactor * HandshakePrice
			if approved {
				want = 0
			}
			if last != want {
				t.Errorf("approved %v: the last one began after %v, want %v", approved, last, want)
			}
		})
	}
}

// TestMessagesArePaced: messages of an unapproved connection are served at the pace of their price, those of an
// approved one at once.
func TestMessagesArePaced(t *testing.T) {
	for _, approved := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := group(t, nil)
			a, b := net.Pipe()
			defer a.Close()
			g.addConn(b, true)
			if approved {
				g.Vouch(b)
			}
			served := 0
			stop := errors.New("enough")
			begin := time.Now()
			var took time.Duration
			done := make(chan struct{})
			g.awaitNext(b, &session{await: func() error {
				if served == 1000 {
					took = time.Since(begin)
					close(done)
					return stop
				}
				served++
				return nil
			}}, nil)
			<-done
			if want := 999 * priceFactor * messagePrice; approved && took != 0 || !approved && took != want {
				t.Errorf("approved %v: 1,000 messages took %v, want %v", approved, took, want)
			}
		})
	}
}

// TestAccountsAreBounded: at maxPaid addresses the accounts that owe nothing are removed. If too many owe something all
// are removed.
func TestAccountsAreBounded(t *testing.T) {
	now := time.Now()
	addr := func(n int) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), 32)
	}
	for owing, want := range map[int]int{10: 11, maxPaid / 2: maxPaid/2 + 1, maxPaid/2 + 1: 1, maxPaid: 1} {
		var all accounts
		for n := range maxPaid {
			paid := all.account(addr(n), now)
			if n < owing {
				paid = paid.Add(time.Second)
			} else {
				paid = paid.Add(-time.Second)
			}
			all[addr(n)] = paid
		}
		all[addr(maxPaid)] = all.account(addr(maxPaid), now).Add(time.Second)
		if len(all) != want {
			t.Errorf("%d of %d addresses owe something: %d accounts are left, want %d", owing, maxPaid, len(all), want)
		}
	}
}
