// Package schedule is Salt's execution module "schedule": the jobs that a minion runs by itself. Salt's source:
// salt/modules/schedule.py.
//
// The jobs are the running minion's; functions ask it as an event with the tag manage_schedule does. With offline=True they
// change the file that it reads when it starts.
package schedule

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/python/pydate"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/strftime"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Compatibility.
//
// schedule.list differs: with show_all there is no __mine_interval, as the mine is not a job of the schedule.

const manageTag = "manage_schedule"

// ask hands an event to the minion and gives its answer. ok reports whether there is a minion.
func ask(ctx context.Context, c *modules.Call, data map[string]any, answer string) (reply map[string]any, ok bool) {
	m, is := c.Agent.(modules.Manager)
	if !is {
		return nil, false
	}
	if answer != "" {
		answer = "/salt/minion/minion_schedule_" + answer
	}
	return m.Manage(ctx, manageTag, data, answer)
}

// configDir returns the directory of the minion's configuration.
func configDir(c *modules.Call) string {
	if dir, ok := c.Opt("conf_dir").(string); ok {
		return dir
	}
	if file, ok := c.Opt("conf_file").(string); ok && file != "" {
		return filepath.Dir(file)
	}
	return "/etc/salt"
}

func included(c *modules.Call, name string) string {
	include, ok := c.Opt("default_include").(string)
	if !ok {
		include = "minion.d/*.conf"
	}
	return filepath.Join(configDir(c), filepath.Dir(include), name)
}

// maxFile bounds a file with jobs.
const maxFile = 16 << 20

func readJobs(c *modules.Call, path string) (map[string]any, error) {
	info, err := os.Stat(c.Path(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, modules.OSError(err)
	}
	if info.Size() > maxFile {
		return nil, modules.Errorf("%s is too large", path)
	}
	text, err := os.ReadFile(c.Path(path))
	if err != nil {
		return nil, modules.OSError(err)
	}
	v, err := yaml.Parse(text, path)
	if err != nil {
		return nil, modules.Errorf("%s", err)
	}
	m, _ := v.(map[string]any)
	return m, nil
}

// saved returns the jobs in the minion's own file, _schedule.conf.
func saved(c *modules.Call) (map[string]any, error) {
	m, err := readJobs(c, included(c, "_schedule.conf"))
	jobs, _ := m["schedule"].(map[string]any)
	if jobs == nil {
		jobs = map[string]any{}
	}
	return jobs, err
}

func store(c *modules.Call, jobs map[string]any) {
	path := c.Path(included(c, "_schedule.conf"))
	text, err := yaml.MarshalStyle(map[string]any{"schedule": jobs}, yaml.Style{Flow: yaml.FlowLeafs})
	if err == nil {
		if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = atomicfile.WriteFile(path, []byte(text), 0o644)
		}
	}
	if err != nil {
		c.Logger().Error("Failed to persist the updated schedule", "err", err)
	}
}

// isField reports whether a field of a job appears in listings.
func isField(k string) bool {
	switch k {
	case "name", "maxrunning", "function", "splay", "range", "when", "once", "once_fmt", "returner", "jid_include", "args", "kwargs", "seconds",
		"minutes", "hours", "days", "enabled", "return_job", "metadata", "cron", "until", "after", "return_config", "return_kwargs",
		"run_on_start", "skip_during_range", "run_after_skip_range":
		return true
	}
	return false
}

func isSetting(name string) bool {
	return name == "enabled" || name == "skip_function" || name == "skip_during_range"
}

