// Package serve is what the servers of all stream transports share: an accept loop that no peer can stop, the handshake
// under a deadline, the life of connections, the write side of a subscriber, and the memory that unknown peers may claim.
package serve

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

// Group owns the listeners, connections and goroutines of one server.
type Group struct {
	o      transport.ServerOptions
	ctx    context.Context // of handlers; ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	crew   crew
	// closing has an element for each connection that lost its place and is being closed.
	closing chan struct{}

	mu        sync.Mutex // guards the fields below
	listeners []net.Listener
	conns     map[net.Conn]*unapproved // nil for a connection whose peer is known
	census    census
	refusals  refusals
	draining  bool
	closed    bool
	busy      int           // requests being handled, outboxes being written
	idle      chan struct{} // closed when draining and busy is 0; nil before Shutdown
}

// NewGroup makes an empty group; o has its defaults filled.
func NewGroup(o transport.ServerOptions) *Group {
	ctx, cancel := context.WithCancel(context.Background())
	g := &Group{o: o, ctx: ctx, cancel: cancel, closing: make(chan struct{}, maxClosing), conns: make(map[net.Conn]*unapproved),
		census: census{max: o.MaxConnections, byAddr: make(map[netip.Prefix]*list.List)}}
	if g.census.max <= 0 {
		n := descriptors()
		g.census.max = n - min(max(minReserve, n/reservePart), maxReserve) - min(n/httpPart, maxHTTP)
	}
	return g
}

// Context ends when the group is closed.
func (g *Group) Context() context.Context { return g.ctx }

// Handshake makes a fresh connection ready and returns what serves it until its end. It runs under a deadline.
type Handshake func(net.Conn) (Session, error)

// Session is a connection after its handshake. Its methods are called one after the other.
type Session interface {
	// Begin is called first.
	Begin()
	// Await returns when something of the next message is there. Ten thousand goroutines wait in it for hours, each with a stack of its own:
	// it calls next to nothing.
	Await() error
	// Serve takes a message. If there is an answer, that runs where the stack is deep, and the next message is awaited when it has returned.
	Serve() (answer func() error, err error)
	// End is called when an error has ended the connection, before that is closed.
	End()
}

const (
	// maxDescriptors stands for no limit of the system.
	maxDescriptors = 1 << 20
	// One descriptor in reservePart is kept for files, at least minReserve and at most maxReserve.
	reservePart, minReserve, maxReserve = 16, 32, 512
	// maxClosing is how many connections without a place may still have their descriptors.
	maxClosing = minReserve / 2
	// One in httpPart is kept for HTTP, at most maxHTTP.
	httpPart, maxHTTP = 8, 8192
)

// handshakeGrace is how long a handshake is left alone while others wait for its place.
const handshakeGrace = time.Second

// Accept starts the accept loop of one listener. One goroutine per handshake; when there are too many the next connection waits, those
// behind it in the kernel, and the oldest is closed when it has had its time: so ten thousand peers may come at once, and those who connect
// and say nothing cannot keep others out. request tells the port of requests from the one of publishes.
func (g *Group) Accept(ln net.Listener, request bool, hs Handshake) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.draining {
		ln.Close()
		return
	}
	g.listeners = append(g.listeners, ln)
	g.wg.Add(1)
	go g.acceptLoop(ln, request, hs)
}

func (g *Group) acceptLoop(ln net.Listener, request bool, hs Handshake) {
	defer g.wg.Done()
	waiting := &pending{max: g.o.MaxHandshakes, freed: make(chan struct{}, 1)}
	var delay time.Duration
	for {
		c, err := ln.Accept()
		if err != nil {
			if g.stopped() || errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of descriptors, most likely: without a pause this loop would burn a processor until one is free.
			delay = min(max(2*delay, 5*time.Millisecond), time.Second)
			g.close(g.evict(netip.Prefix{}))
			g.o.Log.Warn("Cannot accept connection", "addr", ln.Addr().String(), "err", err, "retry", delay)
			if !g.sleep(delay) {
				return
			}
			continue
		}
		delay = 0
		if evicted := waiting.room(g.ctx); evicted != nil {
			g.o.Log.Debug("Closed oldest handshake, too many", "peer", evicted.RemoteAddr().String())
			g.close(evicted)
		}
		expelled, as := g.add(c, request)
		switch as {
		case noPlace:
			c.Close()
			continue
		case ended:
			c.Close()
			return
		}
		g.close(expelled)
		el := waiting.push(c)
		go g.handshake(c, hs, func() { waiting.remove(el) })
	}
}

