// Package redial is what the clients of all stream transports share: dialling under deadlines, backoff with jitter, and the loop that
// keeps a subscription alive for ever.
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

// Backoff gives the delays between attempts. Its zero value is not usable; see NewBackoff. Not safe for concurrent use.
type Backoff struct {
	min, max time.Duration
	full     bool
	window   time.Duration
}

// NewBackoff takes ReconDefault, ReconMax and ReconRandomize of o, which has its defaults filled.
func NewBackoff(o transport.ClientOptions) *Backoff {
	return &Backoff{min: o.ReconDefault, max: o.ReconMax, full: o.ReconRandomize}
}

// Next is the next delay: random below a window that doubles up to the maximum, so that ten thousand clients of a restarted
// server spread out.
func (b *Backoff) Next() time.Duration {
	b.window = min(max(2*b.window, b.min), b.max)
	if b.full {
		return rand.N(b.window + 1)
	}
	return b.window/2 + rand.N(b.window/2+1)
}

// After is Next for an attempt to connect that took some time. The delay counts from the begin of the attempt, so that packets go to a
// peer that does not answer at least every few seconds, and a path that is back is found by then. An eighth of it stays, for the spread.
func (b *Backoff) After(took time.Duration) time.Duration {
	d := b.Next()
	return max(d-took, d/8)
}

// Reset starts with the smallest window again.
func (b *Backoff) Reset() { b.window = 0 }

// Dial makes one connection to addr: resolved now, all addresses tried, wrapped when tls is true.
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

// Guard closes c when ctx ends before stop is called. For phases in which c has no other owner. stop reports whether c is still open.
func Guard(ctx context.Context, c interface{ Close() error }) (stop func() bool) {
	return context.AfterFunc(ctx, func() { c.Close() })
}

// Retry calls open, with backoff, until it succeeds or ctx ends; then the error wraps ctx.Err() and the last reason. Errors that
// wrap ErrClosed end it at once.
func Retry[T any](ctx context.Context, o transport.ClientOptions, open func(context.Context) (T, error)) (T, error) {
	b := NewBackoff(o)
	var last error // the reason before the one that the end of ctx caused
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
			<-ctx.Done() // a socket may know of the end a moment before ctx
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
