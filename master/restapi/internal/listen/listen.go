// Package listen limits the connections of an HTTP server: their total number, their number per address, and
// how long a client may take to receive an answer.
package listen

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/protocol/peernet"
)

// WriteTimeout is the time limit for sending one event.
const WriteTimeout = 30 * time.Second

// Limit limits the connections of a listener, in total and per address; see restapi.Limit.
func Limit(ln net.Listener, all, each int) net.Listener {
	return &limited{
		Listener: ln,
		slots:    make(chan struct{}, all),
		each:     each,
		done:     make(chan struct{}),
		from:     make(map[netip.Prefix]int),
	}
}

type limited struct {
	net.Listener
	slots chan struct{}
	each  int
	once  sync.Once
	done  chan struct{}

	mu   sync.Mutex // guards from
	from map[netip.Prefix]int
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		select {
		case l.slots <- struct{}{}:
		case <-l.done:
			return nil, net.ErrClosed
		}
		c, err := l.Listener.Accept()
		if err != nil {
			<-l.slots
			return nil, err
		}
		source := sourceNetwork(c.RemoteAddr())
		l.mu.Lock()
		full := source.IsValid() && l.from[source] >= l.each
		if !full {
			l.from[source]++
		}
		l.mu.Unlock()
		if !full {
			return &limitedConn{Conn: c, l: l, source: source}, nil
		}
		_ = c.Close()
		<-l.slots
	}
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// sourceNetwork returns the network of an address that counts as one source.
func sourceNetwork(a net.Addr) netip.Prefix {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	return peernet.Of(t.AddrPort().Addr())
}

type limitedConn struct {
	net.Conn
	l      *limited
	source netip.Prefix
	once   sync.Once
	own    atomic.Bool // the server has set a write deadline
}

// writePiece is how many bytes a client must receive within WriteTimeout.
const writePiece = 64 << 10

// Write implements net.Conn. Each piece has its own deadline, unless the server has set one.
func (c *limitedConn) Write(b []byte) (n int, err error) {
	if c.own.Load() {
		return c.Conn.Write(b)
	}
	for {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(WriteTimeout)); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(b[n:min(len(b), n+writePiece)])
		n += m
		if err != nil || n == len(b) {
			return n, err
		}
	}
}

// NetConn returns the underlying connection.
func (c *limitedConn) NetConn() net.Conn { return c.Conn }

// SetWriteDeadline implements net.Conn.
func (c *limitedConn) SetWriteDeadline(t time.Time) error {
	c.own.Store(!t.IsZero())
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *limitedConn) SetDeadline(t time.Time) error {
	c.own.Store(!t.IsZero())
	return c.Conn.SetDeadline(t)
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.l.mu.Lock()
		if c.l.from[c.source]--; c.l.from[c.source] == 0 {
			delete(c.l.from, c.source)
		}
		c.l.mu.Unlock()
		<-c.l.slots
	})
	return err
}
