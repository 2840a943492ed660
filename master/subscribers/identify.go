package subscribers

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/internal/probe"
	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/protocol/transport"
)

const (
	// nameDelay is how long a new subscriber may take to identify itself with tcp's presence frame.
	nameDelay = 500 * time.Millisecond
	// namePace and nameBatch limit how fast subscribers are probed, because each probe costs a signature.
	namePace, nameBatch = 100 * time.Millisecond, 25
	// stormRate is how many sign-ins per second have priority over probes, which cost a signature too. A
	// subscriber that has waited for stormPatience is probed even then.
	stormRate, stormPatience = 50, time.Minute
	// unansweredRate and unansweredBurst limit the unanswered probes per address, per second and at once.
	// Answered probes cost nothing: thousands of minions behind one address are probed as fast as they answer.
	// unknownRate and unknownBurst are the limits for an address without a known minion.
	unansweredRate, unansweredBurst = 2, 250
	unknownRate, unknownBurst       = 1, 16
)

// nameAgain are the pauses before a silent subscriber is probed again; the last one repeats. A minion with the
// shared key from before a restart signs in at the first probe and answers the second one.
var nameAgain = [...]time.Duration{3 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute}

// Prober is the master as an Identifier uses it.
type Prober interface {
	// Tenants returns the tenants that have minions, with "" for minions without a tenant first. It returns nil
	// if there are no tenants.
	Tenants(ctx context.Context) []string
	// LastTenant returns the tenant whose minion last signed in from an address.
	LastTenant(peer string) string
	// SignIns returns the number of all sign-ins, and whether some are queued.
	SignIns() (count int64, waiting bool)
	// SealProbe seals a probe with a mark under a tenant's key and passes it to send, in the order of
	// publishes. It returns send's result.
	SealProbe(tenant, mark string, send func(msg []byte) bool) (sent bool, err error)
}

// Identifier maps each subscriber connection to its minion on transports that do not carry the id (zeromq, ws, and tcp
// after a restart). It sends a probe to one connection only; the minion that returns it, signed with its own key, owns
// the connection. Jobs can then be sent to their targets alone.
type Identifier struct {
	prober   Prober
	presence *Presence
	log      *slog.Logger
	wake     chan struct{}
	// Limits for unanswered probes: asks for addresses with a known minion, unknown for others.
	asks, unknown *ratelimit.Limiter

	// Used by Run only: the number of sign-ins at a time, and whether they were many.
	signIns int64
	looked  time.Time
	busy    bool

	mu    sync.Mutex // guards the fields below
	links map[linkKey]*link
	marks map[string]*link
}

type linkKey struct {
	server *LateServer
	peer   string
}

// link is a subscriber that is not identified.
type link struct {
	linkKey
	mark  string // identifies the connection in an answer
	since time.Time
	next  time.Time
	asked int
	guess string // tenant that its minion may have
	asks  *ratelimit.Limiter
}

// LateServer is a transport that has connections before it is assigned.
type LateServer struct {
	bound chan struct{} // closed when Server is set
	transport.Server
}

// minionAt reports whether a minion is known at the address of a subscriber.
func (s *LateServer) minionAt(peer string) bool {
	select {
	case <-s.bound:
		return s.MinionAt(peer)
	default:
		return false
	}
}

// NewLateServer returns a LateServer; call Bind to set its transport.
func NewLateServer() *LateServer { return &LateServer{bound: make(chan struct{})} }

// Bind sets the transport. Call it once.
func (s *LateServer) Bind(server transport.Server) {
	s.Server = server
	close(s.bound)
}

// Bound returns a channel that is closed when the transport is set.
func (s *LateServer) Bound() <-chan struct{} { return s.bound }

// NewIdentifier returns an Identifier. It probes while Run runs, and reports identified minions to presence.
func NewIdentifier(prober Prober, presence *Presence, log *slog.Logger) *Identifier {
	return &Identifier{prober: prober, presence: presence, log: log, wake: make(chan struct{}, 1),
		asks:    ratelimit.New(unansweredRate, unansweredBurst),
		unknown: ratelimit.New(unknownRate, unknownBurst), links: make(map[linkKey]*link),
		marks: make(map[string]*link)}
}

// Subscribed records that a subscription began or ended.
func (n *Identifier) Subscribed(s *LateServer, peer string, up bool) {
	k := linkKey{s, peer}
	n.mu.Lock()
	if old := n.links[k]; old != nil {
		n.drop(old)
	}
	if up {
		now := time.Now()
		l := &link{linkKey: k, mark: rand.Text(), since: now, next: now.Add(nameDelay),
			guess: n.prober.LastTenant(peer)}
		n.links[k], n.marks[l.mark] = l, l
	}
	n.mu.Unlock()
	if up {
		select {
		case n.wake <- struct{}{}:
		default:
		}
	}
}

