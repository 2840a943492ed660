// Package schedule runs functions at times, as the scheduler of a Salt minion does: intervals, points in time and cron
// expressions, with splay, ranges and everything else that Salt's option and pillar "schedule" takes.
//
// The decision what runs when follows salt/utils/schedule.py (Schedule.eval) job by job and field by field, including the
// private fields that it leaves in the jobs. Unlike there nothing looks every second: a timer waits for the next moment at which
// a decision can change. Without jobs there is no timer at all.
//
// The package runs nothing by itself and knows no masters; package minion brings these.
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
	"github.com/brine-salt/brine/internal/pydate"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// Run is a job whose time has come.
type Run struct {
	// Name is the job's name in the schedule, Fun the function, "" if the job has none.
	Name, Fun string
	// Job is the job's data, a copy.
	Job map[string]any
}

// Options are what a schedule needs of its program. All functions may be called from several goroutines.
type Options struct {
	// Jobs is the option schedule; it is copied.
	Jobs map[string]any
	// Loop is the option loop_interval: how long after its time a job at a point in time may still begin. 0 is a second.
	Loop time.Duration
	// Pillar and Grains are the minion's, nil is none.
	Pillar, Grains func() map[string]any
	// Running counts the jobs of a name that run now.
	Running func(name string) int
	// Start begins a job and returns at once.
	Start func(Run)
	// Fire puts an event on the minion's bus, nil is nobody.
	Fire func(tag string, data map[string]any)
	// Persist writes the jobs to disk; they must not be changed. nil keeps nothing.
	Persist func(jobs map[string]any) error
	// Log receives messages; nil is silent.
	Log *slog.Logger
	// Clock is the time; nil is time.Now.
	Clock func() time.Time
}

// Schedule is a schedule. It is safe for concurrent use.
type Schedule struct {
	o Options

	mu      sync.Mutex
	opts    map[string]any    // guarded by mu; jobs and settings of the configuration
	pillar  map[string]any    // guarded by mu; those of the pillar, with our private fields
	seen    any               // guarded by mu; the pillar's schedule as it was last read
	enabled bool              // guarded by mu
	splay   any               // guarded by mu
	skipFun string            // guarded by mu
	skip    any               // guarded by mu; skip_during_range of all jobs
	said    map[string]string // guarded by mu; what was last said about a job
	random  func(a, b int64) int64

	timer   *time.Timer // guarded by mu; nil while nothing is to be awaited
	planned time.Time   // guarded by mu; what the timer waits for
	last    time.Time   // guarded by mu; the last evaluation
	looked  time.Time   // guarded by mu; the same by the clock that nobody sets
	started bool        // guarded by mu
	stopped bool        // guarded by mu
}

// New makes a schedule; nothing runs before Start.
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
	s.opts, _ = nested.Copy(ofUsers(o.Jobs)).(map[string]any)
	return s
}

// ofUsers are the jobs without those that a stock minion keeps in _schedule.conf for duties of its own, and deletes or makes anew at
// its start: the minion has other ways for them. Some have "seconds: 0" and would run without end.
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

// Stop ends it. Jobs that run are not touched.
func (s *Schedule) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// Replace takes a changed configuration: jobs that are the same keep their times.
func (s *Schedule) Replace(jobs map[string]any) {
	s.mu.Lock()
	s.opts = refresh(s.opts, ofUsers(jobs))
	s.mu.Unlock()
	s.Wake()
}

// Wake makes the schedule look at its jobs anew: the pillar has changed, or a job has.
func (s *Schedule) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan(s.now())
}

func (s *Schedule) now() time.Time { return pydate.Now(s.o.Clock()) }

// plan sets the timer to t, but not before a loop interval after the last look. Called with mu held.
func (s *Schedule) plan(t time.Time) {
	if !s.started || s.stopped {
		return
	}
	now := s.now()
	if first := s.last.Add(s.o.Loop); t.Before(first) && !first.After(now.Add(s.o.Loop)) {
		t = first
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.planned = t
	s.timer = time.AfterFunc(max(t.Sub(now), 0), s.look)
}

const (
	// maxSleep is how long the schedule relies on its timer: the host's clock may be set, or the host may sleep.
	maxSleep = 15 * time.Second
	// maxLate is how much later than planned a look may come without jobs at a point in time being missed.
	maxLate = time.Minute
)

// look evaluates the jobs, starts those whose time has come and plans the next look.
func (s *Schedule) look() {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return
	}
	s.timer = nil
	now := s.now()
	if now.Before(s.last) {
		s.setBack(time.Since(s.looked) - now.Sub(s.last))
	}
	s.looked = time.Now()
	// Salt counts the far end of the window in, and runs a job twice when two of its looks hit both ends.
	window := s.o.Loop - time.Microsecond
	if late := now.Sub(s.planned); late > 0 && late < maxLate {
		window += late
	}
	runs, changed := s.eval(now, window)
	s.last = now
	if next := s.next(now, changed); !next.IsZero() {
		s.plan(next)
	}
	s.mu.Unlock()
	for _, r := range runs {
		s.o.Start(r)
	}
}

