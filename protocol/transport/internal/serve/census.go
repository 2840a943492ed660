package serve

import (
	"container/list"
	"maps"
	"net"
	"net/netip"
	"time"

	"github.com/brine-salt/brine/protocol/peernet"
)

const (
	// silentRequests is how long a request connection of an unapproved peer may stay open without a request. A minion
	// with a pending key asks every ten seconds (option acceptance_wait_time).
	silentRequests = time.Minute
	// ownTurn is how long a connection is safe from new connections of its own address. A minion is approved sooner. A
	// peer that opens and drops thousands of connections is refused at the accept, which costs almost nothing.
	ownTurn = 5 * time.Second
	// messagePrice and bytePrice are the approximate processor time for a message of an unapproved peer: per message,
	// and per byte beyond transport.FreeMessage, which includes garbage collection. The signatures of a sign-in are
	// not included; the master limits those itself.
	messagePrice, bytePrice = 40 * time.Microsecond, 8 * time.Nanosecond
	// HandshakePrice is the same for a connection with the handshake of zeromq, or without one. failurePrice is the
	// least for a handshake that fails, and tlsPrice is added for the signature and the keys of TLS.
	HandshakePrice = 60 * time.Microsecond
	failurePrice   = 200 * time.Microsecond
	tlsPrice       = time.Millisecond
	// priceFactor spaces the messages of one address by this multiple of their price, so that they take a tenth of a
	// processor.
	priceFactor = 10
	// maxDebt limits how long one message waits because of earlier ones.
	maxDebt = time.Second
	// peerCredit is how much of its debt an address does not wait for, for each of its connections with an approved
	// peer, up to maxDebt in total. Thousands of minions behind one address may open their request connections at the
	// same time, and return the results of a job.
	peerCredit = priceFactor * (HandshakePrice + messagePrice)
	// shortDebt is how long a connection waits for earlier messages of its address in the slot of a handshake. If it
	// has to wait longer it is one of the debtors.
	shortDebt = 50 * time.Millisecond
	// handshakeCredit is how much an address may owe for handshakes, in the unit of its other debts, before they are
	// spaced: two seconds of a processor, or 1,800 handshakes with TLS. Thousands of minions behind one address may
	// connect at the same time, and each one that signs in gets its price back.
	handshakeCredit = 20 * time.Second
	// handshakeQueue limits how long handshakes beyond that wait, by the price of those in the queue.
	handshakeQueue = 5 * time.Second
	// maxPaid limits the addresses that are charged. Beyond it accounts that owe nothing are removed, or all of them.
	maxPaid = 8192
)

// A census counts the connections of unapproved peers by address, so that one address cannot take all places. There
// is no fixed share per address, because thousands of minions may be behind one. Only when all places are taken does
// a new connection replace another: the one that was silent for longest, of the address with the most. If addresses
// have equally many, the new connection's own address comes first, then the one whose connection was silent for
// longest. So a crowd of new connections does not replace a command on the master's host that waits for its reply.
// Group.mu guards it.
type census struct {
	max      int // limit for connections of all kinds
	byAddr   map[netip.Prefix]*list.List
	approved map[netip.Prefix]int // connections whose peers are approved
	paid     accounts             // for messages
	begun    accounts             // for handshakes that have begun
}

// accounts are the times at which what addresses have taken will be paid for.
type accounts map[netip.Prefix]time.Time

// account returns when an address will have paid, now at the earliest. It creates the map if needed, and keeps it small.
func (m *accounts) account(addr netip.Prefix, now time.Time) time.Time {
	if *m == nil {
		*m = make(accounts)
	}
	if len(*m) >= maxPaid {
		maps.DeleteFunc(*m, func(_ netip.Prefix, paid time.Time) bool { return paid.Before(now) })
		if len(*m) > maxPaid/2 { // else this would be done for each connection
			clear(*m)
		}
	}
	if paid := (*m)[addr]; paid.After(now) {
		return paid
	}
	return now
}

// refund gives an address back what it was charged.
func (m accounts) refund(addr netip.Prefix, charged time.Duration) {
	if paid, ok := m[addr]; ok {
		m[addr] = paid.Add(-charged)
	}
}

// unapproved is a connection whose peer is not approved yet.
type unapproved struct {
	c       net.Conn
	addr    netip.Prefix
	request bool      // on the request port
	since   time.Time // the time of its last message, or of its accept
	el      *list.Element
	gone    chan struct{} // closed when it loses its place
	charged time.Duration // how much longer messages from its address wait because of it
	began   time.Duration // the same for handshakes
	queue   *debtors      // while it waits there for its handshake
	turn    *list.Element // its place in that queue
}

// connPrefix returns the network that a connection counts under.
func connPrefix(c net.Conn) netip.Prefix { return prefixOf(c.RemoteAddr().String()) }

