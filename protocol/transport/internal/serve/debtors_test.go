package serve

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

// handed is a listener whose connections a test provides.
type handed struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newHanded() *handed { return &handed{conns: make(chan net.Conn), done: make(chan struct{})} }

func (h *handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}
func (h *handed) Close() error { h.once.Do(func() { close(h.done) }); return nil }
func (*handed) Addr() net.Addr { return &net.TCPAddr{} }

// silent is a connection whose peer says nothing. It notes that it was closed.
type silent struct {
	from
	once   sync.Once
	closed chan struct{}
}

func newSilent(addr string) *silent {
	return &silent{from: from{addr: addr}, closed: make(chan struct{})}
}

func (c *silent) Read([]byte) (int, error)  { <-c.closed; return 0, io.EOF }
func (*silent) SetDeadline(time.Time) error { return nil }
func (c *silent) Close() error              { c.once.Do(func() { close(c.closed) }); return nil }
func (c *silent) wait() (Session, error) {
	return &session{await: func() error { <-c.closed; return io.EOF }}, nil
}

// owe gives an address a debt.
func (g *Group) owe(addr string, d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.census.chargeAddress(netip.MustParsePrefix(addr), d/priceFactor, time.Now())
}

// TestDebtorsHoldNoSlots: connections from an address that has to pay for earlier messages wait beside the slots for handshakes. Those of
// other addresses begin theirs at once, and another address with a debt does not wait for all of the first.
func TestDebtorsHoldNoSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, crowd, debt = 10, 200, 900 * time.Millisecond
		g := group(t, func(o *transport.ServerOptions) { o.MaxHandshakes = slots })
		l := newHanded()
		begin := time.Now()
		var mu sync.Mutex
		var others int       // handshakes of addresses without a debt
		var debtors []string // addresses of the other ones, in their order
		g.Accept(l, true, func(c net.Conn) (Session, error) {
			mu.Lock()
			defer mu.Unlock()
			switch ip, after := connPrefix(c).Addr().String(), time.Since(begin); {
			case strings.HasPrefix(ip, "10.0.1."):
				if others++; after > 0 {
					t.Errorf("the handshake of %s began after %v", ip, after)
				}
			default:
				if debtors = append(debtors, ip); after < debt || after > 2*debt {
					t.Errorf("the handshake of %s began after %v", ip, after)
				}
			}
			return c.(*silent).wait()
		}, HandshakePrice)
		g.owe("10.0.0.1/32", debt)
		g.owe("10.0.0.2/32", debt)
		for i := range crowd {
			l.conns <- newSilent(fmt.Sprintf("10.0.0.1:%d", i+1))
		}
		l.conns <- newSilent("10.0.0.2:1")
		for i := range 3 * slots {
			l.conns <- newSilent(fmt.Sprintf("10.0.1.%d:1", i))
		}
		synctest.Wait()
		mu.Lock()
		if others != 3*slots {
			t.Errorf("%d handshakes of other addresses began at once, want %d", others, 3*slots)
		}
		mu.Unlock()
		time.Sleep(3 * debt)
		mu.Lock()
		defer mu.Unlock()
		if at := slices.Index(debtors, "10.0.0.2"); len(debtors) != crowd+1 || at < 0 || at > 2*slots {
			t.Errorf("%d handshakes of addresses in debt, that of the second address was number %d", len(debtors), at)
		}
		if n := g.Conns(); n != crowd+1+3*slots {
			t.Errorf("%d connections", n)
		}
	})
}

// TestDebtorsLoseTheirPlaces: connections that wait because of a debt are replaced like others, at once and for good, and Close ends them.
func TestDebtorsLoseTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 100
		g := group(t, func(o *transport.ServerOptions) { o.MaxHandshakes, o.MaxConnections = 10, places })
		l := newHanded()
		var honest atomic.Int32
		g.Accept(l, true, func(c net.Conn) (Session, error) {
			if c.RemoteAddr().String() == "10.1.0.1:1" {
				honest.Add(1)
			}
			return c.(*silent).wait()
		}, HandshakePrice)
		var all []*silent
		come := func(addr string) {
			c := newSilent(addr)
			all = append(all, c)
			l.conns <- c
		}
		for i := range 4 {
			addr := fmt.Sprintf("10.0.0.%d", i)
			g.owe(addr+"/32", maxDebt)
			for port := range places {
				come(fmt.Sprintf("%s:%d", addr, port+1))
			}
		}
		synctest.Wait()
		g.mu.Lock()
		conns, lost := len(g.conns), len(g.lost)
		g.mu.Unlock()
		if conns != places+lost || lost > 20 {
			t.Errorf("%d connections, %d of them lost their place and are kept", conns, lost)
		}
		come("10.1.0.1:1")
		synctest.Wait()
		if honest.Load() != 1 {
			t.Error("a connection without a debt waits for its handshake")
		}
		g.Close()
		for _, c := range all {
			select {
			case <-c.closed:
			default:
				t.Fatalf("%s is open after Close", c.addr)
			}
		}
		if g.Conns() != 0 {
			t.Errorf("%d connections after Close", g.Conns())
		}
	})
}

