// Package redial is the client side that all stream transports share: dialling with deadlines, backoff with jitter,
// and the loop that keeps a subscription alive.
//
//	dial ──▶ session ──▶ Receive … ──▶ error ──▶ wait ──┐
//	 ▲                                               │
//	 └───────────────────────────────────────────────┘
//
// The wait comes from [Backoff]. A session that lasted long enough resets it. A session that can probe ([Prober]) is
// also dropped when its peer stops answering, because TCP does not notice a dead path behind a proxy.
package redial

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

// A Backoff returns the delays between attempts. Create one with NewBackoff. It is not safe for concurrent use.
type Backoff struct {
	min, max time.Duration
	full     bool
	window   time.Duration
}

// NewBackoff returns a Backoff with ReconDefault, ReconMax and ReconRandomize of o, which must have its defaults
// filled in.
func NewBackoff(o transport.ClientOptions) *Backoff {
	return &Backoff{min: o.ReconDefault, max: o.ReconMax, full: o.ReconRandomize}
}

// Next returns the next delay. It is random within a window that doubles up to the maximum, so that ten thousand
// clients of a restarted server do not return at the same moment.
func (b *Backoff) Next() time.Duration {
	b.window = min(max(2*b.window, b.min), b.max)
	if b.full {
		return rand.N(b.window + 1)
	}
	return b.window/2 + rand.N(b.window/2+1)
}

// After returns the delay after an attempt that took some time. The delay counts from the start of the attempt, so
// that an unreachable peer is tried at least every few seconds. At least an eighth of the delay remains, to spread
// the clients.
func (b *Backoff) After(took time.Duration) time.Duration {
	d := b.Next()
	return max(d-took, d/8)
}

// Reset returns to the smallest window.
func (b *Backoff) Reset() { b.window = 0 }

// maxProving is the longest time that a session must last to count as a success.
const maxProving = time.Minute

// NoteSession resets the backoff if a session lasted as long as the largest window, or for a minute. A shorter
// session counts as a failed attempt, whatever it received.
func (b *Backoff) NoteSession(lasted time.Duration) {
	if lasted >= min(b.max, maxProving) {
		b.Reset()
	}
}

// Dial connects to addr. It resolves the name now and tries all its addresses. With tls it applies o.Wrap.
func Dial(ctx context.Context, o transport.ClientOptions, addr, source string, tls bool) (net.Conn, error) {
	dial := o.Dial
	if dial == nil {
		dial = transport.NetDial(o.KeepAlive, source)
	}
	dctx, cancel := context.WithTimeout(ctx, o.DialTimeout)
	defer cancel()
	c, err := dial(dctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("transport: cannot connect to %s: %w", addr, err)
	}
	if !tls || o.Wrap == nil {
		return c, nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("transport: bad address %q: %w", addr, err)
	}
	wctx, cancel := context.WithTimeout(ctx, o.HandshakeTimeout)
	defer cancel()
	w, err := o.Wrap(wctx, c, host)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("transport: cannot secure connection to %s: %w", addr, err)
	}
	return w, nil
}

// Guard closes c if ctx ends before stop is called. Use it while no other goroutine owns c. stop reports whether c is
// still open.
func Guard(ctx context.Context, c interface{ Close() error }) (stop func() bool) {
	return context.AfterFunc(ctx, func() { c.Close() })
}

// Retry calls open, with backoff, until it succeeds or ctx ends. The error then wraps ctx.Err() and the last
// reason. An error that wraps ErrClosed ends Retry at once.
func Retry[T any](ctx context.Context, o transport.ClientOptions, open func(context.Context) (T, error)) (T, error) {
	b := NewBackoff(o)
	var last error // the last reason other than the end of ctx
	for {
		begun := time.Now()
		v, err := open(ctx)
		if err == nil || errors.Is(err, transport.ErrClosed) {
			return v, err
		}
		if o.OnRetry != nil && ctx.Err() == nil {
			o.OnRetry(err)
		}
		if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
			<-ctx.Done() // a socket may see the deadline a moment before ctx does
		}
		if ctx.Err() == nil {
			sleep(ctx, b.After(time.Since(begun)), nil)
		}
		if ctx.Err() != nil {
			var zero T
			if last != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, os.ErrDeadlineExceeded)) {
				err = last
			}
			if errors.Is(err, ctx.Err()) {
				return zero, err
			}
			return zero, fmt.Errorf("%w (%w)", err, ctx.Err())
		}
		last = err
	}
}

// sleep waits for d, the end of ctx, or wake.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-wake:
	case <-ctx.Done():
	}
}
