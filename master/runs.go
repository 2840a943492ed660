package master

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/requests/returns"
)

// runs holds the jobs whose results are awaited, and the ids of jobs whose returns are not stored.
type runs struct {
	mu       sync.Mutex // guards the fields below
	byJID    map[string]*Run
	uncached map[string]time.Time // time of publishing, by job id
}

var _ returns.Runs = (*runs)(nil)

func newRuns() *runs {
	return &runs{byJID: make(map[string]*Run), uncached: make(map[string]time.Time)}
}

// skipCache records that a job's returns must not be stored.
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

// sweep removes such records after a day.
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

// of returns the run that awaits a job's results, or nil.
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

// awaited reports whether a caller awaits the results of any job.
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
