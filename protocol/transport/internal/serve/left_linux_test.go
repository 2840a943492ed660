package serve

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/tlsconf"
)

// leaver is a connection whose peer can leave without notice.
type leaver struct {
	*silent
	left atomic.Bool
}

func newLeaver(addr string, left bool) *leaver {
	c := &leaver{silent: newSilent(addr)}
	c.left.Store(left)
	return c
}

// SyscallConn implements syscall.Conn.
func (c *leaver) SyscallConn() (syscall.RawConn, error) {
	if c.left.Load() {
		return nil, net.ErrClosed
	}
	return stays{}, nil
}

// stays is a connection about which the kernel says nothing.
type stays struct{ syscall.RawConn }

func (stays) Control(f func(uintptr)) error { f(^uintptr(0)); return nil }

// TestPeersThatLeave: connections whose peers have left while they wait for their handshake cost their address nothing, and new ones replace
// them in a full queue, however many others stay before them.
func TestPeersThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const price = time.Millisecond
		const queued = int(handshakeQueue / (priceFactor * price))
		const stay = 3 * lookAtOnce
		g := group(t, func(o *transport.ServerOptions) { o.MaxConnections = 100_000 })
		addr := netip.MustParsePrefix("10.0.0.1/32")
		l := newHanded()
		var began atomic.Int32
		g.Accept(l, true, func(c net.Conn) (Session, error) {
			began.Add(1)
			return c.(*leaver).wait()
		}, price)
		g.mu.Lock()
		g.census.begun = map[netip.Prefix]time.Time{addr: time.Now().Add(handshakeCredit + time.Millisecond)}
		g.mu.Unlock()
		port, all := 0, []*leaver{}
		open := func(n int) {
			for range n {
				port++
				c := newLeaver(fmt.Sprintf("10.0.0.1:%d", port), false)
				all = append(all, c)
				l.conns <- c
			}
			synctest.Wait()
		}
		closed := func(from, to int) (n int) {
			for _, c := range all[from:to] {
				select {
				case <-c.closed:
					n++
				default:
				}
			}
			return n
		}
		open(queued)
		if n := closed(0, queued); n != 0 {
			t.Fatalf("%d of %d were closed", n, queued)
		}
		for _, c := range all[stay:] {
			c.left.Store(true)
		}
		// Some are refused until those that have left are found. Those then make room for as many others.
		const more = 100
		open(more + stay/lookAtOnce)
		if n := closed(queued, len(all)); n > stay/lookAtOnce {
			t.Errorf("%d of %d later connections were closed", n, more)
		}
		if n := closed(0, stay); n != 0 {
			t.Errorf("%d were closed that stay", n)
		}
		if n := closed(stay, queued); n < more {
			t.Errorf("%d that have left were replaced, not %d", n, more)
		}
		time.Sleep(time.Duration(stay+more+10) * priceFactor * price)
		if n := int(began.Load()); n < stay+more || n > stay+more+stay/lookAtOnce {
			t.Errorf("%d handshakes began, not %d", n, stay+more)
		}
		if g.Conns() != int(began.Load()) {
			t.Errorf("%d connections", g.Conns())
		}
	})
}

// TestPriceOfTLS: an address pays for the signature of TLS only if its peer sent a ClientHello. One that connects and leaves could otherwise
// lock out others that share its address.
func TestPriceOfTLS(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(nil, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	hello := helloOf(t)
	for _, c := range []struct {
		name  string
		sent  []byte
		price time.Duration
	}{
		{"nothing", nil, HandshakePrice},
		{"half a ClientHello", hello[:len(hello)/2], HandshakePrice},
		{"another protocol", []byte("GET / HTTP/1.0\r\n\r\n"), HandshakePrice},
		{"a ClientHello", hello, HandshakePrice + tlsPrice},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := group(t, nil)
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			g.Accept(tlsconf.WrapListener(config)(ln), true, func(net.Conn) (Session, error) { return nil, io.EOF }, HandshakePrice)
			const n = 4 // more would have to wait for the price of their messages
			addr, begin := netip.MustParsePrefix("127.0.0.1/32"), time.Now()
			// The account does not become empty during the test.
			before := begin.Add(handshakeCredit / 2)
			g.mu.Lock()
			g.census.begun = map[netip.Prefix]time.Time{addr: before}
			g.mu.Unlock()
			for range n {
				peer, err := net.Dial("tcp", ln.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := peer.Write(c.sent); err != nil {
					t.Fatal(err)
				}
				// The server closes the connection when its handshake has failed.
				if err := peer.(*net.TCPConn).CloseWrite(); err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, peer)
				peer.Close()
			}
			g.mu.Lock()
			begun, paid := g.census.begun[addr].Sub(before), g.census.paid[addr]
			g.mu.Unlock()
			end := time.Now()
			if want := n * priceFactor * c.price; begun != want {
				t.Errorf("%d handshakes cost %v, not %v", n, begun, want)
			}
			// Its messages wait for it, too. What is owed becomes less while the test runs.
			if took := paid.Sub(begin); c.price > tlsPrice && took < n*priceFactor*tlsPrice {
				t.Errorf("%d handshakes cost later messages %v", n, took)
			}
			if owed := paid.Sub(end); c.price < tlsPrice && owed > n*priceFactor*max(c.price, failurePrice) {
				t.Errorf("after %d handshakes without TLS %v are owed", n, owed)
			}
		})
	}
}

// helloOf returns a ClientHello.
func helloOf(t *testing.T) []byte {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		_ = tls.Client(there, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(context.Background())
		there.Close()
	}()
	b := make([]byte, 16<<10)
	n, err := here.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}