// handshake runs in a goroutine of its own that ends with it.
func (g *Group) handshake(c net.Conn, hs Handshake, done func()) {
	var s Session
	err := net.ErrClosed
	// Those before from the same address may have to be paid for.
	if wait := g.charge(c, 0); wait == 0 || g.sleep(wait) {
		if s, err = g.shake(c, hs); err != nil {
			g.charge(c, failurePrice)
		}
	}
	done()
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		g.o.Log.Debug("Refused connection", "peer", c.RemoteAddr().String(), "err", err)
		g.Drop(c)
		g.wg.Done()
		return
	}
	g.next(c, s, g.guarded(c, func() error { s.Begin(); return nil }))
}

func (g *Group) shake(c net.Conn, hs Handshake) (s Session, err error) {
	defer recovered(g.o.Log, c, &err)
	if err := c.SetDeadline(time.Now().Add(g.o.HandshakeTimeout)); err != nil {
		return nil, err
	}
	if t, ok := c.(interface{ HandshakeContext(context.Context) error }); ok {
		if err := t.HandshakeContext(g.ctx); err != nil {
			return nil, err
		}
	}
	return hs(c)
}

// next awaits the next message of a connection, or ends it. What a goroutine has needed of the stack it keeps, so that it is always another one
// that waits: it has the smallest.
func (g *Group) next(c net.Conn, s Session, err error) {
	if err == nil {
		go g.await(c, s)
		return
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, net.ErrClosed) { // the peer did not just go away
		g.o.Log.Debug("Connection ended", "peer", c.RemoteAddr().String(), "err", err)
	}
	_ = g.guarded(c, func() error { s.End(); return nil }) // a panic is logged
	g.Drop(c)
	g.wg.Done()
}

func (g *Group) await(c net.Conn, s Session) {
	if err := g.guarded(c, s.Await); err != nil {
		g.next(c, s, err)
		return
	}
	g.take(c, s)
}

// take serves a message.
func (g *Group) take(c net.Conn, s Session) {
	g.touch(c)
	if wait := g.charge(c, messagePrice); wait > 0 && !g.sleep(wait) {
		g.next(c, s, net.ErrClosed)
		return
	}
	var answer func() error
	err := g.guarded(c, func() (err error) {
		answer, err = s.Serve()
		return err
	})
	if err == nil && answer != nil {
		if !g.Draining() && g.Go(func() {
			deepen(0)
			g.next(c, s, g.guarded(c, answer))
		}) {
			return
		}
		err = net.ErrClosed
	}
	g.next(c, s, err)
}

// guarded runs a part of serving c; a panic becomes its error.
func (g *Group) guarded(c net.Conn, f func() error) (err error) {
	defer recovered(g.o.Log, c, &err)
	return f()
}

// recovered turns a panic, of a library fed by a peer or of a handler, into an error of this one connection.
func recovered(log *slog.Logger, c net.Conn, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("transport: panic: %v", p)
		log.Error("Recovered from panic in connection", "peer", c.RemoteAddr().String(), "err", p, "stack", string(debug.Stack()))
	}
}

// Go runs f in a goroutine, perhaps one that has run others, that Close and Shutdown wait for. It reports false, without running f, after Close.
func (g *Group) Go(f func()) bool {
	if !g.Begin() {
		return false
	}
	g.wg.Add(1)
	task := func() {
		defer g.wg.Done()
		defer g.End()
		f()
	}
	if !g.crew.give(task) {
		g.wg.Go(func() { g.crew.work(task) })
	}
	return true
}

// handlerStack is how deep, in bytes, the stack is at once that a request is answered on. It becomes as deep anyway, in steps each of which
// copies what is on it, when most of a return's calls are; at the start there is next to nothing to copy.
const handlerStack = 12 << 10

