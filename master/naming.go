package master

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/internal/probe"
	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/protocol/target"
	"github.com/brine-salt/brine/protocol/transport"
)

const (
	// nameDelay is how long a new subscriber may take to say who it is by itself: tcp's presence frame.
	nameDelay = 500 * time.Millisecond
	// namePace and nameBatch bound how fast subscribers are asked, each under a signature of its own.
	namePace, nameBatch = 100 * time.Millisecond, 25
	// stormRate is how many sign-ins a second go before questions, each of which costs a signature as well; a subscriber that has waited
	// for stormPatience is asked all the same.
	stormRate, stormPatience = 50, time.Minute
	// unansweredRate and unansweredBurst bound the questions to one address that are not answered, a second and at once. Those that are answered cost
	// nothing: thousands of minions behind one address are asked as fast as they answer. unknownRate and unknownBurst are the same for an address
	// at which no minion is known.
	unansweredRate, unansweredBurst = 2, 250
	unknownRate, unknownBurst       = 1, 16
)

// nameAgain are the pauses before a subscriber that does not answer is asked again; the last one repeats. A minion with the shared
// key of before a restart signs in at the first question and answers the second one.
var nameAgain = [...]time.Duration{3 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute}

// namer finds out which minion is behind each subscriber, where the transport does not say so (zeromq, ws, and tcp after a restart). Each
// connection is asked alone, by a job that nobody else gets; the minion that returns it under its own key is the one behind it. So the
// master knows who is there to the connection, and jobs go to those only for whom they are.
type namer struct {
	m    *Master
	wake chan struct{}
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
	server *lateServer
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

// lateServer is a transport that has connections before the master has it.
type lateServer struct {
	bound chan struct{}
	transport.Server
}

// minionAt reports whether a minion is known at the address of a subscriber.
func (s *lateServer) minionAt(peer string) bool {
	select {
	case <-s.bound:
		return s.MinionAt(peer)
	default:
		return false
	}
}

func newNamer(m *Master) *namer {
	return &namer{m: m, wake: make(chan struct{}, 1), asks: ratelimit.New(unansweredRate, unansweredBurst),
		unknown: ratelimit.New(unknownRate, unknownBurst), links: make(map[linkKey]*link), marks: make(map[string]*link)}
}

// subscribed notes that a subscription began or ended.
func (n *namer) subscribed(s *lateServer, peer string, up bool) {
	k := linkKey{s, peer}
	n.mu.Lock()
	if old := n.links[k]; old != nil {
		n.drop(old)
	}
	if up {
		now := time.Now()
		l := &link{linkKey: k, mark: rand.Text(), since: now, next: now.Add(nameDelay), guess: n.m.tenancy.lastAt(peer)}
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

// anybody tells whether there are subscribers that nobody knows.
func (n *namer) anybody() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.links) > 0
}

// drop forgets a link; callers hold mu.
func (n *namer) drop(l *link) {
	delete(n.links, l.linkKey)
	delete(n.marks, l.mark)
}

// answered takes the return of a minion, and says whether it answers a question of this master. load comes from the minion that id
// names.
func (n *namer) answered(id string, load map[string]any) bool {
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
		n.m.log.Debug("subscriber is known", "minion", id, "peer", l.peer)
		n.m.presence.saw(id, time.Now())
		n.m.presence.changed()
	}
	return true
}

// run asks until ctx ends.
func (n *namer) run(ctx context.Context) {
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
func (n *namer) turn(ctx context.Context, now time.Time) time.Duration {
	tenants := n.m.guesses(ctx)
	due, next := n.due(now, n.storm(now), len(tenants))
	for _, l := range due {
		if ctx.Err() != nil {
			return next
		}
		if !n.ask(l, tenants) {
			n.mu.Lock()
			n.drop(l) // it is gone, or said by itself who it is
			n.mu.Unlock()
			n.m.presence.changed()
		}
	}
	return max(next, namePace)
}

// due takes some of those whose time has come, and says when to go on. Each of so many tenants is asked for.
func (n *namer) due(now time.Time, storm bool, tenants int) (due []*link, next time.Duration) {
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

// storm tells whether many minions sign in, as counted about once a second, or some wait for their turn.
func (n *namer) storm(now time.Time) bool {
	if n.m.signingIn.Load() > int64(cap(n.m.authTurns)) {
		return true
	}
	if passed := now.Sub(n.looked); passed >= time.Second {
		count := n.m.counts.allSignIns()
		n.busy = float64(count-n.signIns) > stormRate*passed.Seconds()
		n.signIns, n.looked = count, now
	}
	return n.busy
}

// ask sends the question to one subscriber, and says whether it is there and unknown. It must be under the key of the minion's tenant: first, twice, of
// whose minion signed in last from there, which is nearly always right, then of all in turn. A minion that cannot read it signs in again.
func (n *namer) ask(l *link, tenants []string) bool {
	select {
	case <-l.server.bound:
	default:
		return true
	}
	if !l.server.Unnamed(l.peer) {
		return false // before there is a signature for nothing
	}
	m := n.m
	tenant := l.guess
	if l.asked > 2 && len(tenants) > 0 {
		tenant = tenants[(l.asked-3)%len(tenants)]
	}
	job := map[string]any{"fun": "test.ping", "arg": []any{}, "tgt": "*", "tgt_type": target.TypeGlob, "ret": "", "jid": string(m.clock.Next(time.Now())),
		"metadata": probe.LinkMetadata(l.mark)}
	m.secrets.mu.Lock()
	defer m.secrets.mu.Unlock()
	msg, err := m.sealJob(tenant, job)
	if err != nil {
		m.log.Error("cannot ask subscriber who it is", "peer", l.peer, "err", err)
		return true
	}
	return l.server.PublishTo(l.peer, msg)
}
