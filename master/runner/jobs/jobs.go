// Package jobs is Salt's runner jobs: the results of jobs, from the job cache and from minions that still run
// them. Salt's source: salt/runners/jobs.py.
package jobs

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/master/runner/host"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// funcs has the functions of this package, for one host.
type funcs struct{ *host.Host }

// Module returns the runner jobs.
func Module(h *host.Host) *modules.Module { return funcs{h}.jobsModule() }

// everything exceeds any number of stored jobs.
const everything = 1 << 30

// jobsModule declares the runner jobs (salt/runners/jobs.py).
func (f funcs) jobsModule() *modules.Module {
	source := modules.Param{Name: "ext_source", Optional: true}
	progress := modules.Param{Name: "display_progress", Default: false, Type: modules.Bool}
	out := modules.Param{Name: "outputter", Optional: true}
	jid := modules.Param{Name: "jid"}
	return &modules.Module{Name: "jobs",
		Doc: "Jobs that were published: who works on them, and what came back.",
		Funcs: []modules.Def{
			{Name: "active", Doc: `The jobs that minions work on now, as the minions say.

    salt-run jobs.active`, Params: []modules.Param{progress}, Run: f.activeJobs},
			{Name: "lookup_jid", Doc: `The returns of a job by minion.

jid
    The job's id.
ext_source
    Accepted for the sake of Salt's callers; jobs come from the master's own cache.
returned
    Show what came back.
missing
    Name the minions that have not returned.

    salt-run jobs.lookup_jid 20250102030405678901`, Params: []modules.Param{jid, source,
				{Name: "returned", Default: true, Type: modules.Bool},
				{Name: "missing", Default: false, Type: modules.Bool}, progress}, Run: f.lookupJID},
			{Name: "list_job", Doc: `A job with its target, its arguments and all that came back.

    salt-run jobs.list_job 20250102030405678901`, Params: []modules.Param{jid, source, progress}, Run: f.listJob},
			{Name: "list_jobs", Doc: `All jobs that the master remembers.

search_metadata
    Only jobs whose metadata has one of these values.
search_function
    Only jobs of these functions: globs, separated by commas.
search_target
    Only jobs for these targets: globs, separated by commas.
start_time, end_time
    Only jobs that began within these times, such as "2025, Jan 02 03:04:05" or 2025-01-02.

    salt-run jobs.list_jobs search_function='state.*'`, Params: []modules.Param{source, out, {Name: "search_metadata", Optional: true},
				{Name: "search_function", Optional: true}, {Name: "search_target", Optional: true},
				{Name: "start_time", Optional: true},
				{Name: "end_time", Optional: true}, progress}, Run: f.listJobs},
			{Name: "list_jobs_filter", Doc: `The newest jobs.

count
    How many.
filter_find_job
    Leave out the master's own questions whether a job runs.

    salt-run jobs.list_jobs_filter 50`, Params: []modules.Param{{Name: "count"}, {Name: "filter_find_job", Default: true, Type: modules.Bool},
				source, out, progress}, Run: f.listJobsFilter},
			{Name: "print_job", Doc: `A job and all that came back, under its id.

    salt-run jobs.print_job 20250102030405678901`, Params: []modules.Param{jid, source}, Run: f.printJob},
			{Name: "exit_success", Doc: `For each minion of a job, whether it returned something true.

    salt-run jobs.exit_success 20250102030405678901`, Params: []modules.Param{jid, source}, Run: f.exitSuccess},
			{Name: "last_run", Doc: `The newest job that suits.

metadata, function, target
    As search_metadata, search_function and search_target of jobs.list_jobs.

    salt-run jobs.last_run function=test.ping`, Params: []modules.Param{source, out, {Name: "metadata", Optional: true},
				{Name: "function", Optional: true}, {Name: "target", Optional: true}, progress},
				Run: f.lastRun},
			{Name: "master", Doc: `What runs on the master itself. Runners of this master are no processes of their own: the list is empty.

    salt-run jobs.master`, Run: func(context.Context, *modules.Call) (any, error) { return []any{}, nil }},
		}}
}

// startTime returns the time of a job id as Salt prints it (salt.utils.jid.jid_to_time), or "" if it is
// invalid.
func startTime(jid string) string {
	t, ok := protocol.JID(jid).Time()
	if !ok || !protocol.ValidJID(jid) {
		return ""
	}
	return t.Format("2006, Jan 02 15:04:05.000000")
}

