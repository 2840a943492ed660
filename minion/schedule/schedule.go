// Package schedule runs functions at times, like the scheduler of a Salt minion: intervals, points in time and cron
// expressions, with splay, ranges and everything else that Salt's option and pillar "schedule" accepts.
//
//	configuration + pillar ─▶ merged ─▶ for each job: decide
//	                                        planTime       when: seconds…, once, when, cron, run_explicit
//	                                        checkDue       now? splay, window of one loop interval
//	                                        applyLimits    range, skip_during_range, skip_explicit, until, after
//	                                        countRunning   maxrunning
//	                                        planNext
//	         ▲                                  │
//	         └── timer: the next moment at which a decision can change ◀──┴──▶ Start(Run)
//
// The decision follows salt/utils/schedule.py (Schedule.eval) job by job and field by field, including the private
// fields that it stores in the jobs. Salt evaluates every second; here a timer waits for the next moment at which a
// decision can change, and without jobs there is no timer.
//
// The package does not execute functions and has no connection to a master; package minion provides both.
package schedule

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pydate"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// A Run is a job that is due.
type Run struct {
	// Name is the job's name in the schedule. Fun is its function, or "".
	Name, Fun string
	// Job is a copy of the job's data.
	Job map[string]any
}

// Options are what a schedule needs from its program. All functions may be called from several goroutines.
type Options struct {
	// Jobs is the option schedule. It is copied.
	Jobs map[string]any
	// Loop is the option loop_interval: how long after its time a job at a fixed time may still start. 0 means one
	// second.
	Loop time.Duration
	// Pillar and Grains return the minion's data; nil means no data.
	Pillar, Grains func() map[string]any
	// Running returns how many jobs with a name are running.
	Running func(name string) int
	// Start starts a job and returns at once.
	Start func(Run)
	// Fire puts an event on the minion's bus; nil means no bus.
	Fire func(tag string, data map[string]any)
	// Persist writes the jobs to disk; it must not change them. nil stores nothing.
	Persist func(jobs map[string]any) error
	// Log receives messages; nil means no log.
	Log *slog.Logger
	// Clock returns the time; nil means time.Now.
	Clock func() time.Time
}

// A Schedule holds jobs and starts them. It is safe for concurrent use.
type Schedule struct {
	o Options

	mu      sync.Mutex
	opts    map[string]any    // guarded by mu; jobs and settings of the configuration
	pillar  map[string]any    // guarded by mu; jobs and settings of the pillar, with private fields
	seen    any               // guarded by mu; the pillar's schedule when it was last read
	enabled bool              // guarded by mu
	splay   any               // guarded by mu
	skipFun string            // guarded by mu
	skip    any               // guarded by mu; skip_during_range of all jobs
	said    map[string]string // guarded by mu; the last message logged about each job
	random  func(a, b int64) int64

	timer   *time.Timer // guarded by mu; nil if there is nothing to wait for
	planned time.Time   // guarded by mu; the time that the timer waits for
	last    time.Time   // guarded by mu; the last evaluation
	looked  time.Time   // guarded by mu; the same, with the monotonic clock
	started bool        // guarded by mu
	stopped bool        // guarded by mu
}

// New returns a schedule. Nothing runs before Start.
func New(o Options) *Schedule {
	if o.Loop <= 0 {
		o.Loop = time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Running == nil {
		o.Running = func(string) int { return 0 }
	}
	s := &Schedule{o: o, enabled: true, random: randomBetween}
	// Copy the jobs, since evaluation changes them.
	s.opts, _ = nested.Copy(ofUsers(o.Jobs)).(map[string]any)
	return s
}

// ofUsers returns the jobs without those that a stock minion stores in _schedule.conf for internal tasks, and deletes
// or recreates when it starts. brine performs these tasks in other ways. Some have "seconds: 0" and would run without
// end.
func ofUsers(jobs map[string]any) map[string]any {
	out := make(map[string]any, len(jobs))
	for name, job := range jobs {
		if !slices.ContainsFunc([]string{"__master_alive", "__master_failback", "__mine_interval", "__update_grains", "__proxy_keepalive"},
			func(own string) bool { return strings.HasPrefix(name, own) }) {
			out[name] = job
		}
	}
	return out
}

// Start begins to run jobs.
func (s *Schedule) Start() {
	s.mu.Lock()
	s.started = true
	s.mu.Unlock()
	s.Wake()
}

// Stop ends the schedule. Running jobs are not affected.
func (s *Schedule) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// Replace applies a changed configuration. Jobs that did not change keep their times.
func (s *Schedule) Replace(jobs map[string]any) {
	s.mu.Lock()
	s.opts = refresh(s.opts, ofUsers(jobs))
	s.mu.Unlock()
	s.Wake()
}

// Wake makes the schedule evaluate its jobs again, for example because the pillar has changed.
func (s *Schedule) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.planTimer(s.now())
}

