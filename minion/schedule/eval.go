package schedule

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pydate"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/strftime"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
)

// timeLayout is the format of times in jobs.
const timeLayout = "%Y-%m-%dT%H:%M:%S"

// evaluate decides for every job whether it runs now. changed reports whether any job's plan changed, so that another
// evaluation soon is worthwhile. The caller holds mu.
func (s *Schedule) evaluate(now time.Time, window time.Duration) (runs []Run, changed bool) {
	all := s.merged()
	// The settings are stored in the Schedule, since run_job and other requests use them between evaluations.
	if v, ok := all["skip_function"]; ok {
		s.skipFun = textOf(v)
	}
	if v, ok := all["skip_during_range"]; ok {
		s.skip = v
	}
	if v, ok := all["enabled"]; ok {
		s.enabled = pytext.Truth(v)
	}
	if v, ok := all["splay"]; ok {
		s.splay = v
	}
	// Sorted, so that jobs that are due at the same time start in a fixed order.
	for _, name := range sortedNames(all) {
		if isSetting(name) {
			continue
		}
		job, ok := all[name].(map[string]any)
		if !ok {
			s.logOnce(name, fmt.Sprintf("Scheduled job %q should have a dict value, not %s", name, modules.TypeName(all[name])))
			continue
		}
		before := job["_next_fire_time"]
		e := evaluation{s: s, job: job, name: name, now: now, window: window}
		run, err := e.decide()
		if err != nil {
			_, text := modules.Exception(err)
			s.logOnce(name, fmt.Sprintf("Exception %s occurred in scheduled job", text))
			continue
		}
		// A job with dry_run is planned but not started.
		if run && !pytext.Truth(job["dry_run"]) {
			copied, _ := nested.Copy(job).(map[string]any)
			runs = append(runs, Run{Name: e.called(), Fun: e.fun, Job: copied})
		}
		// A changed time means that the plan is not final yet.
		changed = changed || run || !reflect.DeepEqual(before, job["_next_fire_time"])
	}
	return runs, changed
}

// logOnce logs a problem of a job once, since evaluations may follow every second.
func (s *Schedule) logOnce(name, what string) {
	if s.said == nil {
		s.said = map[string]string{}
	}
	if s.said[name] != what {
		s.said[name] = what
		s.o.Log.Error(what, "job", name)
	}
}

// An evaluation decides about one job, once. Its state is in the job's map, as in Salt: other functions and users see
// the private fields there.
type evaluation struct {
	s      *Schedule
	job    map[string]any
	name   string
	fun    string
	now    time.Time
	window time.Duration
	run    bool
}

// errStop ends an evaluation without a run.
var errStop = errors.New("stop")

// These methods read the job's fields by Python's rules: has tests for presence, true for truth; time returns a
// planned time.
func (e *evaluation) called() string { return pytext.Str(e.job["name"]) }

func (e *evaluation) has(key string) bool { _, ok := e.job[key]; return ok }

func (e *evaluation) true(key string) bool { return pytext.Truth(e.job[key]) }

func (e *evaluation) time(key string) (time.Time, bool) {
	t, ok := e.job[key].(time.Time)
	return t, ok
}

// textOf returns a value as text, or "" for a value that is false in Python.
func textOf(v any) string {
	if !pytext.Truth(v) {
		return ""
	}
	return pytext.Str(v)
}

// failJob records an error in the job, which then cannot run.
func (e *evaluation) failJob(format string, args ...any) error {
	e.job["_error"] = fmt.Sprintf(format, args...)
	e.s.logOnce(e.name, e.job["_error"].(string))
	return errStop
}

// skipJob records why a job does not run now.
func (e *evaluation) skipJob(reason string) {
	e.job["_skip_reason"], e.job["_skipped_time"], e.job["_skipped"], e.job["run"] = reason, e.now, true, false
}