// describeJob returns a job's description as Salt lists it (salt.utils.jid.format_jid_instance).
func describeJob(jid string, load map[string]any) map[string]any {
	if len(load) == 0 {
		return map[string]any{"Error": "Cannot contact returner or no job with this jid",
			"StartTime": startTime(jid)}
	}
	get := func(key string, other any) any {
		if v, ok := load[key]; ok {
			return v
		}
		return other
	}
	out := map[string]any{"Function": get("fun", "unknown-function"),
		"Arguments": get("arg", []any{}), "Target": get("tgt", "unknown-target"),
		"Target-type": get("tgt_type", "list"), "User": get("user", "root"),
		"StartTime": startTime(jid)}
	if meta, ok := metadata(load); ok {
		out["Metadata"] = meta
	}
	return out
}

// metadata returns the metadata of a job: its own, or among the keyword arguments of the client or of the
// function.
func metadata(load map[string]any) (any, bool) {
	if v, ok := load["metadata"]; ok {
		return v, true
	}
	if kw, ok := payload.Map(load["kwargs"]); ok {
		if v, ok := kw["metadata"]; ok {
			return v, true
		}
	}
	args, _ := load["arg"].([]any)
	for _, a := range args {
		if kw, ok := payload.Map(a); ok && kw["__kwarg__"] == true {
			if v, ok := kw["metadata"]; ok {
				return v, true
			}
		}
	}
	return nil, false
}

// jobResults returns the minions' returns for a job, by minion.
func (f funcs) jobResults(ctx context.Context, jid string) (map[string]any, error) {
	returns, err := f.Jobs.Returns(ctx, jid)
	if err != nil {
		return nil, err
	}
	out := make(map[string]any, len(returns))
	for _, r := range returns {
		one := map[string]any{}
		for _, key := range [...]string{"return", "retcode", "success", "out"} {
			if v, ok := r.Load[key]; ok {
				one[key] = v
			}
		}
		out[r.ID] = one
	}
	return out, nil
}

// jobLoad returns the load and the minions of a stored job. The load is empty if the job is missing.
func (f funcs) jobLoad(ctx context.Context, jid string) (load map[string]any, minions []string,
	err error) {
	if f.Jobs == nil {
		return nil, nil, host.Needs("job cache")
	}
	j, err := f.Jobs.Job(ctx, jid)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return loadOf(j), slices.Concat(j.Minions, j.Missing), nil
}

// loadOf returns a job's load. Stores of embedded masters may have only the fields of store.Job.
func loadOf(j store.Job) map[string]any {
	load := maps.Clone(j.Load)
	if load == nil {
		load = map[string]any{}
	}
	for key, v := range map[string]any{"fun": j.Fun, "arg": j.Arg, "tgt": j.Tgt,
		"tgt_type": j.TgtType, "user": j.User} {
		if _, ok := load[key]; !ok && v != nil && v != "" {
			load[key] = v
		}
	}
	return load
}

// describeWhole returns the description of a job with its minions and results.
func (f funcs) describeWhole(ctx context.Context, jid string) (map[string]any, error) {
	load, minions, err := f.jobLoad(ctx, jid)
	if err != nil {
		return nil, err
	}
	out := describeJob(jid, load)
	if len(minions) > 0 { // as in stock, runs have none
		slices.Sort(minions)
		out["Minions"] = nested.Anys(minions)
	}
	if out["Result"], err = f.jobResults(ctx, jid); err != nil {
		return nil, err
	}
	return out, nil
}

// listJob is jobs.list_job, which returns one job with its minions and results.
func (f funcs) listJob(ctx context.Context, c *modules.Call) (any, error) {
	jid := c.Str("jid")
	out, err := f.describeWhole(ctx, jid)
	if err != nil {
		return nil, err
	}
	out["jid"] = jid
	return out, nil
}

// printJob is jobs.print_job, which returns the same as jobs.list_job, under the job's id.
func (f funcs) printJob(ctx context.Context, c *modules.Call) (any, error) {
	out, err := f.describeWhole(ctx, c.Str("jid"))
	if err != nil {
		return nil, err
	}
	return map[string]any{c.Str("jid"): out}, nil
}