// prefixOf is like connPrefix for the text of a remote address.
func prefixOf(peer string) netip.Prefix {
	ap, err := netip.ParseAddrPort(peer)
	if err != nil {
		return netip.Prefix{} // a connection in memory has no address
	}
	return peernet.Of(ap.Addr())
}

// addConn counts a new connection.
func (s *census) addConn(c net.Conn, request bool, now time.Time) *unapproved {
	u := &unapproved{c: c, addr: connPrefix(c), request: request, since: now, gone: make(chan struct{})}
	l := s.byAddr[u.addr]
	if l == nil {
		l = list.New()
		s.byAddr[u.addr] = l
	}
	u.el = l.PushBack(u)
	return u
}

// noteMessage moves a connection to the end of its address's list, which is ordered by silence.
func (s *census) noteMessage(u *unapproved, now time.Time) {
	u.since = now
	s.byAddr[u.addr].MoveToBack(u.el)
}

// chargeAddress charges a price to an address. It returns how long the current message must wait.
func (s *census) chargeAddress(addr netip.Prefix, price time.Duration, now time.Time) time.Duration {
	paid := s.paid.account(addr, now)
	credit := s.creditOf(addr)
	wait := min(paid.Sub(now), maxDebt+credit) // the credit may have become less
	s.paid[addr] = now.Add(min(wait+priceFactor*price, maxDebt+credit))
	return max(wait-credit, 0)
}

// creditOf returns how much of its debt an address does not wait for.
func (s *census) creditOf(addr netip.Prefix) time.Duration {
	return min(time.Duration(s.approved[addr])*peerCredit, maxDebt)
}

// owes reports whether a handshake from an address has to wait long for earlier messages.
func (s *census) owes(addr netip.Prefix, now time.Time) bool {
	return max(s.paid[addr].Sub(now), 0)-s.creditOf(addr) > shortDebt
}

// handshakeWait returns how long the next handshake of an address must wait for those that have begun, and for others
// of a total price that will begin before it.
func (s *census) handshakeWait(addr netip.Prefix, others time.Duration, now time.Time) time.Duration {
	// guard: handshakes-are-spaced TestHandshakesAreSpaced instead: return 0
	return max(max(s.begun[addr].Sub(now), 0)+priceFactor*others-handshakeCredit, 0)
}

// beginHandshake charges the handshake of a connection to its address before it begins.
func (s *census) beginHandshake(u *unapproved, price time.Duration, now time.Time) {
	u.began = priceFactor * price
	s.begun[u.addr] = s.begun.account(u.addr, now).Add(u.began)
}

// chargeConn charges a price to the address of a connection. It returns how long the next message must wait.
func (s *census) chargeConn(u *unapproved, price time.Duration, now time.Time) time.Duration {
	before := min(max(s.paid[u.addr].Sub(now), 0), maxDebt+s.creditOf(u.addr))
	wait := s.chargeAddress(u.addr, price, now)
	u.charged += s.paid[u.addr].Sub(now) - before
	return wait
}

// approveConn removes a connection whose peer was approved. What it cost is returned to its address: thousands of
// minions there may come back at once.
func (s *census) approveConn(u *unapproved) {
	s.paid.refund(u.addr, u.charged)
	s.begun.refund(u.addr, u.began)
	s.removeConn(u)
	if s.approved == nil {
		s.approved = make(map[netip.Prefix]int)
	}
	s.approved[u.addr]++
}

// dropApproved removes a connection whose peer was approved.
func (s *census) dropApproved(addr netip.Prefix) {
	if s.approved[addr]--; s.approved[addr] == 0 {
		delete(s.approved, addr)
	}
}

// removeConn removes a connection that was approved or ended.
func (s *census) removeConn(u *unapproved) {
	l := s.byAddr[u.addr]
	if l.Remove(u.el); l.Len() == 0 {
		delete(s.byAddr, u.addr)
	}
}

// findVictim returns the connection that a new one from addr replaces, or nil.
func (s *census) findVictim(addr netip.Prefix, now time.Time) *unapproved {
	var most *list.List
	var of netip.Prefix
	var u *unapproved
	for a, l := range s.byAddr {
		oldest := l.Front().Value.(*unapproved)
		if most == nil || l.Len() > most.Len() ||
			l.Len() == most.Len() && of != addr && (a == addr || oldest.since.Before(u.since)) {
			most, of, u = l, a, oldest
		}
	}
	if most == nil {
		return nil
	}
	// guard: idle-connections TestVictim
	if of == addr && now.Sub(u.since) < ownTurn {
		return nil
	}
	return u
}

// silentConns returns the request connections that were silent since the given time.
func (s *census) silentConns(since time.Time) (out []net.Conn) {
	for _, l := range s.byAddr {
		for el := l.Front(); el != nil; el = el.Next() {
			u := el.Value.(*unapproved)
			if !u.since.Before(since) {
				break
			}
			// guard: idle-connections TestSilentRequests instead: false
			if u.request {
				out = append(out, u.c)
			}
		}
	}
	return out
}
