package returns

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/store"
)

const (
	// knownLife is how long the store's data about a job is cached: ten thousand returns of one job arrive
	// within seconds.
	knownLife = 10 * time.Second
	// maxKnown is how many jobs are cached, maxKnownIDs how many minions of theirs, at some 50 bytes each.
	maxKnown, maxKnownIDs = 1024, 200_000
)

// knownJobs caches data of jobs whose returns are arriving.
type knownJobs struct {
	mu  sync.Mutex // guards the fields below
	all map[string]knownJob
	ids int // of all jobs together
}

// knownJob is a job that the store has.
type knownJob struct {
	until time.Time
	// order means that the job belongs to an order, so that a return ends a delivery. If this is missed, the
	// delivery's next check finds the return in the store.
	order bool
	// minions are the expected minions, sorted.
	minions []string
	// secret means that the order does not show its arguments.
	secret bool
}

func (k *knownJobs) get(jid string, now time.Time) (knownJob, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	j, ok := k.all[jid]
	return j, ok && now.Before(j.until)
}

func (k *knownJobs) put(jid string, j knownJob) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil || len(k.all) >= maxKnown || k.ids+len(j.minions) > maxKnownIDs {
		k.all, k.ids = make(map[string]knownJob), 0
	}
	k.ids += len(j.minions) - len(k.all[jid].minions)
	k.all[jid] = j
}

// storedJob returns the store's data about a job. known is false if the job is missing. If the store fails, the
// job is treated as part of a secret order.
func (t *Taker) storedJob(ctx context.Context, jid string,
	now time.Time) (j knownJob, known bool) {
	if j, ok := t.known.get(jid, now); ok {
		return j, true
	}
	// Thousands of minions return at once. If each return read the job with all its ids, the master would need
	// hundreds of megabytes.
	v, _, _ := t.reads.Do(jid, func() (any, error) {
		if j, ok := t.known.get(jid, now); ok {
			return jobRead{j, true}, nil
		}
		j, known := t.readJob(ctx, jid, now)
		return jobRead{j, known}, nil
	})
	r := v.(jobRead)
	return r.job, r.known
}

// jobRead is the result of readJob.
type jobRead struct {
	job   knownJob
	known bool
}

// readJob is storedJob without the cache.
func (t *Taker) readJob(ctx context.Context, jid string,
	now time.Time) (j knownJob, known bool) {
	job, err := t.Store.Job(ctx, jid)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return knownJob{order: t.Queue != nil, secret: true}, true
	}
	known = err == nil
	j = knownJob{until: now.Add(knownLife), minions: slices.Sorted(slices.Values(job.Minions))}
	if t.Queue != nil {
		rec, err := t.Queue.OrderOf(ctx, jid)
		switch {
		case err == nil:
			j.order, j.secret = true, rec.Spec["secret"] == true
		case !errors.Is(err, store.ErrNotFound):
			return knownJob{order: true, secret: true}, true
		}
		j.order = j.order || !known
	}
	if known {
		t.known.put(jid, j)
	}
	return j, known
}
