package serve

import (
	"container/list"
	"net"
	"net/netip"
	"time"
)

// debtors are the accepted connections of one listener whose addresses have to pay for earlier messages. While they
// wait they have a place, as all connections, but no slot of a handshake: a peer that floods would hold all slots, each
// for as long as its debt. They have as many slots of their own, for which their addresses take turns. Group.mu guards
// the fields but added.
type debtors struct {
	added  chan struct{}               // holds a token after push
	byAddr map[netip.Prefix]*list.List // of *unapproved, oldest first
	turns  []netip.Prefix              // the addresses in byAddr, the next one first; others are skipped
}

func newDebtors() *debtors {
	return &debtors{added: make(chan struct{}, 1), byAddr: make(map[netip.Prefix]*list.List)}
}

func (q *debtors) push(u *unapproved) {
	l := q.byAddr[u.addr]
	if l == nil {
		l = list.New()
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

// pop removes and returns the oldest connection of the address whose turn it is, or nil.
func (q *debtors) pop() *unapproved {
	for len(q.turns) > 0 {
		addr := q.turns[0]
		q.turns = q.turns[1:]
		l := q.byAddr[addr]
		el := l.Front()
		if el == nil {
			delete(q.byAddr, addr)
			continue
		}
		q.turns = append(q.turns, addr)
		u := el.Value.(*unapproved)
		q.remove(u)
		return u
	}
	return nil
}

// owes reports whether the debt of a new connection's address exceeds shortDebt.
func (g *Group) owes(c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.census.owes(connPrefix(c), time.Now())
}

// queueDebtor has a connection wait for its turn, without a goroutine. It returns false if it lost its place, or the
// group is closed.
func (g *Group) queueDebtor(q *debtors, c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	u := g.conns[c]
	if u == nil || g.closed {
		return false
	}
	q.push(u)
	return true
}

func (g *Group) popDebtor(q *debtors) net.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	if u := q.pop(); u != nil {
		return u.c
	}
	return nil
}

// admitDebtors starts the handshakes of debtors until the group is closed. Connections still queued then fail their
// handshake and are dropped.
func (g *Group) admitDebtors(q *debtors, hs Handshake, price time.Duration) {
	slots := newPending(g.o.MaxHandshakes)
	for closed := false; !closed; {
		select {
		case <-q.added:
		case <-g.ctx.Done():
			closed = true
		}
		for c := g.popDebtor(q); c != nil; c = g.popDebtor(q) {
			g.awaitSlot(slots)
			g.startHandshake(c, slots, hs, price)
		}
	}
}