// lookupJID is jobs.lookup_jid, which returns the minions' returns for a job. The outputter is that of the
// first minion by name, because a job has one function and therefore one outputter.
func (f funcs) lookupJID(ctx context.Context, c *modules.Call) (any, error) {
	job, err := f.describeWhole(ctx, c.Str("jid"))
	if err != nil {
		return nil, err
	}
	results := job["Result"].(map[string]any)
	ids := slices.Sorted(maps.Keys(results))
	out := map[string]any{}
	outputter := ""
	for i, id := range ids {
		one := results[id].(map[string]any)
		if c.Bool("returned") {
			out[id] = one["return"]
		}
		if s, ok := one["out"].(string); ok && i == 0 {
			outputter = s
		}
	}
	if minions, ok := job["Minions"].([]any); ok && c.Bool("missing") {
		for _, id := range minions {
			if _, ok := results[id.(string)]; !ok {
				out[id.(string)] = "Minion did not return"
			}
		}
	}
	if outputter != "" {
		return map[string]any{"outputter": outputter, "data": out}, nil
	}
	return out, nil
}

// exitSuccess is jobs.exit_success, which reports for each minion of a job whether its return is true in
// Python. A minion that has not returned counts as failed.
func (f funcs) exitSuccess(ctx context.Context, c *modules.Call) (any, error) {
	job, err := f.describeWhole(ctx, c.Str("jid"))
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	minions, _ := job["Minions"].([]any)
	for _, id := range minions {
		out[id.(string)] = false
	}
	for id, v := range job["Result"].(map[string]any) {
		if pytext.Truth(v.(map[string]any)["return"]) {
			out[id] = true
		} else if _, ok := out[id]; ok {
			out[id] = false
		}
	}
	return out, nil
}

// search selects jobs. Unset filters match all.
type search struct {
	metadata         any
	function, target []string // patterns; nil means all
	from, to         time.Time
}

// timeLayouts returns the accepted forms of a time.
func timeLayouts() []string {
	return []string{"2006, Jan 02 15:04:05.000000", "2006, Jan 02 15:04:05", "2006, Jan 02",
		"2006-01-02T15:04:05.999999999Z07:00",
		"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02",
		"2006 Jan 2", "Jan 2 2006", "15:04:05", "15:04"}
}

// parseTime parses a time in the host's zone; a time of day alone means today.
func parseTime(now time.Time, v any) (time.Time, error) {
	if v == nil {
		return time.Time{}, nil
	}
	s := strings.TrimSpace(pytext.Str(v))
	for _, layout := range timeLayouts() {
		t, err := time.ParseInLocation(layout, s, time.Local)
		if err != nil {
			continue
		}
		if t.Year() == 0 {
			t = time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0,
				time.Local)
		}
		return t, nil
	}
	return time.Time{}, modules.Errorf("Unknown string format: %s", s)
}

// matches reports whether a job, as describeJob returns it, passes all filters.
func (s search) matches(d map[string]any, created time.Time) bool {
	if want, ok := s.metadata.(map[string]any); ok && len(want) > 0 {
		have, _ := payload.Map(d["Metadata"])
		if !slices.ContainsFunc(slices.Collect(maps.Keys(want)), func(k string) bool {
			v, ok := have[k]
			return ok && pytext.Repr(payload.Plain(v)) == pytext.Repr(payload.Plain(want[k]))
		}) {
			return false
		}
	} else if s.metadata != nil && pytext.Truth(s.metadata) {
		if _, ok := d["Metadata"]; !ok {
			return false
		}
		return false // not a map: Salt logs it and finds nothing
	}
	glob := func(value string, patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { return fnmatch.Match(p, value) })
	}
	if s.target != nil {
		targets, ok := d["Target"].([]any)
		if !ok {
			targets = []any{d["Target"]}
		}
		if !slices.ContainsFunc(targets,
			func(t any) bool { return glob(pytext.Str(t), s.target) }) {
			return false
		}
	}
	if s.function != nil && !glob(pytext.Str(d["Function"]), s.function) {
		return false
	}
	return (s.from.IsZero() || !created.Before(s.from)) && (s.to.IsZero() || !created.After(s.to))
}

