// Package serve is the server side that all stream transports share: an accept loop that no peer can stop, handshakes
// under a deadline, the life of connections, the write side of subscribers, and limits on the memory, places and
// processor time of unauthenticated peers.
//
//	Accept ─▶ acceptLoop ─▶ a place (census) ─▶ runHandshake ─▶ Session.Begin
//	             │ no place: the longest silent one is closed   ▲     │
//	             │                                  debtors ────┘     │
//	             ▼                                                    ▼
//	        next connection      poller ──▶ Session.Await (small stack) ──▶ charge the address
//	                               ▲                                      │
//	                               └── answer (crew, deep stack) ◀── Session.Serve
//
// A peer counts as unapproved until a handler calls transport.Approve. Until then its memory comes from a [Budget],
// its messages are charged to its address, and its connection may lose its place. Afterwards none of this applies.
//
// Publishes go through the [Roster], which knows the subscribers and their minions, to one [Outbox] per subscriber.
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

// A Group owns the listeners, connections and goroutines of one server.
type Group struct {
	o       transport.ServerOptions
	ctx     context.Context // the context of handlers; Close ends it
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	crew    crew
	answers answers
	// closing limits the connections that lost their place and are still being closed.
	closing chan struct{}

	mu        sync.Mutex // guards the fields below
	listeners []net.Listener
	conns     map[net.Conn]*unapproved // nil for a connection whose peer is approved
	lost      map[net.Conn]struct{}    // those that lost their place and whose goroutines still run
	census    census
	refusals  refusals
	draining  bool
	poller    *poller // nil before the first connection of TCP
	closed    bool
	busy      int           // requests in progress and outboxes being written
	idle      chan struct{} // closed when draining and busy is 0; nil before Shutdown
}

// NewGroup returns an empty group. o must have its defaults filled in.
func NewGroup(o transport.ServerOptions) *Group {
	ctx, cancel := context.WithCancel(context.Background())
	g := &Group{o: o, ctx: ctx, cancel: cancel, closing: make(chan struct{}, maxClosing), conns: make(map[net.Conn]*unapproved),
		lost:   make(map[net.Conn]struct{}),
		census: census{max: o.MaxConnections, byAddr: make(map[netip.Prefix]*list.List)}}
	if g.census.max <= 0 {
		n := descriptorLimit()
		g.census.max = n - min(max(minReserve, n/reservePart), maxReserve) - min(n/httpPart, maxHTTP)
	}
	return g
}

// Context returns a context that ends when the group is closed.
func (g *Group) Context() context.Context { return g.ctx }

// A Handshake prepares a new connection and returns the Session that serves it. It runs under a deadline.
type Handshake func(net.Conn) (Session, error)

// A Session is a connection after its handshake. Its methods are called one after another.
type Session interface {
	// Begin is called first.
	Begin()
	// Await returns when the next message begins to arrive. Where there is no poller, ten thousand goroutines wait in
	// it for hours, each with its own stack, so its calls must be shallow.
	Await() error
	// Serve reads a message. If it returns an answer function, that runs on a deep stack, and the next message is
	// awaited after it has returned.
	Serve() (answer func() error, err error)
	// End is called when an error ended the connection, before it is closed.
	End()
}

// A Sleeper is a Session that can wait in a poller, without a goroutine.
type Sleeper interface {
	Session
	// Sleep reports whether no byte of the next message was read, so that the poller sees when it begins. It
	// releases what only Await needs.
	Sleep() bool
}

const (
	// maxDescriptors is used on a system without a limit.
	maxDescriptors = 1 << 20
	// One descriptor in reservePart is reserved for files, at least minReserve and at most maxReserve.
	reservePart, minReserve, maxReserve = 16, 32, 512
	// Of all places, one in lostPart, at least minLost, may be exceeded by connections that lost their place and have
	// not ended.
	lostPart, minLost = 8, 64
	// maxClosing is how many connections without a place may still have their descriptors.
	maxClosing = minReserve / 2
	// One descriptor in httpPart is reserved for the HTTP interface, at most maxHTTP.
	httpPart, maxHTTP = 8, 8192
)

// handshakeGrace is how long a handshake is safe while others wait for its place.
const handshakeGrace = time.Second