// now returns the time without a zone, as Python's datetime.now() does.
func (s *Schedule) now() time.Time { return pydate.Now(s.o.Clock()) }

// planTimer sets the timer to t, but not before a loop interval after the last evaluation. The caller holds mu.
func (s *Schedule) planTimer(t time.Time) {
	if !s.started || s.stopped {
		return
	}
	now := s.now()
	// Evaluate at most once per loop interval. After the clock was set back, last is in the future and must not delay
	// the next evaluation.
	if first := s.last.Add(s.o.Loop); t.Before(first) && !first.After(now.Add(s.o.Loop)) {
		t = first
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	// runDue uses planned to compute how late it is.
	s.planned = t
	s.timer = time.AfterFunc(max(t.Sub(now), 0), s.runDue)
}

const (
	// maxSleep is how long the schedule relies on its timer: the host's clock may be set, or the host may sleep.
	maxSleep = 15 * time.Second
	// maxLate is how late an evaluation may be without missing jobs at a fixed time.
	maxLate = time.Minute
)

// runDue evaluates the jobs, starts those that are due, and plans the next evaluation.
func (s *Schedule) runDue() {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return
	}
	s.timer = nil
	now := s.now()
	// The clock was set back since the last evaluation.
	if now.Before(s.last) {
		s.setBack(time.Since(s.looked) - now.Sub(s.last))
	}
	s.looked = time.Now()
	// Salt includes the end of the window, and so runs a job twice if two evaluations fall exactly on both ends.
	window := s.o.Loop - time.Microsecond
	// A late timer widens the window, so that no job is missed; a very late one means that the host slept.
	if late := now.Sub(s.planned); late > 0 && late < maxLate {
		window += late
	}
	runs, changed := s.evaluate(now, window)
	s.last = now
	if next := s.nextLook(now, changed); !next.IsZero() {
		s.planTimer(next)
	}
	s.mu.Unlock()
	// Jobs are started without the lock, since Start may call the schedule.
	for _, r := range runs {
		s.o.Start(r)
	}
}

// setBack handles a clock that was set back, also at the end of daylight saving time. An interval ends after its real
// duration, and cron expressions are computed again; in Salt both wait until the clock reaches the old time. Fixed
// times ("when", "once") are unchanged. The caller holds mu.
func (s *Schedule) setBack(by time.Duration) {
	for _, v := range s.merged() {
		job, ok := v.(map[string]any)
		if !ok {
			continue
		}
		for _, k := range [...]string{"_next_fire_time", "_next_scheduled_fire_time", "_splay"} {
			t, ok := job[k].(time.Time)
			switch {
			case !ok:
			case job["_seconds"] != nil:
				job[k] = t.Add(-by)
			case job["cron"] != nil:
				job[k] = nil
			}
		}
	}
}

// nextLook returns when to evaluate again. It returns zero if there are no jobs, since only a change matters then.
func (s *Schedule) nextLook(now time.Time, changed bool) time.Time {
	jobs := 0
	first := now.Add(maxSleep)
	// consider sets first to t if t is earlier.
	consider := func(t time.Time) {
		if t.Before(first) {
			first = t
		}
	}
	for name, v := range s.merged() {
		job, ok := v.(map[string]any)
		if !ok || isSetting(name) {
			continue
		}
		jobs++
		for _, x := range listOf(job["run_explicit"]) {
			if t, err := explicitTime(x); err == nil && t.After(now) {
				consider(t)
			}
		}
		// A chosen splay replaces the planned time.
		t, ok := job["_splay"].(time.Time)
		if !ok {
			t, ok = job["_next_fire_time"].(time.Time)
		}
		switch {
		case ok && t.After(now):
			consider(t)
		case ok && (job["_seconds"] != nil || now.Sub(t) < maxLate) && job["_error"] == nil:
			consider(now.Add(s.o.Loop)) // a limit prevents the run, or its window is passing
		}
	}
	if jobs == 0 {
		return time.Time{}
	}
	if changed {
		consider(now.Add(s.o.Loop))
	}
	return first
}

