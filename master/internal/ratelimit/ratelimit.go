// Package ratelimit limits how often peers may make requests: unauthenticated ones by address, users by name.
//
// golang.org/x/time/rate is not used. It refuses a reservation beyond the burst, so that ChargeBytes could not
// count larger amounts, and its limiter is three times the size of a bucket, of which there are thousands. It
// would replace the six lines of arithmetic in take.
package ratelimit

import (
	"net/netip"
	"sync"
	"time"

	"github.com/brine-salt/brine/protocol/peernet"
)

// Limiter is a token bucket per source address (per /64 for IPv6), so that an unauthenticated peer cannot keep
// the master busy with signatures, or per name.
type Limiter struct {
	rate, burst float64

	mu      sync.Mutex     // guards buckets
	buckets map[any]bucket // by netip.Prefix, attempt, reasonFrom, or name
}

type bucket struct {
	tokens float64
	at     time.Time
}

// maxSources limits the table. Beyond it idle sources are removed, then all.
const maxSources = 8192

// New returns a limiter with rate tokens per second and source, and burst at once. A rate below 0 means no
// limit.
func New(rate, burst float64) *Limiter {
	return &Limiter{rate: rate, burst: max(burst, 1), buckets: make(map[any]bucket)}
}

// Allow takes one token of a peer ("ip:port") and reports whether there was one. Peers without an address, as
// on the in-memory transport, count as one source.
func (l *Limiter) Allow(peer string, now time.Time) bool { return l.allow(sourceOf(peer), now) }

// AllowBytes takes n tokens of a peer, for limits in bytes.
func (l *Limiter) AllowBytes(peer string, n int64, now time.Time) bool {
	return l.take(sourceOf(peer), float64(n), now)
}

// ChargeBytes takes n tokens of a peer even if there are fewer. Nothing more is allowed until the debt is paid.
func (l *Limiter) ChargeBytes(peer string, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.buckets[sourceOf(peer)]; ok { // it has taken tokens before
		b.tokens -= float64(n)
		l.buckets[sourceOf(peer)] = b
	}
}

// sourceOf returns the network that a peer counts as.
func sourceOf(peer string) (source netip.Prefix) {
	if ap, err := netip.ParseAddrPort(peer); err == nil {
		source = peernet.Of(ap.Addr())
	}
	return source
}

// Refund returns the last token that Allow took of a peer's address.
func (l *Limiter) Refund(peer string) { l.giveBack(sourceOf(peer)) }

// giveBack returns a token to a bucket.
func (l *Limiter) giveBack(key any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.buckets[key]; ok {
		b.tokens = min(l.burst, b.tokens+1)
		l.buckets[key] = b
	}
}

// AllowName takes one token of a name.
func (l *Limiter) AllowName(name string, now time.Time) bool { return l.allow(name, now) }

// AllowNameBytes takes n tokens of a name, for limits in bytes.
func (l *Limiter) AllowNameBytes(name string, n int, now time.Time) bool {
	return l.take(name, float64(n), now)
}

func (l *Limiter) allow(source any, now time.Time) bool { return l.take(source, 1, now) }

func (l *Limiter) take(source any, n float64, now time.Time) bool {
	if l.rate < 0 || l.burst < 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.refill(source, now)
	ok := b.tokens >= n
	if ok {
		b.tokens -= n
	}
	l.buckets[source] = b
	return ok
}

// Reserve takes one token of a peer, and returns how long to wait until it is there. If that is longer than most, it
// takes none and returns false.
func (l *Limiter) Reserve(peer string, now time.Time, most time.Duration) (wait time.Duration,
	ok bool) {
	source := sourceOf(peer)
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.refill(source, now)
	wait = time.Duration(max(0, 1-b.tokens) / l.rate * float64(time.Second))
	if ok = wait <= most; ok {
		b.tokens--
	}
	l.buckets[source] = b
	return wait, ok
}

// refill returns the bucket of a source with the tokens that it has now. The caller holds mu.
func (l *Limiter) refill(source any, now time.Time) bucket {
	b, ok := l.buckets[source]
	if !ok {
		if len(l.buckets) >= maxSources {
			l.forget(now)
		}
		b = bucket{l.burst, now}
	}
	b.tokens = min(l.burst, b.tokens+l.rate*now.Sub(b.at).Seconds())
	b.at = now
	return b
}

// forget removes sources to make room. The caller holds mu.
func (l *Limiter) forget(now time.Time) {
	for s, b := range l.buckets {
		if b.tokens+l.rate*now.Sub(b.at).Seconds() >= l.burst {
			delete(l.buckets, s)
		}
	}
	if len(l.buckets) >= maxSources {
		clear(l.buckets)
	}
}