// Accept starts the accept loop of one listener, with one goroutine per handshake. If there are too many handshakes,
// the next connection waits, later ones wait in the kernel, and the oldest handshake is closed after its grace. So
// ten thousand peers may connect at once, and silent peers cannot keep others out. Connections whose address has to
// pay for earlier messages or handshakes wait in a queue of their own. Of those that wait for handshakes, the ones that
// would wait longer than handshakeQueue are closed. request is true for the request port. An unapproved peer pays price
// for its connection.
func (g *Group) Accept(ln net.Listener, request bool, hs Handshake, price time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.draining {
		ln.Close()
		return
	}
	g.listeners = append(g.listeners, ln)
	g.wg.Add(1)
	go g.acceptLoop(ln, request, hs, price)
}

// acceptLoop accepts until the listener is closed. Errors do not end it: a server that stops accepting when
// descriptors run out would need a restart.
func (g *Group) acceptLoop(ln net.Listener, request bool, hs Handshake, price time.Duration) {
	defer g.wg.Done()
	waiting, late := newPending(g.o.MaxHandshakes), newDebtors()
	g.wg.Go(func() { g.admitDebtors(late, hs, price) })
	var delay time.Duration
	for {
		c, err := ln.Accept()
		if err != nil {
			if g.isStopped() || errors.Is(err, net.ErrClosed) {
				return
			}
			// Most likely the process has no free descriptor. Without a pause this loop would use a whole processor
			// until one is free.
			delay = min(max(2*delay, 5*time.Millisecond), time.Second)
			g.closeConn(g.evictConn(netip.Prefix{}))
			g.o.Log.Warn("Cannot accept connection", "addr", ln.Addr().String(), "err", err, "retry", delay)
			if !g.sleep(delay) {
				return
			}
			continue
		}
		delay = 0
		c = g.watch(c)
		// guard: handshakes-in-debt TestDebtorsHoldNoSlots instead: inDebt := false
		inDebt := g.owes(c)
		if !inDebt {
			g.awaitSlot(waiting)
		}
		expelled, as := g.addConn(c, request)
		switch as {
		case noPlace:
			c.Close()
			continue
		case ended:
			c.Close()
			return
		}
		g.closeConn(expelled)
		if !inDebt {
			g.beginHandshake(c, price)
			g.startHandshake(c, waiting, hs, price)
			continue
		}
		left, ok := g.queueDebtor(late, c, price)
		g.closeConn(left)
		if !ok {
			g.Drop(c)
			g.wg.Done()
		}
	}
}

// awaitSlot waits until a handshake may begin. The oldest one may be closed for that.
func (g *Group) awaitSlot(p *pending) {
	if evicted := p.awaitRoom(g.ctx); evicted != nil {
		g.o.Log.Debug("Closed oldest handshake, too many", "peer", evicted.RemoteAddr().String())
		g.closeConn(evicted)
	}
}

func (g *Group) startHandshake(c net.Conn, p *pending, hs Handshake, price time.Duration) {
	el := p.push(c)
	go g.runHandshake(c, hs, price, p, el)
}

// runHandshake runs in its own goroutine.
func (g *Group) runHandshake(c net.Conn, hs Handshake, price time.Duration, p *pending, el *list.Element) {
	var s Session
	err := net.ErrClosed
	// Earlier messages from this address may have to be paid for first. The grace begins after that.
	wait := g.chargeConn(c, 0)
	if wait > 0 {
		p.delay(el, wait)
	}
	if wait == 0 || g.awaitPaid(c, wait) {
		if s, err = g.performHandshake(c, hs); err != nil {
			price = max(price, failurePrice)
		}
		// guard: handshakes-unheard TestPriceOfTLS instead: true
		if err == nil || heard(c) {
			price = withTLS(c, price)
		}
		g.chargeConn(c, price)
	}
	// guard: handshakes-unheard TestPriceOfTLS
	if err != nil && !heard(c) {
		g.returnTLS(c)
	}
	p.remove(el)
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		g.o.Log.Debug("Refused connection", "peer", c.RemoteAddr().String(), "err", err)
		g.Drop(c)
		g.wg.Done()
		return
	}
	g.awaitNext(c, s, g.runGuarded(c, func() error { s.Begin(); return nil }))
}

// tlsConn is a connection whose TLS handshake is not done yet.
type tlsConn interface {
	HandshakeContext(ctx context.Context) error
}

