package master

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/brine-salt/brine/master/internal/counts"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/store"
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
	// Connected is how many minions are connected, Subscribers how many connections listen for jobs, and Dropped how
	// many of these were closed because they did not keep up.
	Connected, Subscribers int
	Dropped                int64
	// Listeners is how many follow the event bus of the master in this process or on this host.
	Listeners int
}

// Stats tells what the master has done and sees. It lists the keys, so that it costs more the more minions there are;
// once in some seconds is often enough.
func (m *Master) Stats() (Stats, error) {
	s := Stats{Started: m.counts.Started, Requests: map[string]RequestStats{},
		Returns: m.requests.Returns.Taken()}
	var requests map[string]counts.Requests
	requests, s.SignIns, s.Jobs = m.counts.Read()
	for cmd, r := range requests {
		s.Requests[cmd] = RequestStats(r)
	}
	s.Keys = map[string]int{}
	for _, st := range [...]keys.State{keys.Accepted, keys.Pending, keys.Rejected, keys.Denied} {
		ids, err := m.keys.List(st)
		if err != nil {
			return s, err
		}
		s.Keys[st.String()] = len(ids)
	}
	s.Listeners = m.events.Subscribers()
	if !m.life.HasListened() {
		return s, nil
	}
	s.Connected = len(m.Present())
	s.Subscribers, s.Dropped = m.network.Subscribers()
	return s, nil
}

// Health is nil while the master serves and its store answers; else the error says what is wrong, ErrDraining from
// Drain on. It waits for the store at most ten seconds.
func (m *Master) Health(ctx context.Context) error {
	if !m.life.Serving() {
		return m.life.NotServing(ErrNotServing)
	}
	if m.orders != nil && m.orders.IsDraining() {
		return ErrDraining
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := m.store.Job(ctx, "20000101000000000000"); err != nil &&
		!errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("the store does not answer: %w", err)
	}
	return nil
}