// find returns the descriptions of the jobs that a search selects, by job id.
func (f funcs) find(ctx context.Context, s search) (map[string]any, error) {
	if f.Jobs == nil {
		return nil, host.Needs("job cache")
	}
	jobs, err := f.Jobs.Jobs(ctx, store.Filter{Limit: everything})
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, j := range jobs {
		d := describeJob(j.JID, loadOf(j))
		created, ok := protocol.JID(j.JID).Time()
		if !ok {
			created = j.Created
		}
		if s.matches(d, created) {
			out[j.JID] = d
		}
	}
	return out, nil
}

// listJobs is jobs.list_jobs, which returns the jobs of the job cache that match all filters.
func (f funcs) listJobs(ctx context.Context, c *modules.Call) (any, error) {
	s := search{metadata: c.Value("search_metadata"), function: host.Patterns(c, "search_function"),
		target: host.Patterns(c, "search_target")}
	var err error
	if s.from, err = parseTime(c.Now(), c.Value("start_time")); err != nil {
		return nil, err
	}
	if s.to, err = parseTime(c.Now(), c.Value("end_time")); err != nil {
		return nil, err
	}
	out, err := f.find(ctx, s)
	if err != nil {
		return nil, err
	}
	return host.Shown(c, out), nil
}

// listJobsFilter is jobs.list_jobs_filter, which returns the newest jobs, the oldest of them first.
func (f funcs) listJobsFilter(ctx context.Context, c *modules.Call) (any, error) {
	n, err := c.Int("count")
	if err != nil {
		return nil, err
	}
	all, err := f.find(ctx, search{})
	if err != nil {
		return nil, err
	}
	if c.Bool("filter_find_job") {
		maps.DeleteFunc(all,
			func(_ string, d any) bool { return d.(map[string]any)["Function"] == "saltutil.find_job" })
	}
	jids := slices.Sorted(maps.Keys(all))
	out := []any{}
	for _, jid := range jids[max(0, len(jids)-int(max(0, min(n, everything)))):] {
		d := all[jid].(map[string]any)
		d["JID"] = jid
		out = append(out, d)
	}
	return host.Shown(c, out), nil
}

// lastRun is jobs.last_run, which returns the newest job that matches, found by its id: job ids are times.
func (f funcs) lastRun(ctx context.Context, c *modules.Call) (any, error) {
	if m := c.Value("metadata"); pytext.Truth(m) {
		if _, ok := m.(map[string]any); !ok {
			f.Log.Info("The metadata parameter must be specified as a dictionary")
			return false, nil
		}
	}
	all, err := f.find(ctx,
		search{metadata: c.Value("metadata"), function: host.Patterns(c, "function"),
			target: host.Patterns(c, "target")})
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return false, nil
	}
	jid := slices.Max(slices.Collect(maps.Keys(all)))
	out, err := f.describeWhole(ctx, jid)
	if err != nil {
		return nil, err
	}
	return map[string]any{jid: out}, nil
}

// activeJobs is jobs.active, which asks all minions for their running jobs. A job that only absent minions run
// is missing in the answer.
func (f funcs) activeJobs(ctx context.Context, c *modules.Call) (any, error) {
	answers, err := f.Command(ctx, host.Job{Tgt: "*", Fun: "saltutil.running"})
	if err != nil {
		return nil, err
	}
	ids := slices.Sorted(maps.Keys(answers))
	if c.Bool("display_progress") {
		c.Progress(map[string]any{"message": "Attempting to contact minions: " +
			pytext.Repr(nested.Anys(ids))})
	}
	out := map[string]any{}
	for _, id := range ids {
		if c.Bool("display_progress") {
			c.Progress(map[string]any{"message": "Received reply from minion " + id})
		}
		running, _ := answers[id].Value.([]any)
		for _, v := range running {
			job, ok := payload.Map(v)
			if !ok {
				continue
			}
			jid := pytext.Str(job["jid"])
			d, _ := out[jid].(map[string]any)
			if d == nil {
				d = describeJob(jid, job)
				d["Running"], d["Returned"] = []any{}, []any{}
				out[jid] = d
			}
			d["Running"] = append(d["Running"].([]any), map[string]any{id: job["pid"]})
		}
	}
	if f.Jobs == nil {
		return out, nil
	}
	for jid, d := range out {
		results, err := f.jobResults(ctx, jid)
		if err != nil {
			return nil, err
		}
		d.(map[string]any)["Returned"] = nested.Anys(slices.Sorted(maps.Keys(results)))
	}
	return out, nil
}