// heard reports whether a connection with TLS has received a ClientHello, so that this side computed. It returns true
// for one that cannot say so, or has no TLS.
func heard(c net.Conn) bool {
	t, ok := c.(interface{ Heard() bool })
	return !ok || t.Heard()
}

// withTLS returns the price of a handshake with that of TLS, if it has one.
func withTLS(c net.Conn, price time.Duration) time.Duration {
	if _, ok := c.(tlsConn); ok {
		price += tlsPrice
	}
	return price
}

// performHandshake runs the TLS handshake, if there is one, and hs under one deadline.
func (g *Group) performHandshake(c net.Conn, hs Handshake) (s Session, err error) {
	defer recoverPanic(g.o.Log, c, &err)
	if err := c.SetDeadline(time.Now().Add(g.o.HandshakeTimeout)); err != nil {
		return nil, err
	}
	if t, ok := c.(tlsConn); ok {
		if err := t.HandshakeContext(g.ctx); err != nil {
			return nil, err
		}
	}
	return hs(c)
}

// awaitNext has the poller wait for the next message of a connection, or ends the connection. Where there is no
// poller it starts a new goroutine each time, because a goroutine keeps the stack that it once needed.
func (g *Group) awaitNext(c net.Conn, s Session, err error) {
	if err == nil {
		if !park(c, s) {
			go g.awaitMessage(c, s)
		}
		return
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, net.ErrClosed) { // the peer did not simply disconnect
		g.o.Log.Debug("Connection ended", "peer", c.RemoteAddr().String(), "err", err)
	}
	_ = g.runGuarded(c, func() error { s.End(); return nil }) // a panic in End is only logged
	g.Drop(c)
	g.wg.Done()
}

func (g *Group) awaitMessage(c net.Conn, s Session) {
	if err := g.runGuarded(c, s.Await); err != nil {
		g.awaitNext(c, s, err)
		return
	}
	g.serveMessage(c, s)
}

// serveMessage serves one message.
func (g *Group) serveMessage(c net.Conn, s Session) {
	g.noteMessage(c)
	if !g.PayMessages(c, 1) {
		g.awaitNext(c, s, net.ErrClosed)
		return
	}
	var answer func() error
	err := g.runGuarded(c, func() (err error) {
		answer, err = s.Serve()
		return err
	})
	if err == nil && answer != nil {
		if !g.Draining() && g.goAnswer(func() {
			deepenStack(0)
			g.awaitNext(c, s, g.runGuarded(c, answer))
		}) {
			return
		}
		err = net.ErrClosed
	}
	g.awaitNext(c, s, err)
}

// runGuarded runs f, which serves c, and returns a panic as an error.
func (g *Group) runGuarded(c net.Conn, f func() error) (err error) {
	defer recoverPanic(g.o.Log, c, &err)
	return f()
}

// recoverPanic turns a panic of a library that parses a peer's bytes, or of a handler, into an error of this
// connection.
func recoverPanic(log *slog.Logger, c net.Conn, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("transport: panic: %v", p)
		log.Error("Recovered from panic in connection", "peer", c.RemoteAddr().String(), "err", p, "stack", string(debug.Stack()))
	}
}

// Go runs f in a goroutine, possibly a reused one. Close and Shutdown wait for it. After Close it returns false
// without running f.
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
	if !g.crew.giveTask(task) {
		g.wg.Go(func() { g.crew.runTasks(task) })
	}
	return true
}

// goAnswer is Go for the answer to a request, which counts as running until f returns.
func (g *Group) goAnswer(f func()) bool {
	g.answers.begin()
	if g.Go(func() { defer g.answers.end(); f() }) {
		return true
	}
	g.answers.end()
	return false
}

// handlerStack is the stack, in bytes, that a request gets at once. The stack would grow to that size anyway, but in
// steps that each copy it while the request's calls are on it. At the start there is almost nothing to copy.
const handlerStack = 12 << 10

// deepenStack grows the stack of its goroutine to handlerStack. The value that it returns is always 0.
//
//go:noinline
func deepenStack(at int) byte {
	var room [handlerStack]byte
	return room[at]
}

