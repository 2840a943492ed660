// Package network manages a master's connections: the listening transports, the identification of their
// subscribers, and what is sent to them.
//
//	transport ── request ──────────► Door
//	    │
//	    ├── subscription ──────────► Identifier ──► Presence
//	    ├── presence frame of tcp ────────────────► Presence ──► events
//	    │
//	    └◄── Sender ◄── jobs, sealed under the keys of Keyring
//
// Package subscribers implements the parts; a Network opens and closes them together.
package network

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/subscribers"
	"github.com/brine-salt/brine/master/tenants"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/transport"
)

// storeTime limits a use of the database outside of any request.
const storeTime = 2 * time.Minute

// Door handles requests.
type Door interface {
	// Handle answers a peer's request. publishPort is the port that minions are given.
	Handle(ctx context.Context, peer string, body []byte, publishPort int) []byte
}

// Paths is notified of connections.
type Paths interface {
	// PathChanged reports that a subscription began or ended.
	PathChanged(up bool)
}

// SignIns handles sign-ins.
type SignIns interface {
	// Busy reports whether sign-ins are queued.
	Busy() bool
}

// Counts counts sign-ins.
type Counts interface {
	// AllSignIns returns the number of sign-ins with any outcome.
	AllSignIns() int64
}

// Options configure a Network. Fields that may be nil say so.
type Options struct {
	Tenants *tenants.Registry
	// Minions holds the records of minions; nil if the store keeps none.
	Minions store.Minions
	Keys    *keys.Store
	SignIns SignIns
	Counts  Counts
	Paths   Paths
	// Key signs publishes with Algorithm.
	Key       *crypt.PrivateKey
	Algorithm string
	// Name is this master's name in a cluster, or "" for a single master.
	Name string
	// Isolate delivers each job only to the minions it targets, even without tenants.
	Isolate bool
	// MaxMessage is the largest request in bytes; 0 means the transport's default.
	MaxMessage int64
	// Clock creates the ids of probes.
	Clock  *protocol.JIDClock
	Events *events.Bus
	Log    *slog.Logger
}

// Network holds a master's connections. Its methods are safe for concurrent use.
type Network struct {
	Presence *subscribers.Presence
	Keyring  *subscribers.Keyring
	// Names and Sender are set by Prepare.
	Names  *subscribers.Identifier
	Sender *subscribers.Sender

	o       Options
	servers []transport.Server // set before the master is ready, unless it failed
	addrs   atomic.Pointer[addresses]
}

// addresses are those of the first transport.
type addresses struct{ publish, request net.Addr }

// New returns a Network without connections and keys.
func New() *Network {
	return &Network{Presence: subscribers.NewPresence(), Keyring: new(subscribers.Keyring)}
}

// Prepare prepares the Network to listen and send. Call it once.
func (n *Network) Prepare(o Options) {
	n.o = o
	n.Names = subscribers.NewIdentifier(prober{n}, n.Presence, o.Log)
	n.Sender = subscribers.NewSender(subscribers.SenderOptions{Keyring: n.Keyring,
		Tenants: o.Tenants, Minions: o.Minions,
		Keys: o.Keys, Names: n.Names, Connected: n, Key: o.Key, Algorithm: o.Algorithm,
		Name:    o.Name,
		Isolate: o.Isolate, Clock: o.Clock, Log: o.Log})
}

// Transport is a transport to listen on. Options say where, and how.
type Transport struct {
	Listen  transport.Listen
	Options transport.ServerOptions
}

// Listen opens transports, and passes requests to door. If it fails, Stop closes those that are open.
func (n *Network) Listen(door Door, list ...Transport) error {
	for _, t := range list {
		s, err := n.listenOn(door, t)
		if err != nil {
			return err
		}
		n.servers = append(n.servers, s)
	}
	n.Sender.Use(n.servers)
	if len(n.servers) > 0 {
		first := n.servers[0]
		n.addrs.Store(&addresses{first.PublishAddr(), first.RequestAddr()})
	}
	return nil
}

func (n *Network) listenOn(door Door, t Transport) (transport.Server, error) {
	if t.Listen == nil {
		return nil, errors.New("a transport has no Listen function")
	}
	var publishPort atomic.Int64 // known once it listens; until then sign-ins wait
	late := subscribers.NewLateServer()
	o := t.Options
	o.Isolate, o.MaxMessage, o.Log, o.Presence = n.Sender.Isolated, n.o.MaxMessage, n.o.Log,
		n.judgePresence
	o.Subscriber = func(peer string, up bool) {
		n.o.Paths.PathChanged(up)
		n.Names.Subscribed(late, peer, up)
		n.Presence.Changed()
	}
	o.Handler = func(ctx context.Context, peer string, body []byte) []byte {
		select {
		case <-late.Bound():
		case <-ctx.Done():
			return nil
		}
		return door.Handle(ctx, peer, body, int(publishPort.Load()))
	}
	s, err := t.Listen(o)
	if err != nil {
		return nil, err
	}
	publishPort.Store(int64(PortOf(s.PublishAddr())))
	late.Bind(s)
	return s, nil
}

// Stop closes the transports. Running requests may take until ctx ends.
func (n *Network) Stop(ctx context.Context) error {
	var errs []error
	for _, s := range n.servers {
		if err := s.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			errs = append(errs, err)
		}
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// PublishAddr returns the address of the first transport's publish channel, or nil before it listens.
func (n *Network) PublishAddr() net.Addr {
	if p := n.addrs.Load(); p != nil {
		return p.publish
	}
	return nil
}

// RequestAddr returns the address of the first transport's request channel, or nil before it listens.
func (n *Network) RequestAddr() net.Addr {
	if p := n.addrs.Load(); p != nil {
		return p.request
	}
	return nil
}

// Named returns the number of minions whose publish connections are identified.
func (n *Network) Named() int {
	ids := make(map[string]struct{})
	for _, s := range n.servers {
		for _, id := range s.Present() {
			ids[id] = struct{}{}
		}
	}
	return len(ids)
}

// Subscribers returns the number of open publish connections, and how many were closed because they did not
// keep up.
func (n *Network) Subscribers() (open int, dropped int64) {
	for _, s := range n.servers {
		open += s.Subscribers()
		dropped += s.Dropped()
	}
	return open, dropped
}

// PortOf returns the port of an address, or 0.
func PortOf(a net.Addr) int {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.Port
	}
	if a == nil {
		return 0
	}
	_, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return 0
	}
	n, err := net.LookupPort("tcp", port)
	if err != nil {
		return 0
	}
	return n
}

// prober implements subscribers.Prober.
type prober struct{ n *Network }

var _ subscribers.Prober = prober{}

// Tenants implements subscribers.Prober.
func (p prober) Tenants(ctx context.Context) []string { return p.n.o.Tenants.Guesses(ctx) }

// LastTenant implements subscribers.Prober.
func (p prober) LastTenant(peer string) string { return p.n.o.Tenants.LastAt(peer) }

// SignIns implements subscribers.Prober.
func (p prober) SignIns() (count int64, waiting bool) {
	if p.n.o.SignIns.Busy() {
		return 0, true
	}
	return p.n.o.Counts.AllSignIns(), false
}

// SealProbe implements subscribers.Prober.
func (p prober) SealProbe(tenant, mark string, send func(msg []byte) bool) (bool, error) {
	return p.n.Sender.SealProbe(tenant, mark, send)
}