// jobs lists the jobs as they were configured.
func jobs(ctx context.Context, c *modules.Call, showAll, showDisabled, offline bool, where any) (map[string]any, error) {
	all := map[string]any{}
	if offline {
		var err error
		if all, err = saved(c); err != nil {
			return nil, err
		}
	} else if reply, ok := ask(ctx, c, map[string]any{"func": "list", "where": where}, "list_complete"); ok && pytext.Truth(reply["complete"]) {
		all, _ = reply["schedule"].(map[string]any)
	}
	for name, v := range all {
		job, ok := v.(map[string]any)
		if !ok || isSetting(name) {
			continue
		}
		if strings.HasPrefix(name, "__") && !showAll {
			delete(all, name)
			continue
		}
		if _, ok := job["enabled"]; !ok {
			job["enabled"] = true
		}
		for k, x := range job {
			switch {
			case !isField(k) || x == nil:
				delete(job, k)
			case x == "true":
				job[k] = true
			case x == "false":
				job[k] = false
			}
		}
		if !showDisabled && !pytext.Truth(job["enabled"]) {
			delete(all, name)
		}
	}
	return all, nil
}

// everything returns all jobs, including hidden and disabled ones.
func everything(ctx context.Context, c *modules.Call, where any) (map[string]any, error) {
	return jobs(ctx, c, true, true, false, where)
}

func list(ctx context.Context, c *modules.Call) (any, error) {
	offline := c.Bool("offline")
	stored, err := saved(c)
	if err != nil {
		return nil, err
	}
	all, err := jobs(ctx, c, c.Bool("show_all"), c.Bool("show_disabled"), offline, c.Value("where"))
	if err != nil || !c.Bool("return_yaml") {
		return all, err
	}
	for name, v := range all {
		if job, ok := v.(map[string]any); ok {
			_, job["saved"] = stored[name]
		}
	}
	return yaml.Marshal(map[string]any{"schedule": all})
}

func isEnabled(ctx context.Context, c *modules.Call) (any, error) {
	all, err := jobs(ctx, c, false, true, false, nil)
	if err != nil {
		return nil, err
	}
	if !c.Bool("name") {
		if on, ok := all["enabled"]; ok {
			return on, nil
		}
		return true, nil
	}
	if job, ok := all[c.Str("name")]; ok {
		return job, nil
	}
	return map[string]any{}, nil
}

// keyword returns the truth of a keyword argument.
func keyword(c *modules.Call, name string) bool { return pytext.Truth(c.Keywords[name]) }

// persist returns the keyword argument persist, True by default.
func persist(c *modules.Call) any {
	if v, ok := c.Keywords["persist"]; ok {
		return v
	}
	return true
}

func purge(ctx context.Context, c *modules.Call) (any, error) {
	offline := keyword(c, "offline")
	all, err := jobs(ctx, c, true, true, offline, nil)
	if err != nil {
		return nil, err
	}
	comment, changes := []any{}, map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == "enabled" || strings.HasPrefix(name, "__") {
			continue
		}
		if keyword(c, "test") {
			comment = append(comment, "Job: "+name+" would be deleted from schedule.")
			continue
		}
		if offline {
			delete(all, name)
		} else {
			reply, ok := ask(ctx, c, map[string]any{"name": name, "func": "delete", "persist": persist(c)}, "delete_complete")
			if !ok || !pytext.Truth(reply["complete"]) {
				continue
			}
			if holds(reply, name) {
				comment = append(comment, "Failed to delete job "+name+" from schedule.")
				continue
			}
		}
		comment = append(comment, "Deleted job: "+name+" from schedule.")
		changes[name] = "removed"
	}
	if offline {
		store(c, all)
	}
	return map[string]any{"comment": comment, "changes": changes, "result": true}, nil
}

// holds reports whether an answer's schedule has the job.
func holds(reply map[string]any, name string) bool {
	m, _ := reply["schedule"].(map[string]any)
	_, ok := m[name]
	return ok
}

// jobIn returns a job from the schedule in an answer.
func jobIn(reply map[string]any, name string) (map[string]any, bool) {
	m, _ := reply["schedule"].(map[string]any)
	job, ok := m[name].(map[string]any)
	return job, ok
}

func remove(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	return removeJob(ctx, c, name, keyword(c, "test"), keyword(c, "offline"), persist(c))
}