// Work runs f, which serves c, in a goroutine that Close and Shutdown wait for. An error or a panic closes c. It
// returns false without running f if the group is closed or draining.
func (g *Group) Work(c net.Conn, f func() error) bool {
	if g.Draining() {
		return false
	}
	return g.goAnswer(func() {
		deepenStack(0)
		if err := g.runGuarded(c, f); err != nil {
			g.o.Log.Debug("Connection ended", "peer", c.RemoteAddr().String(), "err", err)
			c.Close() // the goroutine in Await drops the connection
		}
	})
}

// Begin marks the start of work that Shutdown waits for. It returns false if the group is closed; otherwise call End.
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

// Draining reports whether the group refuses new requests.
func (g *Group) Draining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining || g.closed
}

// signalIdle wakes Shutdown when there is no work left. The caller holds mu.
func (g *Group) signalIdle() {
	if g.draining && g.busy == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

func (g *Group) isStopped() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed || g.draining
}

// An admission is the decision about a new connection.
type admission int

const (
	admitted admission = iota
	noPlace            // all places are taken, most of them by this address
	ended              // the group accepts no more connections
)

// addConn gives c a place and counts its handshake in the wait group. If all places are taken, c may replace another
// connection, which the caller closes.
func (g *Group) addConn(c net.Conn, request bool) (expelled net.Conn, as admission) {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.draining {
		return nil, ended
	}
	// guard: idle-connections protocol/transport/tcp:TestCrowd,protocol/transport/ws:TestCrowd,protocol/transport/zeromq:TestCrowd
	if len(g.conns) >= g.census.max {
		// Each lost connection keeps the memory of its current request. Without a bound, peers that reconnect as soon
		// as they are closed would take all memory while a database is slow.
		// guard: lost-connections TestLostPlacesAreBounded
		if len(g.lost) >= max(g.census.max/lostPart, minLost) {
			g.logRefusal(c, nil, now)
			return nil, noPlace
		}
		u := g.census.findVictim(connPrefix(c), now)
		g.logRefusal(c, u, now)
		if u == nil {
			return nil, noPlace
		}
		expelled = g.expelConn(u)
	}
	g.conns[c] = g.census.addConn(c, request, now)
	g.wg.Add(1)
	return expelled, admitted
}

// evictConn returns the connection that a new one from addr would replace, for the caller to close when the process
// has no free descriptor. It returns nil if there is none to replace.
func (g *Group) evictConn(addr netip.Prefix) net.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	if u := g.census.findVictim(addr, time.Now()); u != nil {
		return g.expelConn(u)
	}
	return nil
}

// expelConn takes a connection's place. The caller holds mu and closes the connection after unlocking; the
// connection's goroutine, if it has one, then drops it.
func (g *Group) expelConn(u *unapproved) net.Conn {
	g.census.removeConn(u)
	close(u.gone)
	if u.queue != nil {
		u.queue.remove(u)
		delete(g.conns, u.c)
		g.wg.Done()
		return u.c
	}
	g.conns[u.c] = nil
	g.lost[u.c] = struct{}{}
	return u.c
}

// closeConn closes a connection that lost its place; c may be nil. It waits while too many are being closed: a peer
// that connects faster than closed connections end would otherwise use up the descriptors reserved for files.
func (g *Group) closeConn(c net.Conn) {
	if c == nil {
		return
	}
	// Closing a TLS connection may wait for its peer, so the TCP connection below is closed.
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = t.NetConn()
	}
	g.closing <- struct{}{}
	go func() {
		defer func() { <-g.closing }()
		c.Close() // returns when the descriptor is free
	}()
}

// noteMessage notes a message of an unapproved connection.
func (g *Group) noteMessage(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if u := g.conns[c]; u != nil {
		g.census.noteMessage(u, time.Now())
	}
}

// chargeConn charges the address of an unapproved connection. It returns how long the current message must wait.
func (g *Group) chargeConn(c net.Conn, price time.Duration) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	u := g.conns[c]
	if u == nil {
		return 0
	}
	return g.census.chargeConn(u, price, time.Now())
}

// Bytes charges an unapproved connection for n bytes of a large message. Later messages wait accordingly.
func (g *Group) Bytes(c net.Conn, n int64) { g.chargeConn(c, time.Duration(n)*bytePrice) }

