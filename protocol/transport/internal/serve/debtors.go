package serve

import (
	"container/list"
	"net"
	"net/netip"
	"time"
)

// debtors are the accepted connections of one listener whose addresses have to pay for earlier messages or handshakes.
// While they wait they have a place, as all connections, but no slot of a handshake: a peer that floods would hold all
// slots, each for as long as its debt. They have as many slots of their own, for which their addresses take turns. An
// address that owes more than handshakeCredit for handshakes has no turn until its next one is paid for. Connections
// whose peers have left cost nothing, or a peer that connects and leaves would keep others of its address out.
// Group.mu guards the fields but added.
type debtors struct {
	added  chan struct{}               // holds a token after push
	byAddr map[netip.Prefix]*addrQueue // those of each address
	turns  []netip.Prefix              // the addresses in byAddr, the next one first; others are skipped
}

// addrQueue is the debtors of one address.
type addrQueue struct {
	list.List               // of *unapproved, oldest first
	looked    *list.Element // the last one that findLeft found connected
}

// lookAtOnce is how many connections findLeft looks at, with a system call each.
const lookAtOnce = 16

func newDebtors() *debtors {
	return &debtors{added: make(chan struct{}, 1), byAddr: make(map[netip.Prefix]*addrQueue)}
}

func (q *debtors) push(u *unapproved) {
	l := q.byAddr[u.addr]
	if l == nil {
		l = new(addrQueue)
		q.byAddr[u.addr] = l
		q.turns = append(q.turns, u.addr)
	}
	u.queue, u.turn = q, l.PushBack(u)
	select {
	case q.added <- struct{}{}:
	default:
	}
}

// remove removes a connection. Its address keeps its turn, so that a peer gains nothing by leaving.
func (q *debtors) remove(u *unapproved) {
	q.byAddr[u.addr].Remove(u.turn)
	u.queue, u.turn = nil, nil
}

// pop removes and returns the oldest connection of the address whose turn it is. If no address may begin a handshake it
// returns nil, and after how long one may, which is 0 if no connection waits. wait returns how long an address waits.
func (q *debtors) pop(wait func(netip.Prefix) time.Duration) (u *unapproved, shortest time.Duration) {
	for range len(q.turns) {
		addr := q.turns[0]
		q.turns = q.turns[1:]
		el := q.byAddr[addr].Front()
		if el == nil {
			delete(q.byAddr, addr)
			continue
		}
		q.turns = append(q.turns, addr)
		if d := wait(addr); d > 0 {
			if shortest == 0 || d < shortest {
				shortest = d
			}
			continue
		}
		u = el.Value.(*unapproved)
		q.remove(u)
		return u, 0
	}
	return nil, shortest
}

// queued returns how many connections of an address wait.
func (q *debtors) queued(addr netip.Prefix) int {
	if l := q.byAddr[addr]; l != nil {
		return l.Len()
	}
	return 0
}

// findLeft returns the oldest connection of an address whose peer has left, or nil. It looks at some of them, and the
// next call at those after them.
func (q *debtors) findLeft(addr netip.Prefix) *unapproved {
	l := q.byAddr[addr]
	if l == nil {
		return nil
	}
	for range min(l.Len(), lookAtOnce) {
		var el *list.Element
		if l.looked != nil {
			el = l.looked.Next() // nil if looked was removed
		}
		if el == nil {
			el = l.Front()
		}
		if u := el.Value.(*unapproved); hasLeft(u.c) {
			return u
		}
		l.looked = el
	}
	return nil
}

// owes reports whether the debt of a new connection's address for messages exceeds shortDebt, or that for handshakes
// its credit.
func (g *Group) owes(c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	addr, now := connPrefix(c), time.Now()
	return g.census.owes(addr, now) || g.census.handshakeWait(addr, 0, now) > 0
}

// beginHandshake charges the handshake of a connection that does not have to wait.
func (g *Group) beginHandshake(c net.Conn, price time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if u := g.conns[c]; u != nil {
		g.census.beginHandshake(u, withTLS(c, price), time.Now())
	}
}

// returnTLS gives an address the price of TLS back: the handshake of its connection failed before this side began to
// compute.
func (g *Group) returnTLS(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if u := g.conns[c]; u != nil { // else it lost its place
		u.began -= priceFactor * tlsPrice
	}
	g.census.begun.refund(connPrefix(c), priceFactor*tlsPrice)
}

// queueDebtor has a connection wait for its turn, without a goroutine. It returns false if it lost its place, the group
// is closed, or the handshakes of its address that wait would take too long. It may replace a connection whose peer has
// left; the caller closes that.
func (g *Group) queueDebtor(q *debtors, c net.Conn, price time.Duration) (left net.Conn, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	u := g.conns[c]
	if u == nil || g.closed {
		return nil, false
	}
	before := time.Duration(q.queued(u.addr)) * withTLS(c, price)
	// guard: handshakes-are-spaced TestHandshakesAreSpaced
	if g.census.handshakeWait(u.addr, before, time.Now()) > handshakeQueue {
		// guard: handshakes-of-leavers TestPeersThatLeave instead: var gone *unapproved
		gone := q.findLeft(u.addr)
		if gone == nil {
			return nil, false
		}
		left = g.expelConn(gone)
	}
	q.push(u)
	return left, true
}

// nextDebtor returns the next connection whose handshake may begin, and charges it. It drops those whose peers have
// left. If no handshake may begin it returns how long to wait, 0 if the queue is empty.
func (g *Group) nextDebtor(q *debtors, price time.Duration) (net.Conn, time.Duration) {
	for {
		c, left, wait := g.popDebtor(q, price)
		if !left {
			return c, wait
		}
		g.Drop(c)
		g.wg.Done()
	}
}

// popDebtor is like nextDebtor, but returns the next connection if its peer has left, too, without a charge.
func (g *Group) popDebtor(q *debtors, price time.Duration) (c net.Conn, left bool, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	u, wait := q.pop(func(addr netip.Prefix) time.Duration {
		if g.closed {
			return 0
		}
		return g.census.handshakeWait(addr, 0, now)
	})
	if u == nil {
		return nil, false, wait
	}
	// guard: handshakes-of-leavers TestPeersThatLeave
	if hasLeft(u.c) {
		return u.c, true, 0
	}
	g.census.beginHandshake(u, withTLS(u.c, price), now)
	return u.c, false, 0
}

// pollDebtors is the shortest pause after which debtors are looked at again, so that thousands of addresses are not
// compared for each handshake.
const pollDebtors = time.Millisecond

// admitDebtors starts the handshakes of debtors until the group is closed. Connections still queued then fail their
// handshake and are dropped.
func (g *Group) admitDebtors(q *debtors, hs Handshake, price time.Duration) {
	slots := newPending(g.o.MaxHandshakes)
	paid := time.NewTimer(0)
	defer paid.Stop()
	for closed := false; ; {
		c, wait := g.nextDebtor(q, price)
		if c != nil {
			g.awaitSlot(slots)
			g.startHandshake(c, slots, hs, price)
			continue
		}
		if closed {
			return
		}
		if paid.Stop(); wait > 0 {
			paid.Reset(max(wait, pollDebtors))
		}
		select {
		case <-q.added:
		case <-paid.C:
		case <-g.ctx.Done():
			closed = true
		}
	}
}
