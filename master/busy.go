package master

import (
	"context"
	"errors"
	"sync"
	"time"
)

// DefaultMaxUnfinished is how many deliveries may be unfinished where nothing else is said.
const DefaultMaxUnfinished = 100_000

// ErrBusy is returned by Cast and Call when Options.MaxUnfinished deliveries are open: place the order again a little later.
var ErrBusy = errors.New("too many orders are unfinished")

// countLife is how long a count of open deliveries holds, but for what is placed here.
const countLife = time.Second

// backlog is how many deliveries are open.
type backlog struct {
	mu     sync.Mutex // guards the fields below
	at     time.Time  // of the last count, zero if there was none
	n      int        // open then, and placed since
	placed int        // since the count that is under way began
	now    *count     // under way, nil if none is
}

// count is one count of open deliveries; the other fields are set when it is done. ended says that it failed because its caller's context
// ended: whoever waits for it counts anew.
type count struct {
	done  chan struct{}
	err   error
	ended bool
}

// room says whether so many more deliveries may be placed, and counts them. One order may go beyond the bound, the next one may not. While
// one counts, the others go on with the last count, unless there is none or it leaves no room.
func (d *dispatcher) room(ctx context.Context, more int) error {
	limit := d.m.opts.MaxUnfinished
	if limit < 0 {
		return nil
	}
	b := &d.backlog
	counted := false
	for {
		b.mu.Lock()
		if counted || time.Since(b.at) < countLife || b.now != nil && !b.at.IsZero() && b.n < limit {
			defer b.mu.Unlock()
			if b.n >= limit {
				return ErrBusy
			}
			b.n += more
			b.placed += more
			return nil
		}
		c := b.now
		if c == nil {
			c = &count{done: make(chan struct{})}
			b.now, b.placed = c, 0
			b.mu.Unlock()
			if err := d.count(ctx, c); err != nil {
				return err
			}
			counted = true
			continue
		}
		b.mu.Unlock()
		select {
		case <-c.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if c.err != nil && !c.ended {
			return c.err
		}
		counted = c.err == nil
	}
}

// count counts, for all who wait for it.
func (d *dispatcher) count(ctx context.Context, c *count) error {
	n, err := d.q.CountOpen(ctx)
	b := &d.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.at, b.n = time.Now(), n+b.placed
	}
	c.err, c.ended, b.now = err, ctx.Err() != nil, nil
	close(c.done)
	return err
}
