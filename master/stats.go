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

// RequestStats counts requests of one kind.
type RequestStats struct {
	// Count is the number of requests answered. Seconds is their total time.
	Count   int64
	Seconds float64
}

// Stats are counters since the master's creation, and current numbers.
type Stats struct {
	// Started is when New was called.
	Started time.Time
	// Requests are counted by command: "_auth", "_return", "_pillar", …, and "other" for unknown commands.
	Requests map[string]RequestStats
	// SignIns are counted by outcome, as in salt/auth events: "accept", "pend", "reject", "denied", "full".
	SignIns map[string]int64
	// Jobs is the number of published jobs, Returns that of accepted returns.
	Jobs, Returns int64
	// Keys is the number of minions per state, under salt-key's names: "accepted", "pending", "rejected",
	// "denied".
	Keys map[string]int
	// Connected is the number of connected minions, Subscribers that of publish connections. Dropped is how
	// many of those were closed because they did not keep up.
	Connected, Subscribers int
	Dropped                int64
	// Listeners is the number of subscribers to the event bus, in this process and on this host.
	Listeners int
}

// Stats returns the master's counters. It lists the keys, so its cost grows with the number of minions; call it
// every few seconds at most.
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

// Health returns nil while the master serves and its store answers, else what is wrong. From Drain on it
// returns ErrDraining. It waits for the store for at most ten seconds.
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
