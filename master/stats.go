package master

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/requests"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
)

// RequestStats counts the requests of one kind.
type RequestStats struct {
	// Count is how many were answered, Seconds how long that took all together.
	Count   int64
	Seconds float64
}

// Stats are what a master has done since it was made, and what it sees now.
type Stats struct {
	// Started is when the master was made.
	Started time.Time
	// Requests by their command: "_auth", "_return", "_pillar", …, and "other" for what does not exist.
	Requests map[string]RequestStats
	// SignIns by what became of them, as events of salt/auth say it: "accept", "pend", "reject", "denied", "full".
	SignIns map[string]int64
	// Jobs is how many were published, Returns how many were taken.
	Jobs, Returns int64
	// Keys is how many minions are in each state, as salt-key names them: "accepted", "pending", "rejected", "denied".
	Keys map[string]int
	// Connected is how many minions are connected, Subscribers how many connections listen for jobs, and Dropped how many of these
	// were closed because they did not keep up.
	Connected, Subscribers int
	Dropped                int64
	// Listeners is how many follow the event bus of the master in this process or on this host.
	Listeners int
}

// counters are what Stats has counted.
type counters struct {
	started time.Time

	mu       sync.Mutex // guards the fields below
	requests map[string]RequestStats
	signIns  map[string]int64
	jobs     int64
}

func newCounters() *counters {
	return &counters{started: time.Now(), requests: map[string]RequestStats{}, signIns: map[string]int64{}}
}

// CountRequest implements door.Counts: it counts one that began at some time. Peers do not decide how many kinds there are.
func (c *counters) CountRequest(cmd string, began time.Time) {
	switch cmd {
	case "_auth", "_pillar", "ping", "publish", "runner", "wheel", "mk_token", "get_token", protocol.ReturnsCmd:
	default:
		if !requests.Known(cmd) {
			cmd = "other"
		}
	}
	took := time.Since(began).Seconds()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.requests[cmd]
	c.requests[cmd] = RequestStats{s.Count + 1, s.Seconds + took}
}

// CountSignIn implements signin.Counts.
func (c *counters) CountSignIn(act string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.signIns[act]++
}

// AllSignIns implements network.Counts.
func (c *counters) AllSignIns() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range c.signIns {
		n += of
	}
	return n
}

func (c *counters) add(n *int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
}

// Stats tells what the master has done and sees. It lists the keys, so that it costs more the more minions there are; once in
// some seconds is often enough.
func (m *Master) Stats() (Stats, error) {
	c := m.counts
	c.mu.Lock()
	s := Stats{Started: c.started, Requests: maps.Clone(c.requests), SignIns: maps.Clone(c.signIns), Jobs: c.jobs, Returns: m.requests.Returns.Taken()}
	c.mu.Unlock()
	s.Keys = map[string]int{}
	for _, st := range [...]keys.State{keys.Accepted, keys.Pending, keys.Rejected, keys.Denied} {
		ids, err := m.keys.List(st)
		if err != nil {
			return s, err
		}
		s.Keys[st.String()] = len(ids)
	}
	s.Listeners = m.events.Subscribers()
	if !m.life.isReady() {
		return s, nil
	}
	s.Connected = len(m.Present())
	s.Subscribers, s.Dropped = m.network.Subscribers()
	return s, nil
}

// Health is nil while the master serves and its store answers; else the error says what is wrong, ErrDraining from Drain on. It waits for the
// store at most ten seconds.
func (m *Master) Health(ctx context.Context) error {
	if !m.life.serving.Load() {
		return m.life.notServing()
	}
	if m.orders != nil && m.orders.IsDraining() {
		return ErrDraining
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := m.store.Job(ctx, "20000101000000000000"); err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("the store does not answer: %w", err)
	}
	return nil
}