// decide implements the body of the loop in Salt's Schedule.eval.
func (e *evaluation) decide() (bool, error) {
	j := e.job
	// Remove the private fields of the last evaluation; those of the plan stay.
	for _, k := range [...]string{"_continue", "_error", "_enabled", "_skipped", "_skip_reason", "_skipped_time"} {
		delete(j, k)
	}
	if !e.has("name") {
		j["name"] = e.name
	}
	var err error
	if e.fun, err = jobFunction(j); err != nil {
		return false, err
	}
	for _, k := range [...]string{"_next_fire_time", "_splay"} {
		if !e.has(k) {
			j[k] = nil
		}
	}
	// run_on_start applies once; then the private field is false.
	if e.true("run_on_start") && !e.has("_run_on_start") {
		j["_run_on_start"] = true
	}
	// when, cron and once exclude each other. Intervals take precedence silently, as in Salt.
	kinds := 0
	for _, k := range [...]string{"when", "cron", "once"} {
		if e.has(k) {
			kinds++
		}
	}
	if kinds > 1 {
		e.s.logOnce(e.name, `Unable to use "when", "cron", "once" options together. Ignoring.`)
		return false, nil
	}
	err = e.planTime()
	if errors.Is(err, errStop) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return e.checkDue()
}

// planTime determines when the job runs next, from the first option that it has in Salt's order: interval, once,
// when, cron.
func (e *evaluation) planTime() error {
	// run_explicit applies in addition to the job's plan.
	if e.has("run_explicit") {
		if err := e.planExplicit(); err != nil {
			return err
		}
		e.run = e.true("run")
	}
	var err error
	switch {
	case e.has("seconds") || e.has("minutes") || e.has("hours") || e.has("days"):
		err = e.planInterval()
	case e.has("once"):
		err = e.planOnce()
	case e.has("when"):
		err = e.planWhen()
	case e.has("cron"):
		err = e.planCron()
	default:
		err = errStop
	}
	if err == nil && e.true("_continue") {
		err = errStop
	}
	return err
}

// planInterval plans a job with seconds, minutes, hours or days. The interval is computed once; a changed job is a
// new one, without the field.
func (e *evaluation) planInterval() error {
	if e.has("_seconds") {
		return nil
	}
	var total int64
	for _, u := range [...]struct {
		name   string
		factor int64
	}{{"seconds", 1}, {"minutes", 60}, {"hours", 3600}, {"days", 86400}} {
		v, ok := e.job[u.name]
		if !ok {
			continue
		}
		n, err := modules.ToInt(v)
		if err != nil {
			return err
		}
		// A larger number would overflow a Duration.
		if n > math.MaxInt32 || n < math.MinInt32 {
			return fmt.Errorf("cannot use %s %d: it is out of range", u.name, n)
		}
		total += n * u.factor
	}
	e.job["_seconds"] = total
	next := e.now.Add(time.Duration(total) * time.Second)
	// A job that was reloaded keeps its planned time.
	if _, ok := e.time("_next_fire_time"); !ok {
		e.job["_next_fire_time"] = next
	}
	e.job["_next_scheduled_fire_time"] = next
	return nil
}

// planOnce plans a job with once. A time that has passed is not made up for.
func (e *evaluation) planOnce() error {
	early := e.now.Add(-e.window)
	next, ok := e.time("_next_fire_time")
	_, splayed := e.time("_splay")
	// The time has passed, or is still to come: nothing to do.
	if ok && (next.Before(early) || next.After(e.now) && !splayed) {
		e.job["_continue"] = true
	}
	if ok || splayed {
		return nil
	}
	once, ok := e.time("once")
	if !ok {
		format := timeLayout
		if f, ok := e.job["once_fmt"]; ok {
			format = pytext.Str(f)
		}
		var err error
		if once, err = pydate.Strptime(textOf(e.job["once"]), format); err != nil {
			return e.failJob("Date string could not be parsed: %s, %s. Ignoring job %s.", pytext.Str(e.job["once"]), format, e.called())
		}
	}
	e.job["_next_fire_time"], e.job["_next_scheduled_fire_time"] = once, once
	// A time before the window has passed.
	if once.Before(early) {
		e.job["_continue"] = true
	}
	return nil
}

