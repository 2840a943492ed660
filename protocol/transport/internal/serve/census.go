package serve

import (
	"container/list"
	"net"
	"net/netip"
	"time"

	"github.com/brine-salt/brine/protocol/peernet"
)

const (
	// silentRequests is how long a request connection of an unapproved peer may stay without a request. A minion whose key waits
	// for acceptance asks every ten seconds.
	silentRequests = time.Minute
	// ownTurn is how long a connection is left alone by newcomers from its own address. A minion's takes no longer until its peer is known; a
	// peer that opens and drops thousands is refused at the accept, which costs next to nothing.
	ownTurn = 5 * time.Second
	// messagePrice and bytePrice are about what a message of an unapproved peer costs of a processor's time, without a sign-in's signatures, for which
	// the master has limits of its own: for itself, and for each byte of one beyond transport.FreeMessage, which the garbage collector sees as well.
	messagePrice, bytePrice = 40 * time.Microsecond, 8 * time.Nanosecond
	// failurePrice is the same for a handshake that fails.
	failurePrice = 200 * time.Microsecond
	// priceFactor is how many times their price the messages of one address are apart: they take a tenth of a processor.
	priceFactor = 10
	// maxDebt bounds how long one message waits for those before it.
	maxDebt = time.Second
	// maxPaid bounds the addresses that are charged; beyond it all of them begin again.
	maxPaid = 8192
)

// census counts the connections of unapproved peers by address, so that one address cannot take the places of all others. There
// is no fixed share: thousands of minions may be behind one address. Only when all places are taken does a newcomer get the
// place of the connection that was silent for the longest time, of the address that has most. Group.mu guards it.
type census struct {
	max    int // connections of all kinds
	byAddr map[netip.Prefix]*list.List
	paid   map[netip.Prefix]time.Time // when the messages of an address are paid for
}

// unapproved is a connection that nothing is known about.
type unapproved struct {
	c       net.Conn
	addr    netip.Prefix
	request bool      // it is on the request port
	since   time.Time // its last message, or its arrival
	el      *list.Element
}

// prefix returns the network that a connection counts for.
func prefix(c net.Conn) netip.Prefix { return prefixOf(c.RemoteAddr().String()) }

// prefixOf is prefix for the remote address as text.
func prefixOf(peer string) netip.Prefix {
	ap, err := netip.ParseAddrPort(peer)
	if err != nil {
		return netip.Prefix{} // a connection in memory
	}
	return peernet.Of(ap.Addr())
}

// enter counts a new connection.
func (s *census) enter(c net.Conn, request bool, now time.Time) *unapproved {
	u := &unapproved{c: c, addr: prefix(c), request: request, since: now}
	l := s.byAddr[u.addr]
	if l == nil {
		l = list.New()
		s.byAddr[u.addr] = l
	}
	u.el = l.PushBack(u)
	return u
}

// touch notes a message of a connection.
func (s *census) touch(u *unapproved, now time.Time) {
	u.since = now
	s.byAddr[u.addr].MoveToBack(u.el)
}

// charge adds a price to those of an address, and returns how long its next message has to wait.
func (s *census) charge(addr netip.Prefix, price time.Duration, now time.Time) time.Duration {
	paid := s.paid[addr]
	if paid.Before(now) {
		paid = now
	}
	if s.paid == nil {
		s.paid = make(map[netip.Prefix]time.Time)
	}
	wait := paid.Sub(now)
	s.paid[addr] = now.Add(min(wait+priceFactor*price, maxDebt))
	return wait
}

// leave forgets a connection that was approved or has ended.
func (s *census) leave(u *unapproved) {
	l := s.byAddr[u.addr]
	if l.Remove(u.el); l.Len() == 0 {
		delete(s.byAddr, u.addr)
	}
	if len(s.paid) > maxPaid {
		clear(s.paid)
	}
}

// victim returns the connection that a newcomer from addr takes the place of, or nil if there is none.
func (s *census) victim(addr netip.Prefix, now time.Time) *unapproved {
	var most *list.List
	var of netip.Prefix
	for a, l := range s.byAddr {
		if most == nil || l.Len() > most.Len() || l.Len() == most.Len() && a == addr {
			most, of = l, a
		}
	}
	if most == nil {
		return nil
	}
	u := most.Front().Value.(*unapproved)
	// guard: idle-connections TestVictim
	if of == addr && now.Sub(u.since) < ownTurn {
		return nil
	}
	return u
}

// silent lists the request connections that had no request since the time.
func (s *census) silent(since time.Time) (out []net.Conn) {
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