// PayMessages charges an unapproved connection for n messages, and waits until earlier messages of its address are paid
// for. The group itself charges one message before each Session.Serve; a transport calls PayMessages for others that it
// reads within Serve, such as pings. It returns false if the connection lost its place meanwhile, or the group stopped.
func (g *Group) PayMessages(c net.Conn, n int) bool {
	wait := g.chargeConn(c, time.Duration(n)*messagePrice)
	return wait == 0 || g.awaitPaid(c, wait)
}

// Vouch marks the peer of c as approved: no new connection takes its place.
func (g *Group) Vouch(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if u := g.conns[c]; u != nil {
		g.census.approveConn(u)
		g.conns[c] = nil
	}
}

// EndSilent closes, until the group is closed, request connections of unapproved peers that were silent for longer
// than limit.
func (g *Group) EndSilent(limit time.Duration) {
	g.wg.Go(func() { g.endSilent(limit) })
}

func (g *Group) endSilent(limit time.Duration) {
	for g.sleep(limit / 4) {
		g.mu.Lock()
		silent := g.census.silentConns(time.Now().Add(-limit))
		g.mu.Unlock()
		for _, c := range silent {
			g.o.Log.Debug("Closed connection without a request", "peer", c.RemoteAddr().String())
			go c.Close()
		}
	}
}

// refusals counts connections without a place since the last log line.
type refusals struct {
	logged time.Time
	n      int
}

// logRefusal logs that there are too many connections, at most once a minute. The caller holds mu.
func (g *Group) logRefusal(c net.Conn, instead *unapproved, now time.Time) {
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

// Drop closes c and removes it.
func (g *Group) Drop(c net.Conn) {
	c.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	u, has := g.conns[c]
	_, lost := g.lost[c]
	switch {
	case u != nil:
		g.census.removeConn(u)
	case has && !lost:
		g.census.dropApproved(connPrefix(c))
	}
	delete(g.conns, c)
	delete(g.lost, c)
}

// Conns returns how many connections there are, including those in their handshake.
func (g *Group) Conns() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.conns)
}

// awaitPaid waits until earlier messages of a connection's address are paid for. It returns false if the connection
// lost its place meanwhile, or the group stopped.
func (g *Group) awaitPaid(c net.Conn, wait time.Duration) bool {
	g.mu.Lock()
	u := g.conns[c]
	_, lost := g.lost[c]
	g.mu.Unlock()
	if lost || u == nil {
		return !lost && g.sleep(wait)
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return !g.isStopped()
	case <-u.gone:
		return false
	case <-g.ctx.Done():
		return false
	}
}

// sleep waits for d. It returns false if the group stopped.
func (g *Group) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return !g.isStopped()
	case <-g.ctx.Done():
		return false
	}
}

// Shutdown closes the listeners, waits until the work that Begin counted is done or ctx ends, and closes the group.
// It returns ctx's error, if any.
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

// Close closes everything and waits for the end.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed = true
	g.cancel()
	g.crew.endAll()
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
	g.mu.Lock()
	p := g.poller
	g.poller = nil
	g.mu.Unlock()
	if p != nil {
		p.close()
	}
}

// pending is the queue of connections in their handshake, oldest first.
type pending struct {
	max   int
	freed chan struct{} // holds a token after remove

	mu sync.Mutex
	l  list.List // of shaking
}

type shaking struct {
	c     net.Conn
	since time.Time // when its grace began, or begins
}

func newPending(most int) *pending { return &pending{max: most, freed: make(chan struct{}, 1)} }

// awaitRoom waits until there is a place. It returns the connection that it removed for that, or nil: the oldest one
// whose grace is over and that has no unread bytes. A peer that sent bytes waits for us, not we for it.
func (p *pending) awaitRoom(ctx context.Context) (evicted net.Conn) {
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
				wait = min(wait, left)
				continue
			}
			if !hasUnread(s.c) {
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

// delay has the grace of a handshake begin after wait.
func (p *pending) delay(el *list.Element, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	el.Value = shaking{el.Value.(shaking).c, time.Now().Add(wait)}
}

func (p *pending) remove(el *list.Element) {
	p.mu.Lock()
	p.l.Remove(el) // does nothing if awaitRoom removed it already
	p.mu.Unlock()
	select {
	case p.freed <- struct{}{}:
	default:
	}
}