// whenTimes returns the times of a job. A time may be text, or a name in "whens" of pillar or grains. A planned splay
// counts, too.
func (e *evaluation) whenTimes() ([]time.Time, error) {
	names, ok := e.job["when"].([]any)
	if !ok {
		names = []any{e.job["when"]}
	}
	var times []time.Time
	for _, v := range names {
		resolved := v
		for _, src := range [...]struct {
			data func() map[string]any
			bad  string
		}{{e.s.o.Pillar, `Pillar item "whens" must be a dict. Ignoring job %s.`}, {e.s.o.Grains, `Grain "whens" must be a dict. Ignoring job %s.`}} {
			if src.data == nil {
				continue
			}
			all := src.data()["whens"]
			m, isMap := all.(map[string]any)
			// As in Salt, a list instead of a dict is an error only for names that are in it.
			if l, isList := all.([]any); isList && slices.ContainsFunc(l, func(x any) bool { return reflect.DeepEqual(x, v) }) {
				return nil, e.failJob(src.bad, e.called())
			}
			name, isText := v.(string)
			// Pillar takes precedence over grains.
			if w, found := m[name]; isMap && isText && found {
				resolved = w
				break
			}
		}
		t, ok := resolved.(time.Time)
		if !ok {
			s, isText := resolved.(string)
			var err error
			if t, err = pydate.Parse(s, e.now); err != nil || !isText {
				return nil, e.failJob("Invalid date string %s. Ignoring job %s.", pytext.Str(v), e.called())
			}
		}
		times = append(times, t)
	}
	if t, ok := e.time("_splay"); ok {
		times = append(times, t)
	}
	sorting.Stable(times, time.Time.Compare)
	return times, nil
}

// planWhen plans a job with when. Of several missed times only the latest counts.
func (e *evaluation) planWhen() error {
	times, err := e.whenTimes()
	if err != nil {
		return err
	}
	early := e.now.Add(-e.window)
	// Times within the window may still run.
	for len(times) > 1 && times[0].Before(early) {
		times = times[1:] // drop all missed times except the latest
	}
	if len(times) == 0 {
		if !e.true("_run") {
			e.job["_next_fire_time"], e.job["_continue"] = nil, true
		}
		return nil
	}
	when := times[0]
	_, splayed := e.time("_splay")
	if when.Before(early) && !e.true("_run") && !e.run && !splayed {
		e.job["_next_fire_time"], e.job["_continue"] = nil, true
		return nil
	}
	// _run marks a time at which the job has not run yet.
	if !e.has("_run") {
		e.job["_run"] = !when.Before(early)
	}
	if _, ok := e.time("_next_fire_time"); !ok {
		e.job["_next_fire_time"] = when
	}
	e.job["_next_scheduled_fire_time"] = when
	// The job has run at the planned time; plan the next one.
	if next, _ := e.time("_next_fire_time"); next.Before(when) && !e.run && !e.true("_run") {
		e.job["_next_fire_time"], e.job["_run"] = when, true
	}
	return nil
}

// planCron plans a job with a cron expression.
func (e *evaluation) planCron() error {
	// The plan is kept until the job has run, since the expression would yield a later time.
	if e.job["_next_fire_time"] != nil {
		return nil
	}
	c, err := parseCron(textOf(e.job["cron"]))
	var next time.Time
	if err == nil {
		next, err = c.nextTime(e.now)
	}
	if err != nil {
		return e.failJob("Invalid cron string. Ignoring job %s.", e.called())
	}
	e.job["_next_fire_time"], e.job["_next_scheduled_fire_time"] = next, next
	return nil
}

