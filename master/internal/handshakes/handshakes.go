// Package handshakes limits the TLS handshakes of clients of the HTTP interface by address, because each takes about a
// millisecond of a processor before the client has proved anything.
package handshakes

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/master/internal/ratelimit"
)

// Rate and Burst are the handshakes of one address per second, which take a tenth of a processor, and at once. Further
// ones wait up to Queue.
const (
	Rate, Burst = 80, 2000
	Queue       = 5 * time.Second
)

// Space delays the first read of the connections of ln, so that one address (a /64 of IPv6) begins rate handshakes per
// second, and burst at once. Connections that would wait longer than Queue are closed. The delay does not hold up the
// connections of other addresses.
func Space(ln net.Listener, rate, burst float64) net.Listener {
	return &listener{ln, ratelimit.New(rate, burst)}
}

type listener struct {
	net.Listener
	account *ratelimit.Limiter
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		now := time.Now()
		// guard: https-handshakes TestSpace instead: _, wait, ok := now, time.Duration(0), true
		wait, ok := l.account.Reserve(c.RemoteAddr().String(), now, Queue)
		if ok {
			return &conn{Conn: c, account: l.account, begin: now.Add(wait),
				closed: make(chan struct{})}, nil
		}
		_ = c.Close()
	}
}

// conn is a connection whose first read waits.
type conn struct {
	net.Conn
	account *ratelimit.Limiter
	begin   time.Time // of its handshake
	begun   sync.Once
	proven  atomic.Bool
	once    sync.Once
	closed  chan struct{}
}

// Read implements net.Conn. A read deadline that passes while the first call waits ends that call after the wait.
func (c *conn) Read(b []byte) (int, error) {
	c.begun.Do(func() {
		t := time.NewTimer(time.Until(c.begin))
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.closed:
		}
	})
	return c.Conn.Read(b)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// NetConn returns the underlying connection.
func (c *conn) NetConn() net.Conn { return c.Conn }

type connKey struct{}

// WithConn returns a context for Proven, for the requests of a connection. It is for http.Server's field ConnContext.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	for {
		if spaced, ok := c.(*conn); ok {
			return context.WithValue(ctx, connKey{}, spaced)
		}
		outer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return ctx
		}
		c = outer.NetConn()
	}
}

// Proven gives the address of a request back what its connection took, because its client has proved who it is.
func Proven(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok && c.proven.CompareAndSwap(false, true) {
		c.account.Refund(c.RemoteAddr().String())
	}
}
