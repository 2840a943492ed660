package subscribers

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/protocol/peernet"
)

// newcomerPlaces limits the processors used for newcomers to one in newcomerPlaces. newcomerPart is the part of
// its time for which a place is used: after each sign-in it pauses.
const newcomerPlaces, newcomerPart = 2, 8

// newcomersWaiting is how many sign-ins of newcomers may be queued in total, newcomersOfOne how many per
// source. They use memory even if their connections have ended.
const newcomersWaiting, newcomersOfOne = 2000, 500

// newcomerRate and newcomerBurst are the sign-ins per source, per second and at once, beyond which a place
// pauses. A thousand new minions with addresses of their own sign in as fast as the processors allow.
const newcomerRate, newcomerBurst = 1, 100

var errManyNewcomers = errors.New("too many sign-ins wait")

// Newcomers limits sign-ins without an accepted key, whose signatures would otherwise delay known minions. It
// has half as many places as there are processors. After a sign-in from a source with many sign-ins a place
// pauses, so that it is used for an eighth of the time. Sources take turns, so a flood from one address does
// not delay the first sign-in from another.
type Newcomers struct {
	unpaced bool
	few     *ratelimit.Limiter // for sources with few sign-ins

	mu    sync.Mutex // guards the fields below
	free  int
	lines []line // queues by source, the next source first; never empty
}

type line struct {
	source  netip.Addr
	waiting []chan struct{}
}

// NewNewcomers returns the places for this host. unpaced omits pauses and limits.
func NewNewcomers(unpaced bool) *Newcomers {
	return &Newcomers{free: max(1, runtime.GOMAXPROCS(0)/newcomerPlaces), unpaced: unpaced,
		few: ratelimit.New(newcomerRate, newcomerBurst)}
}

// Enter waits for a place, or returns an error if too many sign-ins are queued. leave frees the place after the
// pause, without waiting for that.
func (n *Newcomers) Enter(ctx context.Context, peer string) (leave func(), err error) {
	if err := n.wait(ctx, peer); err != nil {
		return nil, err
	}
	begin := time.Now()
	unpaced := n.unpaced || n.few.Allow(peer, begin)
	return func() {
		// guard: newcomer-flood TestNewcomers,TestFewNewcomers instead: true
		if unpaced {
			n.give()
			return
		}
		time.AfterFunc((newcomerPart-1)*time.Since(begin), n.give)
	}, nil
}

func (n *Newcomers) wait(ctx context.Context, peer string) error {
	var source netip.Addr
	if ap, err := netip.ParseAddrPort(peer); err == nil {
		source = peernet.Of(ap.Addr()).Addr()
	}
	turn := make(chan struct{})
	n.mu.Lock()
	if n.free > 0 {
		n.free--
		n.mu.Unlock()
		return nil
	}
	all := 0
	for _, l := range n.lines {
		all += len(l.waiting)
	}
	at := slices.IndexFunc(n.lines, func(l line) bool { return l.source == source })
	// guard: newcomer-flood TestNewcomersAreBounded
	if !n.unpaced && (all >= newcomersWaiting || at >= 0 &&
		len(n.lines[at].waiting) >= newcomersOfOne) {
		n.mu.Unlock()
		return errManyNewcomers
	}
	if at < 0 {
		at = len(n.lines)
		n.lines = append(n.lines, line{source: source})
	}
	n.lines[at].waiting = append(n.lines[at].waiting, turn)
	n.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, l := range n.lines {
		if k := slices.Index(l.waiting, turn); k >= 0 {
			if n.lines[i].waiting = slices.Delete(l.waiting, k, k+1); len(n.lines[i].waiting) == 0 {
				n.lines = slices.Delete(n.lines, i, i+1)
			}
			return ctx.Err()
		}
	}
	return nil // admitted at the same moment
}

// give passes a free place to the source whose turn it is.
func (n *Newcomers) give() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.lines) == 0 {
		n.free++
		return
	}
	l := n.lines[0]
	close(l.waiting[0])
	n.lines = n.lines[1:]
	if l.waiting = l.waiting[1:]; len(l.waiting) > 0 {
		n.lines = append(n.lines, l)
	}
}