// explicitTime returns the time of an entry of run_explicit or skip_explicit.
func explicitTime(v any) (time.Time, error) {
	switch v := v.(type) {
	case time.Time:
		return v, nil
	case map[string]any:
		return pydate.Strptime(textOf(v["time"]), textOf(v["time_fmt"]))
	}
	return time.Time{}, fmt.Errorf("cannot use %s as a time", pytext.Repr(v))
}

// explicitTimes returns the times of all entries.
func explicitTimes(v any) ([]time.Time, error) {
	var times []time.Time
	for _, x := range listOf(v) {
		t, err := explicitTime(x)
		if err != nil {
			return nil, err
		}
		times = append(times, t)
	}
	return times, nil
}

// planExplicit applies run_explicit: additional times at which the job runs.
func (e *evaluation) planExplicit() error {
	times, err := explicitTimes(e.job["run_explicit"])
	if err != nil {
		return err
	}
	e.job["run"] = false
	early := e.now.Add(-e.window)
	for i := 0; i < len(times); {
		// The last time is kept even if it has passed, as in Salt.
		if len(times) > 1 && times[i].Before(early) {
			times = slices.Delete(times, i, i+1)
			continue
		}
		i++
	}
	// The time is within the window.
	if len(times) > 0 && !e.now.Before(times[0]) && e.now.Before(times[0].Add(e.window)) {
		e.job["run"], e.job["_next_fire_time"] = true, times[0]
	}
	return nil
}

// secondsLeft returns the time until the job runs, in whole seconds unless it has a splay. It also plans the splay.
func (e *evaluation) secondsLeft() (float64, error) {
	j := e.job
	next, ok := e.time("_next_fire_time")
	if !ok {
		return 0, errors.New("the job has no time to run at")
	}
	// Both times are truncated to seconds first, as in Salt.
	seconds := next.Truncate(time.Second).Sub(e.now.Truncate(time.Second)).Seconds()
	if !e.has("splay") {
		j["splay"] = e.s.splay
	}
	if !e.true("splay") {
		return seconds, nil
	}
	// The splay is chosen once per run.
	if _, ok := e.time("_splay"); !ok {
		n, ok, err := e.s.splayTime(j["splay"])
		if err != nil || !ok {
			return seconds, err
		}
		// If the splayed time has passed already, the job runs at once.
		if put := next.Add(time.Duration(n) * time.Second); e.now.Before(put) {
			j["_splay"] = put
			if e.has("when") {
				j["_run"] = true
			}
		} else {
			e.run = true
		}
	}
	if put, ok := e.time("_splay"); ok {
		seconds = put.Sub(e.now).Seconds()
		if e.has("when") {
			j["_next_fire_time"] = put
		}
	}
	return seconds, nil
}

// checkDue decides whether the job runs now, and records the run.
func (e *evaluation) checkDue() (bool, error) {
	j := e.job
	seconds, err := e.secondsLeft()
	if err != nil {
		return false, err
	}
	next, _ := e.time("_next_fire_time")
	inWindow := !e.now.Before(next) && !e.now.After(next.Add(e.window))
	switch {
	case e.has("_seconds"):
		// Interval jobs run late if the host slept.
		e.run = e.run || seconds <= 0
	// Jobs at fixed times run only within the window.
	case e.has("when") && e.true("_run"):
		if inWindow {
			j["_run"] = false
			e.run = true
		}
	case e.has("cron"):
		if seconds <= 0 {
			j["_next_fire_time"] = nil
			e.run = true
		}
	case e.has("once"):
		e.run = e.run || inWindow
	default:
		e.run = e.run || seconds == 0
	}
	// run_on_start ignores ranges and other limits.
	if e.true("_run_on_start") {
		e.run = true
		j["_run_on_start"] = false
	} else if e.run {
		if err := e.applyLimits(); err != nil {
			if errors.Is(err, errStop) {
				return false, nil
			}
			return false, err
		}
	}
	// A disabled job is recorded as skipped.
	if !e.s.enabled || e.has("enabled") && !e.true("enabled") {
		j["_skip_reason"], j["_skipped_time"], j["_skipped"] = "disabled", e.now, true
		e.run = false
	}
	if e.run {
		e.countRunning()
	}
	e.planNext()
	return e.run, nil
}

