package orders

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

// ErrBusy is returned by Reserve while Options.MaxUnfinished deliveries are open, or as many of one tenant as it may
// have.
var ErrBusy = errors.New("too many orders are unfinished")

// countLife is how long a count of open deliveries is used, plus what is placed here meanwhile.
const countLife = time.Second

// backlog counts the open deliveries of one tenant, or of all.
type backlog struct {
	tenant string

	mu     sync.Mutex // guards the fields below
	at     time.Time  // time of the last count; zero before the first
	n      int        // open at that time, plus placed since
	placed int        // placed since the current count began
	now    *count     // count in progress, or nil
}

// count is one count of open deliveries. err and ended are set when done is closed. ended means that the count
// failed because its caller's context ended; those who wait for it must count again.
type count struct {
	done  chan struct{}
	err   error
	ended bool
}

// Reserve adds more deliveries to the backlog of a tenant and to the total, or returns ErrBusy. With an empty
// tenant only the total is limited. One order may exceed a limit, the next may not. While one caller counts in
// the store, others use the last count, unless there is none or it leaves no room.
func (d *Deliverer) Reserve(ctx context.Context, tenant string, more int) error {
	if tenant != "" && more > 0 {
		d.mu.Lock()
		b := d.tenants[tenant]
		if b == nil {
			b = &backlog{tenant: tenant}
			d.tenants[tenant] = b
		}
		d.mu.Unlock()
		limit, err := d.tenantLimit(ctx)
		if err == nil {
			err = d.reserveIn(ctx, b, limit, more)
		}
		if err != nil {
			return err
		}
	}
	return d.reserveIn(ctx, &d.backlog, d.opts.MaxUnfinished, more)
}

// tenantLimit returns how many deliveries of one tenant may be open. By default a tenant that has as many as remain
// free is refused further orders. One order may exceed the limit, also that of all tenants together.
func (d *Deliverer) tenantLimit(ctx context.Context) (int, error) {
	limit, most := d.opts.MaxUnfinishedTenant, d.opts.MaxUnfinished
	if limit != 0 || most < 0 {
		return cmp.Or(limit, -1), nil
	}
	// This counts again if the last count is old.
	if err := d.reserveIn(ctx, &d.backlog, most, 0); err != nil {
		return 0, err
	}
	d.backlog.mu.Lock()
	defer d.backlog.mu.Unlock()
	return max(0, most-d.backlog.n), nil
}

func (d *Deliverer) reserveIn(ctx context.Context, b *backlog, limit, more int) error {
	if limit < 0 {
		return nil
	}
	counted := false
	for {
		b.mu.Lock()
		enough := b.now != nil && !b.at.IsZero() && b.n < limit // the last count is good enough
		if counted || time.Since(b.at) < countLife || enough {
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
			if err := d.count(ctx, b, c); err != nil {
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

// count runs a count for all who wait for it.
func (d *Deliverer) count(ctx context.Context, b *backlog, c *count) error {
	n, err := d.q.CountOpen(ctx, b.tenant)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.at, b.n = time.Now(), n+b.placed
	}
	c.err, c.ended, b.now = err, ctx.Err() != nil, nil
	close(c.done)
	return err
}