// setBack is for a clock that was set back, or that left daylight saving time: what is due after an interval is due when the interval has passed,
// and what a cron expression names is found anew. In Salt both wait until the clock is where it was. Moments that are given as
// such ("when", "once") stay where they are. Called with mu held.
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

// next is when to look again, zero for never: with no job there is nothing to wait for but a change.
func (s *Schedule) next(now time.Time, changed bool) time.Time {
	jobs := 0
	first := now.Add(maxSleep)
	consider := func(t time.Time) {
		if t.Before(first) {
			first = t
		}
	}
	for name, v := range s.merged() {
		job, ok := v.(map[string]any)
		if !ok || setting(name) {
			continue
		}
		jobs++
		for _, x := range list(job["run_explicit"]) {
			if t, err := explicitTime(x); err == nil && t.After(now) {
				consider(t)
			}
		}
		t, ok := job["_splay"].(time.Time)
		if !ok {
			t, ok = job["_next_fire_time"].(time.Time)
		}
		switch {
		case ok && t.After(now):
			consider(t)
		case ok && (job["_seconds"] != nil || now.Sub(t) < maxLate) && job["_error"] == nil:
			consider(now.Add(s.o.Loop)) // something keeps it from running, or its moment is just passing
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

// setting tells the names in a schedule that are no jobs.
func setting(name string) bool {
	return name == "enabled" || name == "skip_function" || name == "skip_during_range" || name == "splay"
}

// merged is the whole schedule; the configuration wins over the pillar. Called with mu held.
func (s *Schedule) merged() map[string]any {
	s.readPillar()
	all := make(map[string]any, len(s.pillar)+len(s.opts))
	for k, v := range s.pillar {
		all[k] = v
	}
	for k, v := range s.opts {
		all[k] = v
	}
	return all
}

// readPillar takes over a changed pillar (salt/minion.py: pillar_schedule_refresh). Called with mu held.
func (s *Schedule) readPillar() {
	if s.o.Pillar == nil {
		return
	}
	current := s.o.Pillar()["schedule"]
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

// refresh is the new jobs, where those that have not changed are the old ones.
func refresh(old, fresh map[string]any) map[string]any {
	out := make(map[string]any, len(fresh))
	for name, v := range fresh {
		job, ok := v.(map[string]any)
		have, had := old[name].(map[string]any)
		if ok && had && same(have, job) {
			out[name] = have
		} else {
			out[name] = nested.Copy(v)
		}
	}
	return out
}

// same tells whether a job is as configured, apart from what evaluation adds.
func same(have, job map[string]any) bool {
	for k, v := range have {
		if strings.HasPrefix(k, "_") {
			continue
		}
		w, ok := job[k]
		if !ok && !added(k) || ok && !reflect.DeepEqual(v, w) {
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

// added are the fields without underscore that evaluation sets.
func added(k string) bool {
	switch k {
	case "name", "splay", "run", "func", "jid_include", "maxrunning", "run_explicit", "skip_explicit", "skip_during_range", "enabled":
		return true
	}
	return false
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// function is the job's function under any of the names that it may have.
func function(job map[string]any) (string, error) {
	for _, k := range [...]string{"function", "func", "fun"} {
		switch v := job[k].(type) {
		case nil:
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

// randomBetween is random.randint.
func randomBetween(a, b int64) int64 {
	if b < a {
		return a
	}
	return a + rand.Int64N(b-a+1)
}

// splayTime is how many seconds a job is put off.
func (s *Schedule) splayTime(splay any) (int64, bool, error) {
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

// fire puts an event on the bus.
func (s *Schedule) fire(tag string, data map[string]any) map[string]any {
	if s.o.Fire != nil {
		s.o.Fire(tag, data)
	}
	return data
}

func sortedNames(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}