func removeJob(ctx context.Context, c *modules.Call, name string, test, offline bool, persist any) (any, error) {
	ret := map[string]any{"comment": "Failed to delete job " + name + " from schedule.", "result": false, "changes": map[string]any{}}
	done := func() (any, error) {
		ret["result"], ret["comment"], ret["changes"] = true, "Deleted Job "+name+" from schedule.", map[string]any{name: "removed"}
		return ret, nil
	}
	if name == "" {
		ret["comment"] = "Job name is required."
	}
	if test {
		ret["comment"], ret["result"] = "Job: "+name+" would be deleted from schedule.", true
		return ret, nil
	}
	if offline {
		all, err := jobs(ctx, c, true, true, true, "opts")
		if err != nil {
			return nil, err
		}
		if _, ok := all[name]; !ok {
			return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(name)}
		}
		delete(all, name)
		store(c, all)
		return done()
	}
	where, err := whereIs(ctx, c, name)
	if err != nil {
		return nil, err
	}
	event := map[string]any{"name": name, "func": "delete", "persist": persist}
	switch where {
	case "":
		ret["comment"] = "Job " + name + " does not exist."
		return ret, nil
	case "pillar":
		event["where"], event["persist"] = "pillar", false
	}
	reply, ok := ask(ctx, c, event, "delete_complete")
	if ok && pytext.Truth(reply["complete"]) {
		if !holds(reply, name) {
			return done()
		}
		ret["comment"] = "Failed to delete job " + name + " from schedule."
	}
	return ret, nil
}

// whereIs returns the source of a job: "opts", "pillar", or "" if it does not exist.
func whereIs(ctx context.Context, c *modules.Call, name string) (string, error) {
	for _, where := range [...]string{"opts", "pillar"} {
		all, err := everything(ctx, c, where)
		if err != nil {
			return "", err
		}
		if _, ok := all[name]; ok {
			return where, nil
		}
	}
	return "", nil
}

// conflict reports whether times contradict each other.
func conflict(kw map[string]any) bool {
	_, when := kw["when"]
	_, cron := kw["cron"]
	if !when && !cron {
		return false
	}
	for _, k := range [...]string{"seconds", "minutes", "hours", "days"} {
		if _, ok := kw[k]; ok {
			return true
		}
	}
	return false
}

func bothWhenAndCron(kw map[string]any) bool {
	_, when := kw["when"]
	_, cron := kw["cron"]
	return when && cron
}

func failed(comment string) map[string]any {
	return map[string]any{"comment": comment, "result": false}
}

func buildItem(_ context.Context, c *modules.Call) (any, error) {
	job, err := build(c, c.Str("name"), c.Keywords)
	if err != nil || refused(job) {
		return job, err
	}
	return inOrder(c, job), nil
}

// jobKeys are the keys of a job in the order in which Salt makes one.
var jobKeys = [...]string{"function", "seconds", "minutes", "hours", "days", "return_job", "metadata", "args", "kwargs", "maxrunning", "name",
	"enabled", "jid_include", "splay", "range", "when", "once", "once_fmt", "cron", "returner", "after", "return_config", "return_kwargs",
	"until", "run_on_start", "skip_during_range"}

// inOrder returns a job that was made of the call's arguments in stock's order, dictionaries in it as the caller gave them.
func inOrder(c *modules.Call, job map[string]any) *pyobj.Dict {
	d := &pyobj.Dict{}
	for _, k := range jobKeys {
		v, ok := job[k]
		if !ok {
			continue
		}
		given := k
		if k == "args" || k == "kwargs" {
			given = "job_" + k
		}
		if m, dict := v.(map[string]any); k == "splay" && dict {
			v = pyobj.NewDict("start", m["start"], "end", m["end"])
		} else if x := c.KeywordInOrder(given); x != nil {
			v = x
		}
		_ = d.Set(k, v)
	}
	return d
}

