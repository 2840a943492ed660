package master

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/store"
)

const (
	// knownLife is how long it is believed what the store said of a job: ten thousand returns of one job come within seconds.
	knownLife = 10 * time.Second
	// maxKnown is how many jobs are remembered.
	maxKnown = 1024
)

// knownJobs remembers what the store said of jobs whose returns come in.
type knownJobs struct {
	mu  sync.Mutex // guards all
	all map[string]knownJob
}

// knownJob is a job that the store has.
type knownJob struct {
	until time.Time
	// order says that it is one of an order, whose deliveries a return ends. A return that is taken for another one is found in the
	// store when its delivery is looked after.
	order bool
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
	if k.all == nil || len(k.all) >= maxKnown {
		k.all = make(map[string]knownJob)
	}
	k.all[jid] = j
}

// stored says whether the store has a job, and whether an order is behind it. When nobody can tell, it is taken for such a job.
func (m *Master) stored(ctx context.Context, jid string, now time.Time) (order, known bool) {
	if j, ok := m.known.get(jid, now); ok {
		return j.order, true
	}
	if _, err := m.store.Job(ctx, jid); errors.Is(err, store.ErrNotFound) {
		return m.orders != nil, false
	} else if err != nil {
		return m.orders != nil, true
	}
	order = m.orders != nil
	if order {
		_, err := m.orders.q.OrderOf(ctx, jid)
		if order = !errors.Is(err, store.ErrNotFound); order && err != nil {
			return true, true
		}
	}
	m.known.put(jid, knownJob{now.Add(knownLife), order})
	return order, true
}