// deepen makes room for handlerStack. Every byte of its array is 0.
//
//go:noinline
func deepen(at int) byte {
	var room [handlerStack]byte
	return room[at]
}

// Work runs f, a part of serving c, in a goroutine of its own that Close and Shutdown wait for. An error or a panic closes c.
// It reports false, without running f, when the group is closed or draining.
func (g *Group) Work(c net.Conn, f func() error) bool {
	if g.Draining() {
		return false
	}
	return g.Go(func() {
		deepen(0)
		if err := g.guarded(c, f); err != nil {
			g.o.Log.Debug("Connection ended", "peer", c.RemoteAddr().String(), "err", err)
			c.Close() // who awaits its next message drops it
		}
	})
}

// Begin marks the start of work that Shutdown waits for; false means that the group is closed. Call End after true.
func (g *Group) Begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.busy++
	return true
}

// End marks the end of work.
func (g *Group) End() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	g.signalIdle()
}

// Draining reports whether no new requests should be taken.
func (g *Group) Draining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining || g.closed
}

func (g *Group) signalIdle() {
	if g.draining && g.busy == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

func (g *Group) stopped() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed || g.draining
}

// admission is what became of a new connection.
type admission int

const (
	admitted admission = iota
	noPlace            // every place is taken, and its own address has most of them
	ended              // the group takes no more
)

// add takes c in, with a place in the wait group for its handshake. If all places are taken, c may get the place of another, which the caller closes.
func (g *Group) add(c net.Conn, request bool) (expelled net.Conn, as admission) {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.draining {
		return nil, ended
	}
	// guard: idle-connections protocol/transport/tcp:TestCrowd,protocol/transport/ws:TestCrowd,protocol/transport/zeromq:TestCrowd
	if len(g.conns) >= g.census.max {
		u := g.census.victim(prefix(c), now)
		g.refused(c, u, now)
		if u == nil {
			return nil, noPlace
		}
		expelled = g.expel(u)
	}
	g.conns[c] = g.census.enter(c, request, now)
	g.wg.Add(1)
	return expelled, admitted
}

// evict returns the connection that a newcomer from addr would replace, for the caller to close, when the process is out of descriptors for other
// reasons. It returns nil if there is none.
func (g *Group) evict(addr netip.Prefix) net.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	if u := g.census.victim(addr, time.Now()); u != nil {
		return g.expel(u)
	}
	return nil
}

// expel takes a connection's place. The caller holds mu, and closes the connection without it; its goroutine drops it.
func (g *Group) expel(u *unapproved) net.Conn {
	g.census.leave(u)
	g.conns[u.c] = nil
	return u.c
}

// close closes a connection that lost its place, which may be nil. It waits when many are being closed: a peer that connects faster than closed
// connections end would take the descriptors that are kept for files.
func (g *Group) close(c net.Conn) {
	if c == nil {
		return
	}
	// Close of a TLS connection may wait for its peer.
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = t.NetConn()
	}
	g.closing <- struct{}{}
	go func() {
		defer func() { <-g.closing }()
		c.Close() // returns when the descriptor is free
	}()
}

// touch notes a message of an unapproved connection.
func (g *Group) touch(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if u := g.conns[c]; u != nil {
		g.census.touch(u, time.Now())
	}
}

// charge adds to what the messages of an unapproved connection's address have cost, and returns how long the next one has to wait for it.
func (g *Group) charge(c net.Conn, price time.Duration) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	u := g.conns[c]
	if u == nil {
		return 0
	}
	return g.census.charge(u.addr, price, time.Now())
}

// Bytes charges an unapproved connection for n bytes of a large message; those that come after it wait for them.
func (g *Group) Bytes(c net.Conn, n int64) { g.charge(c, time.Duration(n)*bytePrice) }

// Vouch says that the peer of c is known: its connection has a place that no newcomer takes.
func (g *Group) Vouch(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if u := g.conns[c]; u != nil {
		g.census.leave(u)
		g.conns[c] = nil
	}
}