// countRunning applies the option maxrunning.
func (e *evaluation) countRunning() {
	j := e.job
	include := !e.has("jid_include") || e.true("jid_include")
	if include {
		j["jid_include"] = true
		if !e.has("maxrunning") {
			j["maxrunning"] = int64(1)
		}
	}
	j["run"] = e.run
	e.s.checkRunning(j, e.called(), e.now)
	e.run = e.true("run")
}

// checkRunning prevents a job from running if maxrunning jobs of its name run already.
func (s *Schedule) checkRunning(j map[string]any, name string, now time.Time) {
	if !pytext.Truth(j["run"]) {
		return
	}
	if v, ok := j["jid_include"]; ok && !pytext.Truth(v) {
		return
	}
	limit, err := modules.ToInt(j["maxrunning"])
	if err != nil {
		limit = 1
	}
	// The limit counts jobs of the name, no matter how they were started.
	if n := s.o.Running(name); n > 0 && int64(n) >= limit {
		j["_skip_reason"], j["_skipped"], j["_skipped_time"], j["run"] = "maxrunning", true, now, false
	}
}

// planNext plans the next time of a job with an interval.
func (e *evaluation) planNext() {
	j := e.job
	if e.run {
		j["_last_run"], j["_splay"] = e.now, nil
	}
	n, ok := j["_seconds"].(int64)
	if !ok {
		return
	}
	next, _ := e.time("_next_fire_time")
	// A skipped job is planned again, like one that ran.
	if e.true("_skipped") && !next.After(e.now) || !e.true("_skipped") && e.run {
		j["_next_fire_time"] = e.now.Add(time.Duration(n) * time.Second)
	}
}

// applyLimits applies the options that can prevent a job from running at its time.
func (e *evaluation) applyLimits() error {
	steps := []struct {
		key   string
		check func() error
		fun   bool // the step may replace the function
	}{
		{"range", e.checkRange, true}, {"skip_during_range", e.checkSkipRange, true}, {"skip_explicit", e.checkSkipExplicit, true},
		{"until", e.until, false}, {"after", e.afterTime, false},
	}
	for _, step := range steps {
		// The schedule's range applies to jobs that do not have one.
		if step.key == "skip_during_range" {
			if !e.has(step.key) && pytext.Truth(e.s.skip) {
				e.job[step.key] = e.s.skip
			}
			if !e.true(step.key) {
				continue
			}
		}
		if !e.has(step.key) {
			continue
		}
		if err := step.check(); err != nil {
			return err
		}
		// A check reports its decision in the job's field "run", as in Salt.
		e.run = e.true("run")
		if f, ok := e.job["func"]; ok && step.fun {
			e.fun = pytext.Str(f)
		}
	}
	return nil
}

// rangeOf parses a range. badMap and badDate are Salt's texts for errors.
func (e *evaluation) rangeOf(key, badMap, badDate string) (start, end time.Time, m map[string]any, err error) {
	m, ok := e.job[key].(map[string]any)
	if !ok {
		return start, end, nil, e.failJob(badMap, e.called())
	}
	for _, part := range [...]struct {
		name string
		into *time.Time
	}{{"start", &start}, {"end", &end}} {
		v, ok := m[part.name]
		if !ok {
			return start, end, nil, fmt.Errorf("'%s'", part.name)
		}
		t, ok := v.(time.Time)
		if !ok {
			s, isText := v.(string)
			if t, err = pydate.Parse(s, e.now); err != nil || !isText {
				return start, end, nil, e.failJob(badDate, part.name, e.called())
			}
		}
		*part.into = t
	}
	return start, end, m, nil
}

