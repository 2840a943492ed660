package store

import (
	"context"
	"log/slog"
	"time"
)

// KeeperOptions configure a Keeper.
type KeeperOptions struct {
	Store Store
	// KeepJobs is how long jobs are kept, MaxJobs how many; 0 and below mean no limit.
	KeepJobs time.Duration
	MaxJobs  int
	// MaxBytes is the approximate maximum size of the store; 0 means the store's own limit, below 0 no limit.
	MaxBytes int64
	Log      *slog.Logger
}

// Keeper keeps a store within its limits.
type Keeper struct {
	opts   KeeperOptions
	purged time.Time // time of the last purge
}

// NewKeeper returns a Keeper.
func NewKeeper(o KeeperOptions) *Keeper { return &Keeper{opts: o} }

// Tend removes jobs beyond the limits. In a cluster duty is true for the one master that does it; on the others
// it does nothing. It must not be called concurrently.
func (k *Keeper) Tend(ctx context.Context, now time.Time, duty bool) {
	if !duty {
		k.purged = now // a peer master's task
	} else if b, ok := BoundedOf(k.opts.Store); ok {
		k.keepWithin(ctx, b)
	}
	if k.opts.KeepJobs <= 0 || now.Sub(k.purged) <= min(k.opts.KeepJobs, 10*time.Minute) {
		return
	}
	k.purged = now
	n, err := k.opts.Store.Purge(ctx, now.Add(-k.opts.KeepJobs))
	k.logForgotten(ctx, "old jobs", n, err)
}

// keepWithin enforces the number of jobs and the size.
func (k *Keeper) keepWithin(ctx context.Context, b Bounded) {
	if k.opts.MaxJobs > 0 {
		if err := k.keepNewest(ctx, b, k.opts.MaxJobs); err != nil {
			return
		}
	}
	limit := k.opts.MaxBytes
	if limit == 0 {
		limit = b.Room()
	}
	if limit <= 0 {
		return
	}
	jobs, bytes, err := b.Size(ctx)
	for keep := jobs; err == nil && bytes > limit; _, bytes, err = b.Size(ctx) {
		if keep <= 1 { // the rest is unfinished, or a single job
			k.opts.Log.Warn("Stored jobs exceed max_jobs_size, and no more can be removed",
				"bytes", bytes, "limit", limit)
			return
		}
		if keep == jobs {
			k.opts.Log.Warn("Removing the oldest jobs: stored jobs exceed max_jobs_size",
				"bytes", bytes, "limit", limit)
		}
		keep -= max(1, keep/10)
		if err := k.keepNewest(ctx, b, keep); err != nil {
			return
		}
	}
	if err != nil && ctx.Err() == nil {
		k.opts.Log.Warn("Cannot measure jobs", "err", err)
	}
}

// keepNewest removes all but the newest jobs.
func (k *Keeper) keepNewest(ctx context.Context, b Bounded, keep int) error {
	n := 0
	at, err := b.Beyond(ctx, keep)
	if err == nil && !at.IsZero() {
		n, err = k.opts.Store.Purge(ctx, at)
	}
	k.logForgotten(ctx, "the oldest jobs", n, err)
	return err
}

// logForgotten logs how many jobs were removed, or the error.
func (k *Keeper) logForgotten(ctx context.Context, what string, n int, err error) {
	if err != nil && ctx.Err() == nil {
		k.opts.Log.Warn("Cannot remove "+what, "err", err)
	} else if n > 0 {
		k.opts.Log.Debug("Removed "+what, "jobs", n)
	}
}
