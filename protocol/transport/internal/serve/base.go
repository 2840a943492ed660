package serve

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

// Base is what the servers of all stream transports share: two listeners, the connections of both ports, and the
// subscribers.
type Base struct {
	Options transport.ServerOptions // with defaults
	Group   *Group
	Budget  *Budget
	Roster  *Roster
	// Around is locked while a connection without a name may receive messages that it missed. A transport sets it if
	// its Publish takes a lock; nil means no lock.
	Around sync.Locker

	pub, req net.Listener
	dropped  atomic.Int64
	silence  silence
}

// Listen opens both listeners without accepting yet. wrap reports whether the transport uses TLS.
func Listen(o transport.ServerOptions, wrap bool) (*Base, error) {
	o, err := o.WithDefaults()
	if err != nil {
		return nil, err
	}
	pub, req, err := o.Listeners(wrap)
	if err != nil {
		return nil, err
	}
	b := &Base{Options: o, Group: NewGroup(o), Budget: NewBudget(o.MaxUnauthenticated), Roster: NewRoster(o.Isolate),
		pub: pub, req: req, silence: inReach}
	b.Roster.named = b.Group.Vouch
	return b, nil
}

// Accept starts to accept subscribers and requests. price is the approximate processor time for a connection with its
// handshake, without that of TLS.
func (b *Base) Accept(subscriber, request Handshake, price time.Duration) {
	b.Group.Accept(b.pub, false, subscriber, price)
	b.Group.Accept(b.req, true, request, price)
	b.Group.EndSilent(silentRequests)
	b.listenForLife()
}

// Join adds a subscriber that has arrived.
func (b *Base) Join(peer string, box *Outbox, c net.Conn, a *Arrival) *Member {
	m := b.Roster.Add(peer, box, c, a)
	b.Options.Subscriber(peer, true)
	return m
}

// Leave removes a subscriber and reports its end. For a silent subscriber the end was already reported.
func (b *Base) Leave(m *Member) {
	if b.Roster.Remove(m) { // otherwise its end was already reported
		b.Options.Subscriber(m.peer, false)
	}
}

// Outbox returns the write side of a subscriber. A subscriber that does not keep up is dropped.
func (b *Base) Outbox(to Sink, peer net.Addr) *Outbox {
	return NewOutbox(b.Group, to, func() {
		b.dropped.Add(1)
		b.Options.Log.Warn("Dropped subscriber that does not keep up", "peer", peer.String())
	})
}

// PublishAddr implements transport.Server.
func (b *Base) PublishAddr() net.Addr { return b.pub.Addr() }

// RequestAddr implements transport.Server.
func (b *Base) RequestAddr() net.Addr { return b.req.Addr() }

// Subscribers implements transport.Publisher.
func (b *Base) Subscribers() int { return b.Roster.Count() }

// Named implements transport.Publisher.
func (b *Base) Named() int { return b.Roster.Named() }

// Present implements transport.Publisher.
func (b *Base) Present() []string { return b.Roster.Present() }

// Reach implements transport.Publisher.
func (b *Base) Reach(ids ...string) (named, nameless int) { return b.Roster.Reach(ids...) }

// Name implements transport.Publisher.
func (b *Base) Name(peer, id string) bool {
	if b.Around != nil {
		b.Around.Lock()
		defer b.Around.Unlock()
	}
	return b.Roster.NamePeer(peer, id)
}

// Prove records that the peer of a connection is a minion. The connection then keeps its place, and subscribers from
// its address receive publishes.
func (b *Base) Prove(c net.Conn) {
	b.Group.Vouch(c)
	addr := connPrefix(c)
	if !b.Roster.proveAddress(addr) {
		return
	}
	if b.Around != nil {
		b.Around.Lock()
		defer b.Around.Unlock()
	}
	b.Roster.releaseAt(addr)
}

// MinionAt implements transport.Publisher.
func (b *Base) MinionAt(peer string) bool { return b.Roster.MinionAt(peer) }

// Unnamed implements transport.Publisher.
func (b *Base) Unnamed(peer string) bool { return b.Roster.Unnamed(peer) }

// Dropped implements transport.Publisher.
func (b *Base) Dropped() int64 { return b.dropped.Load() }

// Shutdown implements transport.Server.
func (b *Base) Shutdown(ctx context.Context) error {
	b.Roster.Close()
	return b.Group.Shutdown(ctx)
}

// Close implements transport.Server.
func (b *Base) Close() error {
	b.Roster.Close()
	b.Group.Close()
	return nil
}