// HasUnknown reports whether there are unidentified subscribers.
func (n *Identifier) HasUnknown() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.links) > 0
}

// drop removes a link. The caller holds mu.
func (n *Identifier) drop(l *link) {
	delete(n.links, l.linkKey)
	delete(n.marks, l.mark)
}

// Answered handles a minion's return, and reports whether it answers a probe of this master. load is
// authenticated: it comes from the minion id.
func (n *Identifier) Answered(id string, load map[string]any) bool {
	n.mu.Lock()
	l := n.marks[probe.Link(load)]
	if l != nil {
		n.drop(l)
	}
	n.mu.Unlock()
	if l == nil {
		return false
	}
	l.asks.Refund(l.peer)
	if l.server.Name(l.peer, id) {
		n.log.Debug("Subscriber is known", "minion", id, "peer", l.peer)
		n.presence.Saw(id, time.Now())
		n.presence.Changed()
	}
	return true
}

// Run probes until ctx ends.
func (n *Identifier) Run(ctx context.Context) {
	for {
		wait := time.NewTimer(n.turn(ctx, time.Now()))
		select {
		case <-n.wake:
			wait.Stop()
			select { // subscribers that arrive together are probed together
			case <-time.After(namePace):
			case <-ctx.Done():
				return
			}
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return
		}
	}
}

// turn probes some of the due subscribers. It returns the pause until the next turn.
func (n *Identifier) turn(ctx context.Context, now time.Time) time.Duration {
	tenants := n.prober.Tenants(ctx)
	due, next := n.due(now, n.storm(now), len(tenants))
	for _, l := range due {
		if ctx.Err() != nil {
			return next
		}
		if !n.ask(l, tenants) {
			n.mu.Lock()
			n.drop(l) // it is gone, or has identified itself
			n.mu.Unlock()
			n.presence.Changed()
		}
	}
	return max(next, namePace)
}

// due returns some of the due subscribers, and the pause until the next turn. Each is probed for several
// tenants.
func (n *Identifier) due(now time.Time, storm bool, tenants int) (due []*link, next time.Duration) {
	next = time.Hour
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.links {
		if wait := l.next.Sub(now); wait > 0 {
			next = min(next, wait)
			continue
		}
		if storm && now.Sub(l.since) < stormPatience {
			next = min(next, time.Second)
			continue
		}
		if len(due) == nameBatch {
			next = 0
			continue
		}
		// guard: unknown-subscribers TestUnknownAddressesAreAskedLess instead: true
		if l.asks = n.unknown; l.server.minionAt(l.peer) {
			l.asks = n.asks
		}
		if !l.asks.Allow(l.peer, now) {
			l.next = now.Add(time.Second)
			next = min(next, time.Second)
			continue
		}
		l.next = now.Add(nameAgain[min(l.asked/(tenants+2), len(nameAgain)-1)])
		l.asked++
		next = min(next, l.next.Sub(now))
		due = append(due, l)
	}
	return due, next
}

// storm reports whether many minions sign in, counted about once a second, or sign-ins are queued.
func (n *Identifier) storm(now time.Time) bool {
	count, waiting := n.prober.SignIns()
	if waiting {
		return true
	}
	if passed := now.Sub(n.looked); passed >= time.Second {
		n.busy = float64(count-n.signIns) > stormRate*passed.Seconds()
		n.signIns, n.looked = count, now
	}
	return n.busy
}

// ask probes one subscriber and reports whether it is still there and unidentified. The probe must be sealed
// with the key of the minion's tenant. The first two use that of the last sign-in from its address, which is
// nearly always right; later ones use all tenants' keys in turn. A minion that cannot read the probe signs in
// again.
func (n *Identifier) ask(l *link, tenants []string) bool {
	select {
	case <-l.server.bound:
	default:
		return true
	}
	if !l.server.Unnamed(l.peer) {
		return false // avoids a signature in vain
	}
	tenant := l.guess
	if l.asked > 2 && len(tenants) > 0 {
		tenant = tenants[(l.asked-3)%len(tenants)]
	}
	sent, err := n.prober.SealProbe(tenant, l.mark,
		func(msg []byte) bool { return l.server.PublishTo(l.peer, msg) })
	if err != nil {
		n.log.Error("Cannot probe subscriber", "peer", l.peer, "err", err)
		return true
	}
	return sent
}
