// Package backoff computes the delay before the next attempt after a failure: a random part of a window that doubles
// with each failure, so that hosts that failed together do not retry together ("full jitter").
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff counts consecutive failures. It is not safe for concurrent use.
type Backoff struct {
	// Base is the first window, Max the largest one. Zero means one second and one minute.
	Base, Max time.Duration
	failures  int
}

// Window returns the upper limit of the next delay.
func (b *Backoff) Window() time.Duration {
	base, limit := b.Base, b.Max
	if base <= 0 {
		base = time.Second
	}
	if limit <= 0 {
		limit = time.Minute
	}
	w := base
	for range b.failures {
		if w >= limit {
			break
		}
		w *= 2
	}
	return min(w, max(limit, base))
}

// Next counts a failure and returns the delay before the next attempt.
func (b *Backoff) Next() time.Duration {
	w := b.Window()
	b.failures++
	return Random(0, w)
}

// Failures returns the number of failures since the last Reset.
func (b *Backoff) Failures() int { return b.failures }

// Reset resets the count after a success.
func (b *Backoff) Reset() { b.failures = 0 }

// Random returns a random duration in [low, high].
func Random(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + rand.N(high-low+1)
}

// Sleep waits for d or until ctx ends. It reports whether it waited for all of d.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
