package store

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/protocol/payload"
)

// MemoryLimit is the maximum number of jobs in a memory store, MemoryBytes the approximate maximum of bytes of
// jobs and returns. Beyond either, the oldest job without open deliveries is dropped.
const (
	MemoryLimit = 10000
	MemoryBytes = 256 << 20
)

// memory is a Store for tests, and for masters whose program stores results itself.
type memory struct {
	mu    sync.Mutex // guards the fields below
	jobs  map[string]*memoryJob
	order []string // job ids, oldest first
	limit int
	bytes int64 // approximate size of all jobs and returns
	most  int64
	queue memoryQueue
}

type memoryJob struct {
	job     Job
	known   bool // SaveJob was called; otherwise only returns are known
	created time.Time
	returns map[string]Return
	bytes   int64
}

// NewMemory returns a store that lives as long as the process. It drops the oldest job if there are more than
// MemoryLimit, or if they take more than MemoryBytes.
func NewMemory() Store {
	return &memory{jobs: make(map[string]*memoryJob), limit: MemoryLimit, most: MemoryBytes}
}

var _ Store = (*memory)(nil)

func (m *memory) jobEntry(jid string, created time.Time) *memoryJob {
	j := m.jobs[jid]
	if j == nil {
		if len(m.order) >= m.limit {
			m.dropOldest()
		}
		j = &memoryJob{created: created, returns: make(map[string]Return)}
		m.jobs[jid] = j
		m.order = append(m.order, jid)
	}
	return j
}

// dropOldest drops the oldest job without open deliveries.
func (m *memory) dropOldest() {
	i := max(0, slices.IndexFunc(m.order, func(jid string) bool { return !m.queue.isHeld(jid) }))
	m.dropJob(m.order[i])
	m.order = slices.Delete(m.order, i, i+1)
}

// dropJob drops a job, but leaves its id in order.
func (m *memory) dropJob(jid string) {
	m.queue.forgetOrder(jid)
	m.bytes -= m.jobs[jid].bytes
	delete(m.jobs, jid)
}

// addSize adds to a job's size and then drops the oldest other jobs without open deliveries, as needed.
func (m *memory) addSize(e *memoryJob, n int) {
	e.bytes += int64(n)
	m.bytes += int64(n)
	for m.bytes > m.most {
		i := slices.IndexFunc(m.order,
			func(jid string) bool { return m.jobs[jid] != e && !m.queue.isHeld(jid) })
		if i < 0 {
			return
		}
		m.dropJob(m.order[i])
		m.order = slices.Delete(m.order, i, i+1)
	}
}

func (m *memory) SaveJob(_ context.Context, j Job) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.jobs[j.JID]; e != nil && e.known {
		return fmt.Errorf("cannot store job %s: %w", j.JID, ErrExists)
	}
	e := m.jobEntry(j.JID, j.Created)
	e.job, e.known, e.created = j, true, j.Created
	m.addSize(e, payload.Size(j.Load)+payload.Size(j.Arg)+payload.Size(j.Minions))
	return nil
}

func (m *memory) AddMinions(_ context.Context, jid string, ids []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.jobs[jid]
	if e == nil || !e.known {
		return fmt.Errorf("cannot add minions to job %s: %w", jid, ErrNotFound)
	}
	e.job.Minions = Union(e.job.Minions, ids)
	return nil
}

func (m *memory) SaveReturn(_ context.Context, r Return) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.jobEntry(r.JID, r.Received)
	if _, ok := e.returns[r.ID]; ok {
		return false, nil
	}
	e.returns[r.ID] = r
	m.addSize(e, payload.Size(r.Load))
	return true, nil
}

func (m *memory) Job(_ context.Context, jid string) (Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.jobs[jid]
	if e == nil || !e.known {
		return Job{}, fmt.Errorf("cannot find job %s: %w", jid, ErrNotFound)
	}
	return e.job, nil
}

func (m *memory) Returns(_ context.Context, jid string) ([]Return, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.jobs[jid]
	if e == nil {
		return nil, nil
	}
	out := make([]Return, 0, len(e.returns))
	for _, r := range e.returns {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Return) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

func (m *memory) Jobs(_ context.Context, f Filter) ([]Job, error) {
	if f.Limit <= 0 {
		f.Limit = DefaultLimit
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Job
	for _, e := range m.jobs {
		if !e.known || !f.Since.IsZero() && e.created.Before(f.Since) || !f.Before.IsZero() &&
			!e.created.Before(f.Before) {
			continue
		}
		if _, ok := e.returns[f.Minion]; f.Minion != "" && !ok &&
			!slices.Contains(e.job.Minions, f.Minion) {
			continue
		}
		out = append(out, e.job)
	}
	sort.Slice(out, func(i, k int) bool { return out[i].JID > out[k].JID })
	return out[:min(len(out), f.Limit)], nil
}

// Beyond implements Bounded.
func (m *memory) Beyond(ctx context.Context, keep int) (time.Time, error) {
	jobs, err := m.Jobs(ctx, Filter{Limit: keep + 1})
	if err != nil || len(jobs) <= keep {
		return time.Time{}, err
	}
	return jobs[keep].Created.Add(time.Nanosecond), nil
}

// Room implements Bounded. It returns 0, because a memory store has limits of its own.
func (m *memory) Room() int64 { return 0 }

// Size implements Bounded.
func (m *memory) Size(context.Context) (jobs int, bytes int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.jobs), m.bytes, nil
}

func (m *memory) Purge(_ context.Context, before time.Time) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	m.order = slices.DeleteFunc(m.order, func(jid string) bool {
		if e := m.jobs[jid]; e.created.Before(before) && !m.queue.isHeld(jid) {
			if e.known {
				n++
			}
			m.dropJob(jid)
			return true
		}
		return false
	})
	return n, nil
}

func (m *memory) Close() error { return nil }

// Union returns the sorted union of two lists of ids.
func Union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}
