package master

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/requests/returns"
)

// runs are the jobs whose results are awaited, and those whose returns are not stored.
type runs struct {
	mu       sync.Mutex // guards the fields below
	byJID    map[string]*Run
	uncached map[string]time.Time // when they were published
}

var _ returns.Runs = (*runs)(nil)

func newRuns() *runs {
	return &runs{byJID: make(map[string]*Run), uncached: make(map[string]time.Time)}
}

// skipCache remembers that returns of a job are not to be stored.
func (r *runs) skipCache(jid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uncached[jid] = time.Now()
}

// NoCache implements returns.Runs.
func (r *runs) NoCache(jid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.uncached[jid]
	return ok
}

// sweep forgets which returns are not to be stored of jobs that are a day old.
func (r *runs) sweep(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := func(_ string, at time.Time) bool { return now.Sub(at) > 24*time.Hour }
	maps.DeleteFunc(r.uncached, old)
}

func (r *runs) add(run *Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byJID[run.JID] = run
}

func (r *runs) drop(jid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byJID, jid)
}

// of returns the run that awaits the results of a job, nil if there is none.
func (r *runs) of(jid string) *Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byJID[jid]
}

// list returns all runs.
func (r *runs) list() []*Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.byJID))
}

// awaited reports whether a program awaits the results of a job.
func (r *runs) awaited() bool {
	return slices.ContainsFunc(r.list(), func(run *Run) bool { return !run.internal })
}

// Awaited implements returns.Runs.
func (r *runs) Awaited(jid string) (minions []string, ok bool) {
	run := r.of(jid)
	if run == nil {
		return nil, false
	}
	return run.Minions, true
}

// Deliver implements returns.Runs.
func (r *runs) Deliver(jid, id string, load map[string]any) bool {
	run := r.of(jid)
	if run == nil {
		return false
	}
	run.deliver(resultOf(id, load))
	return true
}