// EndSilent starts to end request connections of unapproved peers that had no request for so long, until the group is closed.
func (g *Group) EndSilent(limit time.Duration) {
	g.wg.Go(func() { g.endSilent(limit) })
}

func (g *Group) endSilent(limit time.Duration) {
	for g.sleep(limit / 4) {
		g.mu.Lock()
		silent := g.census.silent(time.Now().Add(-limit))
		g.mu.Unlock()
		for _, c := range silent {
			g.o.Log.Debug("Closed connection without a request", "peer", c.RemoteAddr().String())
			go c.Close()
		}
	}
}

// refusals is what was not logged of connections without a place.
type refusals struct {
	logged time.Time
	n      int
}

// refused logs, at most once a minute, that there are too many connections. The caller holds mu.
func (g *Group) refused(c net.Conn, instead *unapproved, now time.Time) {
	g.refusals.n++
	if now.Sub(g.refusals.logged) < time.Minute {
		return
	}
	closed := c
	if instead != nil {
		closed = instead.c
	}
	g.o.Log.Warn("Too many connections, closed one of an unapproved peer", "peer", closed.RemoteAddr().String(),
		"limit", g.census.max, "closed", g.refusals.n)
	g.refusals = refusals{logged: now}
}

// Drop closes c and forgets it.
func (g *Group) Drop(c net.Conn) {
	c.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	if u := g.conns[c]; u != nil {
		g.census.leave(u)
	}
	delete(g.conns, c)
}

// Conns is how many connections there are, handshakes included.
func (g *Group) Conns() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.conns)
}

func (g *Group) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return !g.stopped()
	case <-g.ctx.Done():
		return false
	}
}

// Shutdown closes the listeners, waits for what Begin counted until ctx ends, and closes. The error is ctx's.
func (g *Group) Shutdown(ctx context.Context) error {
	g.mu.Lock()
	g.draining = true
	for _, ln := range g.listeners {
		ln.Close()
	}
	idle := make(chan struct{})
	if g.idle == nil {
		g.idle = idle
	} else {
		idle = g.idle
	}
	g.signalIdle()
	g.mu.Unlock()
	var err error
	select {
	case <-idle:
	case <-g.ctx.Done():
	case <-ctx.Done():
		err = fmt.Errorf("transport: shutdown not finished: %w", ctx.Err())
	}
	g.Close()
	return err
}

// Close ends everything and waits for it.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed = true
	g.cancel()
	g.crew.end()
	for _, ln := range g.listeners {
		ln.Close()
	}
	conns := make([]net.Conn, 0, len(g.conns))
	for c := range g.conns {
		conns = append(conns, c)
	}
	g.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
	g.wg.Wait()
}

// pending is the line of connections in their handshake, oldest first.
type pending struct {
	max   int
	freed chan struct{} // has a token after remove

	mu sync.Mutex
	l  list.List // of shaking
}

type shaking struct {
	c     net.Conn
	since time.Time
}

// room waits until there is a place, and returns whom it has put out of the line for that, if anybody: the oldest that has had its time
// and from whom nothing is there to be read. Somebody who has spoken waits for us.
func (p *pending) room(ctx context.Context) (evicted net.Conn) {
	for {
		wait := handshakeGrace
		p.mu.Lock()
		if p.l.Len() < p.max {
			p.mu.Unlock()
			return nil
		}
		for el := p.l.Front(); el != nil; el = el.Next() {
			s := el.Value.(shaking)
			if left := handshakeGrace - time.Since(s.since); left > 0 {
				wait = left
				break
			}
			if !unread(s.c) {
				p.l.Remove(el)
				p.mu.Unlock()
				return s.c
			}
		}
		p.mu.Unlock()
		t := time.NewTimer(wait)
		select {
		case <-p.freed:
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil
		}
		t.Stop()
	}
}

func (p *pending) push(c net.Conn) *list.Element {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.l.PushBack(shaking{c, time.Now()})
}

func (p *pending) remove(el *list.Element) {
	p.mu.Lock()
	p.l.Remove(el) // does nothing when it was evicted
	p.mu.Unlock()
	select {
	case p.freed <- struct{}{}:
	default:
	}
}
