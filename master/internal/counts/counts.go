// Package counts counts a master's work: requests by kind, sign-ins by outcome, and jobs. Its methods are safe
// for concurrent use.
package counts

import (
	"maps"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/requests"
	"github.com/brine-salt/brine/protocol"
)

// Requests counts the requests of one kind, with their total time.
type Requests struct {
	Count   int64
	Seconds float64
}

// Counters start at zero. Create them with New.
type Counters struct {
	// Started is when they were created.
	Started time.Time

	mu       sync.Mutex // guards the fields below
	requests map[string]Requests
	signIns  map[string]int64
	jobs     int64
}

// New returns new counters.
func New() *Counters {
	return &Counters{Started: time.Now(), requests: map[string]Requests{},
		signIns: map[string]int64{}}
}

// CountRequest implements door.Counts. Unknown commands count as one kind, so that peers cannot create kinds.
func (c *Counters) CountRequest(cmd string, began time.Time) {
	switch cmd {
	case "_auth", "_pillar", "ping", "publish", "runner", "wheel", "mk_token", "get_token",
		protocol.ReturnsCmd:
	default:
		if !requests.Known(cmd) {
			cmd = "other"
		}
	}
	took := time.Since(began).Seconds()
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.requests[cmd]
	c.requests[cmd] = Requests{r.Count + 1, r.Seconds + took}
}

// CountSignIn implements signin.Counts.
func (c *Counters) CountSignIn(act string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.signIns[act]++
}

// CountJob counts a published job.
func (c *Counters) CountJob() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs++
}

// AllSignIns implements network.Counts.
func (c *Counters) AllSignIns() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range c.signIns {
		n += of
	}
	return n
}

// Read returns copies of the counters: requests by command (with "other" for unknown ones), sign-ins by
// outcome, and jobs.
func (c *Counters) Read() (requests map[string]Requests, signIns map[string]int64, jobs int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.requests), maps.Clone(c.signIns), c.jobs
}
