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
	// nameDelay is how long a new subscriber may take to say who it is by itself: tcp's presence frame.
	nameDelay = 500 * time.Millisecond
	// namePace and nameBatch bound how fast subscribers are asked, each under a signature of its own.
	namePace, nameBatch = 100 * time.Millisecond, 25
	// stormRate is how many sign-ins a second go before questions, each of which costs a signature as well; a
	// subscriber that has waited for stormPatience is asked all the same.
	stormRate, stormPatience = 50, time.Minute
	// unansweredRate and unansweredBurst bound the questions to one address that are not answered, a second and at
	// once. Those that are answered cost nothing: thousands of minions behind one address are asked as fast as they
	// answer. unknownRate and unknownBurst are the same for an address at which no minion is known.
	unansweredRate, unansweredBurst = 2, 250
	unknownRate, unknownBurst       = 1, 16
)

// nameAgain are the pauses before a subscriber that does not answer is asked again; the last one repeats. A minion with
// the shared key of before a restart signs in at the first question and answers the second one.
var nameAgain = [...]time.Duration{3 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute}

// Prober is what an Identifier needs of the master.
type Prober interface {
	// Tenants lists whose minions there are, those of no tenant first; nil if there are no tenants.
	Tenants(ctx context.Context) []string
	// LastTenant returns whose minion signed in last from an address.
	LastTenant(peer string) string
	// SignIns counts all sign-ins, and reports whether some wait for their turn.
	SignIns() (count int64, waiting bool)
	// SealProbe seals a probe with a mark under a tenant's key and hands it to send, in the order of publishes. It
	// returns what send does.
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
	// Of questions without an answer: asks at addresses with a minion, unknown at others.
	asks, unknown *ratelimit.Limiter

	// Of the goroutine that asks: how many sign-ins there were when, and whether they were many.
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

// link is a subscriber that nobody knows.
type link struct {
	linkKey
	mark  string // proves that an answer comes from there
	since time.Time
	next  time.Time
	asked int
	guess string // whose minion it may be
	asks  *ratelimit.Limiter
}

// LateServer is a transport that has connections before the master has it.
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

// NewLateServer returns a LateServer without its transport.
func NewLateServer() *LateServer { return &LateServer{bound: make(chan struct{})} }

// Bind sets the transport. It is called once.
func (s *LateServer) Bind(server transport.Server) {
	s.Server = server
	close(s.bound)
}

// Bound is closed when the transport is set.
func (s *LateServer) Bound() <-chan struct{} { return s.bound }

// NewIdentifier returns an Identifier, which probes while Run runs. It tells presence of the minions that it finds.
func NewIdentifier(prober Prober, presence *Presence, log *slog.Logger) *Identifier {
	return &Identifier{prober: prober, presence: presence, log: log, wake: make(chan struct{}, 1),
		asks:    ratelimit.New(unansweredRate, unansweredBurst),
		unknown: ratelimit.New(unknownRate, unknownBurst), links: make(map[linkKey]*link),
		marks: make(map[string]*link)}
}

// Subscribed notes that a subscription began or ended.
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

// HasUnknown reports whether there are subscribers that nobody knows.
func (n *Identifier) HasUnknown() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.links) > 0
}

// drop forgets a link; callers hold mu.
func (n *Identifier) drop(l *link) {
	delete(n.links, l.linkKey)
	delete(n.marks, l.mark)
}

// Answered takes the return of a minion, and reports whether it answers a question of this master. load comes from the
// minion that id names.
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

// Run asks until ctx ends.
func (n *Identifier) Run(ctx context.Context) {
	for {
		wait := time.NewTimer(n.turn(ctx, time.Now()))
		select {
		case <-n.wake:
			wait.Stop()
			select { // those that come together are asked together
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

// turn asks some of those whose time has come, and says when to go on.
func (n *Identifier) turn(ctx context.Context, now time.Time) time.Duration {
	tenants := n.prober.Tenants(ctx)
	due, next := n.due(now, n.storm(now), len(tenants))
	for _, l := range due {
		if ctx.Err() != nil {
			return next
		}
		if !n.ask(l, tenants) {
			n.mu.Lock()
			n.drop(l) // it is gone, or said by itself who it is
			n.mu.Unlock()
			n.presence.Changed()
		}
	}
	return max(next, namePace)
}

// due takes some of those whose time has come, and says when to go on. Each of so many tenants is asked for.
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

// storm reports whether many minions sign in, as counted about once a second, or some wait for their turn.
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

// ask sends the question to one subscriber, and reports whether it is there and unknown. It must be under the key of
// the minion's tenant: first, twice, of whose minion signed in last from there, which is nearly always right, then of
// all in turn. A minion that cannot read it signs in again.
func (n *Identifier) ask(l *link, tenants []string) bool {
	select {
	case <-l.server.bound:
	default:
		return true
	}
	if !l.server.Unnamed(l.peer) {
		return false // before there is a signature for nothing
	}
	tenant := l.guess
	if l.asked > 2 && len(tenants) > 0 {
		tenant = tenants[(l.asked-3)%len(tenants)]
	}
	sent, err := n.prober.SealProbe(tenant, l.mark,
		func(msg []byte) bool { return l.server.PublishTo(l.peer, msg) })
	if err != nil {
		n.log.Error("Cannot ask subscriber who it is", "peer", l.peer, "err", err)
		return true
	}
	return sent
}
