// Package counts counts what a master does: requests by kind, sign-ins by what became of them, and jobs. Its methods
// may be called from any goroutine.
package counts

import (
	"maps"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/requests"
	"github.com/brine-salt/brine/protocol"
)

// Requests are those of one kind: how many were answered, and how long that took all together.
type Requests struct {
	Count   int64
	Seconds float64
}

// Counters begin at zero. Make them with New.
type Counters struct {
	// Started is when they were made.
	Started time.Time

	mu       sync.Mutex // guards the fields below
	requests map[string]Requests
	signIns  map[string]int64
	jobs     int64
}

// New returns counters that begin now.
func New() *Counters {
	return &Counters{Started: time.Now(), requests: map[string]Requests{},
		signIns: map[string]int64{}}
}

// CountRequest implements door.Counts: it counts one that began at some time. Peers do not decide how many kinds there
// are.
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

// CountJob counts a job that was published.
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

// Read returns copies of what was counted: requests by their command, with "other" for what does not exist, sign-ins by
// what became of them, and jobs.
func (c *Counters) Read() (requests map[string]Requests, signIns map[string]int64, jobs int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.requests), maps.Clone(c.signIns), c.jobs
}