// written is inOrder for the file of the schedule. As in stock, a new job keeps its order there until the file is
// written again.
func written(c *modules.Call, job map[string]any) *pyobj.Dict {
	d := inOrder(c, job)
	d.Ordered = true
	if splay, ok := d.Value("splay").(*pyobj.Dict); ok {
		splay.Ordered = true
	}
	return d
}

// build creates a job from keyword arguments. If that fails it returns the function's result, a map with a false
// "result".
func build(c *modules.Call, name string, kw map[string]any) (map[string]any, error) {
	if name == "" {
		return failed("Job name is required."), nil
	}
	function, ok := kw["function"]
	if !ok {
		return nil, &modules.PythonError{Type: "KeyError", Msg: "'function'"}
	}
	if conflict(kw) {
		return failed(`Unable to use "seconds", "minutes", "hours", or "days" with "when" or "cron" options.`), nil
	}
	if bothWhenAndCron(kw) {
		return failed(`Unable to use "when" and "cron" options together.  Ignoring.`), nil
	}
	job := map[string]any{"function": function, "maxrunning": int64(1), "name": name, "enabled": true, "jid_include": true}
	for _, k := range [...]string{"seconds", "minutes", "hours", "days", "return_job", "metadata", "maxrunning", "enabled", "jid_include"} {
		if v, ok := kw[k]; ok {
			job[k] = v
		}
	}
	if v, ok := kw["job_args"]; ok {
		if _, list := v.([]any); !list {
			return failed("job_args is not a list. please correct and try again."), nil
		}
		job["args"] = v
	}
	if v, ok := kw["job_kwargs"]; ok {
		if _, dict := v.(map[string]any); !dict {
			return failed("job_kwargs is not a dict. please correct and try again."), nil
		}
		job["kwargs"] = v
	}
	if v, ok := kw["splay"]; ok {
		if m, dict := v.(map[string]any); dict {
			for _, k := range [...]string{"start", "end"} {
				if _, ok := m[k]; !ok {
					return nil, &modules.PythonError{Type: "KeyError", Msg: "'" + k + "'"}
				}
			}
			v = map[string]any{"start": m["start"], "end": m["end"]}
		}
		job["splay"] = v
	}
	if bad, err := badWhen(c, kw); bad != "" || err != nil {
		return failed(bad), err
	}
	for _, k := range [...]string{"range", "when", "once", "once_fmt", "cron", "returner", "after", "return_config", "return_kwargs", "until",
		"run_on_start", "skip_during_range"} {
		if v, ok := kw[k]; ok {
			job[k] = v
		}
	}
	return job, nil
}

// badWhen checks the times of "when".
func badWhen(c *modules.Call, kw map[string]any) (string, error) {
	v, ok := kw["when"]
	if !ok {
		return "", nil
	}
	times, ok := v.([]any)
	if !ok {
		times = []any{v}
	}
	for _, x := range times {
		s, ok := x.(string)
		if !ok {
			return "", &modules.TypeError{Msg: "Parser must be a string or character stream, not " + modules.TypeName(x)}
		}
		if _, err := pydate.Parse(s, pydate.Now(c.Now())); err != nil {
			return `Schedule item ` + s + ` for "when" in invalid.`, nil
		}
	}
	return "", nil
}

// refused reports whether build returned a result in place of a job.
func refused(job map[string]any) bool {
	v, ok := job["result"]
	return ok && !pytext.Truth(v)
}

