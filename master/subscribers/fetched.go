package subscribers

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// fetchedJobs is how many jobs are cached for minions that fetch them, and fetchedFor how long. After that they
// are read from the store.
const (
	fetchedJobs = 8
	fetchedFor  = time.Minute
)

// FetchCache caches the jobs that are being fetched. Of several callers that need a job, one reads it from the
// store and the others wait.
type FetchCache struct {
	mu      sync.Mutex
	jobs    []FetchedJob             // guarded by mu; newest first
	reading map[string]chan struct{} // guarded by mu; closed when the job was read
}

// FetchedJob is a job in the form for the minions in IDs.
type FetchedJob struct {
	JID  string
	At   time.Time
	Load map[string]any // not modified
	IDs  map[string]struct{}
}

// Get returns a cached job if it is for the minion. Otherwise the job must be read from the store, which also
// knows minions that a batch has added since. If another caller is reading it, Get returns a channel to wait
// for. Else the caller must read the job, and call read afterwards.
func (c *FetchCache) Get(jid, id string, now time.Time) (load map[string]any, wait <-chan struct{},
	read func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.jobs {
		if _, meant := x.IDs[id]; x.JID == jid && meant && now.Sub(x.At) < fetchedFor {
			return maps.Clone(x.Load), nil, nil
		}
	}
	if other := c.reading[jid]; other != nil {
		return nil, other, nil
	}
	if c.reading == nil {
		c.reading = make(map[string]chan struct{})
	}
	done := make(chan struct{})
	c.reading[jid] = done
	return nil, nil, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.reading, jid)
		close(done)
	}
}

// Put caches a job that was read.
func (c *FetchCache) Put(x FetchedJob) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs = slices.DeleteFunc(c.jobs, func(old FetchedJob) bool {
		return old.JID == x.JID ||
			x.At.Sub(old.At) >= fetchedFor
	})
	c.jobs = slices.Insert(c.jobs, 0, x)
	if len(c.jobs) > fetchedJobs {
		c.jobs = slices.Delete(c.jobs, fetchedJobs, len(c.jobs))
	}
}