// isSetting reports whether a name in a schedule is a setting and not a job.
func isSetting(name string) bool {
	return name == "enabled" || name == "skip_function" || name == "skip_during_range" || name == "splay"
}

// merged returns the whole schedule. Jobs of the configuration override those of the pillar. The caller holds mu.
func (s *Schedule) merged() map[string]any {
	s.readPillar()
	all := make(map[string]any, len(s.pillar)+len(s.opts))
	// The configuration is copied last, so it overrides.
	for k, v := range s.pillar {
		all[k] = v
	}
	for k, v := range s.opts {
		all[k] = v
	}
	return all
}

// readPillar applies a changed pillar (salt/minion.py: pillar_schedule_refresh). The caller holds mu.
func (s *Schedule) readPillar() {
	if s.o.Pillar == nil {
		return
	}
	current := s.o.Pillar()["schedule"]
	// Compare values, since the pillar is a new map each time.
	if reflect.DeepEqual(current, s.seen) {
		return
	}
	s.seen = current
	m, ok := current.(map[string]any)
	if !ok && current != nil {
		s.o.Log.Error("Schedule must be of type dict.")
	}
	s.pillar = refresh(s.pillar, m)
}

// refresh returns the new jobs. Unchanged jobs are the old maps, with their times.
func refresh(old, fresh map[string]any) map[string]any {
	out := make(map[string]any, len(fresh))
	for name, v := range fresh {
		job, ok := v.(map[string]any)
		have, had := old[name].(map[string]any)
		// The old map has the times.
		if ok && had && sameJob(have, job) {
			out[name] = have
		} else {
			out[name] = nested.Copy(v)
		}
	}
	return out
}

// sameJob reports whether a job equals its configuration, apart from fields that evaluation adds.
func sameJob(have, job map[string]any) bool {
	for k, v := range have {
		if strings.HasPrefix(k, "_") {
			continue
		}
		w, ok := job[k]
		// The configuration may lack a field that evaluation added.
		if !ok && !isAdded(k) || ok && !reflect.DeepEqual(v, w) {
			return false
		}
	}
	for k := range job {
		if _, ok := have[k]; !ok && !strings.HasPrefix(k, "_") {
			return false
		}
	}
	return true
}

// isAdded reports whether evaluation sets a field, apart from fields with a leading underscore.
func isAdded(k string) bool {
	switch k {
	case "name", "splay", "run", "func", "jid_include", "maxrunning", "run_explicit", "skip_explicit", "skip_during_range", "enabled":
		return true
	}
	return false
}

// listOf returns a list, or nil for any other value.
func listOf(v any) []any {
	l, _ := v.([]any)
	return l
}

// jobFunction returns the job's function, whose key may be any of three names.
func jobFunction(job map[string]any) (string, error) {
	for _, k := range [...]string{"function", "func", "fun"} {
		switch v := job[k].(type) {
		case nil:
			// An explicit None means that there is no function.
			if _, ok := job[k]; ok {
				return "", nil
			}
		case []any, map[string]any:
			return "", fmt.Errorf("unhashable type: '%s'", modules.TypeName(v))
		default:
			return pytext.Str(v), nil
		}
	}
	return "", nil
}

// randomBetween implements random.randint.
func randomBetween(a, b int64) int64 {
	// For an empty range, for which Python raises an error, it returns the start.
	if b < a {
		return a
	}
	return a + rand.Int64N(b-a+1)
}

// splayTime returns the delay of a job in seconds.
func (s *Schedule) splayTime(splay any) (int64, bool, error) {
	// A dict is a range; a number is the largest delay.
	if m, ok := splay.(map[string]any); ok {
		start, err1 := modules.ToInt(m["start"])
		end, err2 := modules.ToInt(m["end"])
		if err1 != nil || err2 != nil {
			return 0, false, fmt.Errorf("cannot use splay %s", pytext.Repr(splay))
		}
		if end < start {
			s.o.Log.Error("schedule.handle_func: Invalid Splay, end must be larger than start. Ignoring splay.")
			return 0, false, nil
		}
		return s.random(start, end), true, nil
	}
	n, err := modules.ToInt(splay)
	if err != nil {
		return 0, false, fmt.Errorf("cannot use splay %s", pytext.Repr(splay))
	}
	return s.random(1, n), true, nil
}

// fire fires an event on the minion's bus.
func (s *Schedule) fire(tag string, data map[string]any) map[string]any {
	if s.o.Fire != nil {
		s.o.Fire(tag, data)
	}
	return data
}

// sortedNames returns the keys of m, sorted.
func sortedNames(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}