func add(ctx context.Context, c *modules.Call) (any, error) {
	name, kw := c.Str("name"), c.Keywords
	offline := keyword(c, "offline")
	ret := map[string]any{"comment": "Failed to add job " + name + " to schedule.", "result": false, "changes": map[string]any{}}
	all, err := jobs(ctx, c, true, true, offline, nil)
	if err != nil {
		return nil, err
	}
	if _, ok := all[name]; ok {
		ret["comment"] = "Job " + name + " already exists in schedule."
		return ret, nil
	}
	if conflict(kw) {
		ret["comment"] = `Error: Unable to use "seconds", "minutes", "hours", or "days" with "when" or "cron" options.`
		return ret, nil
	}
	if bothWhenAndCron(kw) {
		ret["comment"] = `Unable to use "when" and "cron" options together.  Ignoring.`
		return ret, nil
	}
	job, err := build(c, name, kw)
	if err != nil || refused(job) {
		return job, err
	}
	added := func() (any, error) {
		ret["result"], ret["comment"], ret["changes"] = true, "Added job: "+name+" to schedule.", map[string]any{name: "added"}
		return ret, nil
	}
	switch {
	case keyword(c, "test"):
		ret["comment"], ret["result"] = "Job: "+name+" would be added to schedule.", true
		return ret, nil
	case offline:
		all[name] = written(c, job)
		store(c, all)
		return added()
	}
	event := map[string]any{"name": name, "schedule": map[string]any{name: job}, "func": "add", "persist": persist(c)}
	if reply, ok := ask(ctx, c, event, "add_complete"); ok && pytext.Truth(reply["complete"]) && holds(reply, name) {
		return added()
	}
	return ret, nil
}

func modify(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	kw := maps.Clone(c.Keywords)
	offline := keyword(c, "offline")
	ret := map[string]any{"comment": "", "changes": map[string]any{}, "result": true}
	fail := func(comment string) (any, error) {
		ret["result"], ret["comment"] = false, comment
		return ret, nil
	}
	if conflict(kw) {
		return fail(`Error: Unable to use "seconds", "minutes", "hours", or "days" with "when" option.`)
	}
	if bothWhenAndCron(kw) {
		return fail(`Unable to use "when" and "cron" options together.  Ignoring.`)
	}
	all, err := jobs(ctx, c, true, true, offline, nil)
	if err != nil {
		return nil, err
	}
	current, ok := all[name].(map[string]any)
	if !ok {
		return fail("Job " + name + " does not exist in schedule.")
	}
	if _, ok := kw["function"]; !ok {
		kw["function"] = current["function"]
	}
	job, err := build(c, name, kw)
	if err != nil || refused(job) {
		return job, err
	}
	if reflect.DeepEqual(job, current) {
		ret["comment"] = "Job " + name + " in correct state"
		return ret, nil
	}
	ret["changes"] = map[string]any{name: map[string]any{"old": maps.Clone(current), "new": inOrder(c, job)}}
	if keyword(c, "test") {
		ret["comment"] = "Job: " + name + " would be modified in schedule."
		return ret, nil
	}
	if offline {
		for k, v := range written(c, job).All() {
			current[pyobj.Str(k)] = v
		}
		store(c, all)
		ret["comment"] = "Modified job: " + name + " in schedule."
		return ret, nil
	}
	where, err := whereIs(ctx, c, name)
	if err != nil {
		return nil, err
	}
	event := map[string]any{"name": name, "schedule": job, "func": "modify", "persist": persist(c)}
	if where == "pillar" {
		event["where"], event["persist"] = "pillar", false
	}
	if _, ok := ask(ctx, c, event, ""); !ok {
		return fail("Failed to modify job " + name + " in schedule.")
	}
	ret["comment"] = "Modified job: " + name + " in schedule."
	return ret, nil
}

func runJob(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	all, err := everything(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	v, ok := all[name]
	if !ok {
		return failed("Job " + name + " does not exist."), nil
	}
	job, _ := v.(map[string]any)
	if on, ok := job["enabled"]; ok && !pytext.Truth(on) && !c.Bool("force") {
		return map[string]any{"comment": "Job " + name + " is disabled.", "result": true}, nil
	}
	if _, ok := ask(ctx, c, map[string]any{"name": name, "func": "run_job"}, ""); !ok {
		return failed("Failed to run job " + name + " on minion."), nil
	}
	return map[string]any{"comment": "Scheduling Job " + name + " on minion.", "result": true}, nil
}

// dateText gives a time in a job the form that was asked for.
func dateText(v any, format string) any {
	if t, ok := v.(time.Time); ok {
		return strftime.Naive(format, t)
	}
	return v
}