// checkRange applies the option range.
func (e *evaluation) checkRange() error {
	start, end, m, err := e.rangeOf("range", "schedule.handle_func: Invalid, range must be specified as a dictionary.Ignoring job %s.",
		"Invalid date string for %s. Ignoring job %s.")
	if err != nil {
		return err
	}
	if !end.After(start) {
		return e.failJob("schedule.handle_func: Invalid range, end must be larger than start. Ignoring job %s.", e.called())
	}
	j := e.job
	// With invert the job does not run in the range.
	if pytext.Truth(m["invert"]) {
		j["run"] = !e.now.After(start) || !e.now.Before(end)
		if j["run"] == false {
			j["_skip_reason"] = "in_skip_range"
		}
		return nil
	}
	switch {
	case !e.now.Before(start) && !e.now.After(end):
		j["run"] = true
	// The skip function runs instead of the job.
	case e.s.skipFun != "":
		j["run"], j["func"] = true, e.s.skipFun
	default:
		j["_skip_reason"], j["run"] = "not_in_range", false
	}
	return nil
}

// checkSkipRange applies skip_during_range of the job or of the whole schedule.
func (e *evaluation) checkSkipRange() error {
	start, end, _, err := e.rangeOf("skip_during_range", "schedule.handle_func: Invalid, range must be specified as a dictionary. Ignoring job %s.",
		"Invalid date string for %s in skip_during_range. Ignoring job %s.")
	if err != nil {
		return err
	}
	j := e.job
	if e.true("run_after_skip_range") {
		// Salt adds this entry at every evaluation; once is enough.
		at := map[string]any{"time": strftime.Naive(timeLayout, end.Add(e.s.o.Loop)), "time_fmt": timeLayout}
		if entries := listOf(j["run_explicit"]); !slices.ContainsFunc(entries, func(x any) bool { return reflect.DeepEqual(x, any(at)) }) {
			j["run_explicit"] = append(slices.Clone(entries), at)
		}
	}
	switch {
	case !end.After(start):
		return e.failJob("schedule.handle_func: Invalid range, end must be larger than start. Ignoring job %s.", e.called())
	case e.now.Before(start) || e.now.After(end):
		j["run"] = true
	case e.s.skipFun != "":
		j["run"], j["func"] = true, e.s.skipFun
	default:
		e.skipJob("in_skip_range")
	}
	return nil
}

// checkSkipExplicit applies skip_explicit: times at which the job does not run.
func (e *evaluation) checkSkipExplicit() error {
	times, err := explicitTimes(e.job["skip_explicit"])
	if err != nil {
		return err
	}
	j := e.job
	j["run"] = false
	// Times that have passed do not count.
	times = slices.DeleteFunc(times, func(t time.Time) bool { return t.Before(e.now.Add(-e.window)) })
	switch {
	case len(times) == 0:
		j["run"] = true
	case e.now.Before(times[0]) || e.now.After(times[0].Add(e.window)):
	case e.s.skipFun != "":
		j["run"], j["func"] = true, e.s.skipFun
	default:
		e.skipJob("skip_explicit")
	}
	return nil
}

// border returns the time in the option until or after.
func (e *evaluation) border(key string) (time.Time, error) {
	if t, ok := e.time(key); ok {
		return t, nil
	}
	s, _ := e.job[key].(string)
	return pydate.Parse(s, e.now)
}

// until applies the option until, afterTime the option after.
func (e *evaluation) until() error {
	t, err := e.border("until")
	if err != nil {
		return err
	}
	if t.After(e.now) {
		e.job["run"] = true
		return nil
	}
	e.skipJob("until_passed")
	return nil
}

func (e *evaluation) afterTime() error {
	t, err := e.border("after")
	if err != nil {
		return err
	}
	if t.Before(e.now) {
		e.job["run"] = true
		return nil
	}
	e.skipJob("after_not_passed")
	return nil
}
