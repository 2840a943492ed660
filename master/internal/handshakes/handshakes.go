// Package handshakes limits the TLS handshakes of clients of the HTTP interface by address, because each takes about a
// millisecond of a processor before the client has proved anything.
package handshakes

import (
	"context"
	"errors"
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

// Space delays the first bytes of the connections of ln, so that one address (a /64 of IPv6) begins rate handshakes per
// second, and burst at once. Connections that would wait longer than Queue are closed. The delay does not hold up the
// connections of other addresses. A connection costs nothing before bytes arrive, nor if it was closed before this side
// wrote any.
func Space(ln net.Listener, rate, burst float64) net.Listener {
	return &listener{ln, ratelimit.New(rate, burst)}
}

type listener struct {
	net.Listener
	account *ratelimit.Limiter
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, account: l.account, closed: make(chan struct{})}, nil
}

// errBusy ends a connection whose address has too many handshakes.
var errBusy = errors.New("too many TLS handshakes of this address")

// conn is a connection whose first bytes wait.
type conn struct {
	net.Conn
	account *ratelimit.Limiter
	begun   sync.Once   // the first bytes have arrived
	charged atomic.Bool // the address has paid, and has not got it back
	wrote   atomic.Bool
	once    sync.Once
	closed  chan struct{}
}

// Read implements net.Conn. A read deadline does not end a call whose bytes wait.
func (c *conn) Read(b []byte) (n int, err error) {
	if n, err = c.Conn.Read(b); n == 0 {
		return n, err
	}
	c.begun.Do(func() {
		if !c.awaitTurn() {
			n, err = 0, errBusy
		}
	})
	return n, err
}

// awaitTurn charges the handshake, and waits until it may begin. It returns false if the connection was closed, as is
// one that would wait for too long.
func (c *conn) awaitTurn() bool {
	now := time.Now()
	// guard: https-handshakes TestSpace instead: _, wait, ok := now, time.Duration(0), true
	wait, ok := c.account.Reserve(c.RemoteAddr().String(), now, Queue)
	if !ok {
		_ = c.Close()
		return false
	}
	c.charged.Store(true)
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.closed:
		c.refund() // Close may have come before the charge
		return false
	}
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	c.wrote.Store(true)
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	// guard: https-unheard TestLeavers
	if !c.wrote.Load() {
		c.refund()
	}
	return c.Conn.Close()
}

// refund gives the address back what it paid, once.
func (c *conn) refund() {
	if c.charged.CompareAndSwap(true, false) {
		c.account.Refund(c.RemoteAddr().String())
	}
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
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.refund()
	}
}