// TestGraceBeginsAfterPayment: a connection that had to wait because of a debt has as much time for its handshake as any other, also if the
// debt is as long as that.
func TestGraceBeginsAfterPayment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, func(o *transport.ServerOptions) { o.MaxHandshakes = 1 })
		l := newHanded()
		var done atomic.Int32
		g.Accept(l, true, func(c net.Conn) (Session, error) {
			select {
			case <-c.(*silent).closed:
				t.Errorf("%s was closed in its handshake", c.RemoteAddr())
			case <-time.After(handshakeGrace / 2):
				done.Add(1)
			}
			return c.(*silent).wait()
		}, HandshakePrice)
		g.owe("10.0.0.1/32", maxDebt)
		g.owe("10.0.0.2/32", maxDebt)
		l.conns <- newSilent("10.0.0.1:1")
		l.conns <- newSilent("10.0.0.2:1")
		time.Sleep(5 * time.Second)
		if done.Load() != 2 {
			t.Errorf("%d handshakes, want 2", done.Load())
		}
	})
}

// TestHandshakesAreSpaced: an address begins as many handshakes at once as its credit allows, and then no more than a tenth of a processor
// can serve, however many connections it opens. Some of them wait, the others are closed. Handshakes of other addresses begin at once. An
// address whose peers are approved has its credit again.
func TestHandshakesAreSpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const price = time.Millisecond
		const atOnce, perSecond, queued = int(handshakeCredit / (priceFactor * price)), int(time.Second / (priceFactor * price)), int(handshakeQueue / (priceFactor * price))
		g := group(t, func(o *transport.ServerOptions) { o.MaxConnections = 100_000 })
		l := newHanded()
		var flood atomic.Int32
		var approve atomic.Bool
		began := make(chan string, 10)
		g.Accept(l, true, func(c net.Conn) (Session, error) {
			if ip := connPrefix(c).Addr().String(); ip != "10.0.0.1" {
				began <- ip
			} else {
				flood.Add(1)
			}
			s, err := c.(*silent).wait()
			if approve.Load() {
				s.(*session).begin = func() error { g.Vouch(c); return nil }
			}
			return s, err
		}, price)
		port, all := 0, []*silent{}
		open := func(n int) {
			for range n {
				port++
				c := newSilent(fmt.Sprintf("10.0.0.1:%d", port%65535+1))
				all = append(all, c)
				l.conns <- c
			}
			synctest.Wait()
		}
		first := time.Now()
		// The flood goes on for a minute.
		for second := range 60 {
			open(1000)
			l.conns <- newSilent(fmt.Sprintf("10.0.%d.2:1", second))
			synctest.Wait()
			select {
			case <-began:
			default:
				t.Fatalf("after %d s the handshake of another address has not begun", second)
			}
			time.Sleep(time.Second)
		}
		most := atOnce + int(time.Since(first).Seconds()+1)*perSecond
		if n := int(flood.Load()); n > most || n < most*9/10 {
			t.Errorf("%d handshakes of the flood in a minute, want at most %d", n, most)
		}
		waiting := 0
		for _, c := range all {
			select {
			case <-c.closed:
			default:
				waiting++
			}
		}
		if waiting -= int(flood.Load()); waiting < queued*3/4 || waiting > queued+1 {
			t.Errorf("%d connections of the flood wait, want %d", waiting, queued)
		}
		// The queue is served, and with time the credit is as before.
		time.Sleep(handshakeQueue + handshakeCredit)
		approve.Store(true)
		before := flood.Load()
		begin := time.Now()
		for range 10 {
			open(atOnce / 2)
			time.Sleep(maxDebt + time.Millisecond) // for its messages
		}
		synctest.Wait()
		if n := int(flood.Load() - before); n != 5*atOnce {
			t.Errorf("%d of %d handshakes of approved peers in %v", n, 5*atOnce, time.Since(begin))
		}
	})
}
