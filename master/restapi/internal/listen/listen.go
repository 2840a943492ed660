// Package listen limits the connections of an HTTP server: their total number, their number per address, and
// how long a client may take to receive an answer.
package listen

import (
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/master/internal/peercred"
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
		from:     make(map[source]int),
	}
}

type limited struct {
	net.Listener
	slots chan struct{}
	each  int
	once  sync.Once
	done  chan struct{}

	mu   sync.Mutex // guards from
	from map[source]int
}

// source is who has a connection: a network, or a user of this host on a unix socket. The zero value is unknown.
type source struct {
	network netip.Prefix
	user    string // decimal id
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
		from := sourceOf(c)
		if l.enter(from) {
			return &limitedConn{Conn: c, l: l, source: from}, nil
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

// enter counts a connection of a source, unless it has too many. A user of this host may have as many as are free
// besides, which is half of all if no other has any: a user may be a proxy, for whose clients each would be too few.
func (l *limited) enter(from source) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.from[from]
	if from.network.IsValid() && n >= l.each {
		return false
	}
	// guard: sockets-of-one-user master/restapi:TestSocketsAreShared
	if from.user != "" && n > cap(l.slots)-len(l.slots) {
		return false
	}
	l.from[from]++
	return true
}

// sourceOf returns whose connection it is, as far as the system knows.
func sourceOf(c net.Conn) source {
	if t, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return source{network: peernet.Of(t.AddrPort().Addr())}
	}
	if cred, err := peercred.Of(c); err == nil {
		return source{user: strconv.FormatUint(uint64(cred.UID), 10)}
	}
	return source{}
}

type limitedConn struct {
	net.Conn
	l      *limited
	source source
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
