package subscribers

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// fetchedJobs is how many jobs are at hand for minions that fetch them, and fetchedFor how long; after that the store
// is asked.
const (
	fetchedJobs = 8
	fetchedFor  = time.Minute
)

// FetchCache keeps the jobs that are being fetched. One of those who ask for a job at a time reads it from the store,
// the others wait.
type FetchCache struct {
	mu      sync.Mutex
	jobs    []FetchedJob             // guarded by mu; the newest first
	reading map[string]chan struct{} // guarded by mu; closed when a job was read
}

// FetchedJob is a job as the minions in IDs get it.
type FetchedJob struct {
	JID  string
	At   time.Time
	Load map[string]any // not changed
	IDs  map[string]struct{}
}

// Get is a job that is at hand and for a minion. A batch may have added the minion since; then the store knows. While
// another one reads the job there, it gives what to wait for; else the caller is to read it, and to call read
// afterwards.
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

// Put keeps a job that was read.
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
