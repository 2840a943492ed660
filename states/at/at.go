// Package at is Salt's state module "at": jobs that at(1) runs later (salt/states/at.py).
package at

import (
	"context"
	"maps"
	"slices"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "at".
var Module = &states.Module{Name: "at", Doc: "Jobs that at(1) runs later.", Available: available, Funcs: []states.Def{
	{Name: "absent", Doc: absentDoc, Params: []modules.Param{{Name: "name"}, {Name: "jobid", Optional: true}}, Kwargs: "kwargs", Run: absent},
	{Name: "mod_watch", Doc: modWatchDoc, Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: modWatch},
	{Name: "present", Doc: presentDoc, Params: params[:], Run: present},
	{Name: "watch", Doc: watchDoc, Params: params[:], Run: watch},
}}

var params = [...]modules.Param{{Name: "name"}, {Name: "timespec"}, {Name: "tag", Optional: true}, {Name: "user", Optional: true}, {Name: "job", Optional: true},
	{Name: "unique_tag", Default: false}}

const (
	job = `
name, job
    the state's name, and the command if that is not it
timespec
    when to run it
tag, unique_tag
    a mark of the job, and whether nothing is to be done when there is one with the same mark
user
    who runs it`
	presentDoc = `Have a job that runs once.
` + job
	watchDoc = `Add a job that runs once when a watched state changes.
` + job
	modWatchDoc = `Do what the watching state is for.

name
    the state's name
sfun
    the function that watches`
	absentDoc = `Remove jobs: the one with the given number, those that fit the further arguments, or all.

name
    the state's name
jobid
    the number of the job
tag, runas, hour, minute, day, month, year
    what the jobs are like`
)

func available(e *modules.Env) (bool, string) {
	return e.Which("at") != "", "at module could not be loaded"
}

func watch(_ context.Context, c *states.Call) (*states.Result, error) {
	return c.Result().As(states.True, "")
}

func modWatch(ctx context.Context, c *states.Call) (*states.Result, error) {
	if c.Keywords["sfun"] != "watch" {
		return c.Result(), nil
	}
	kw := maps.Clone(c.Keywords)
	delete(kw, "sfun")
	delete(kw, "__reqs__")
	for _, k := range slices.Sorted(maps.Keys(kw)) {
		if !slices.ContainsFunc(params[:], func(p modules.Param) bool { return p.Name == k }) {
			return nil, &modules.TypeError{Msg: "present() got an unexpected keyword argument '" + k + "'"}
		}
	}
	if _, ok := kw["timespec"]; !ok {
		return nil, &modules.TypeError{Msg: "present() missing 1 required positional argument: 'timespec'"}
	}
	return add(ctx, c, func(name string) any { return kw[name] })
}

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	return add(ctx, c, c.Value)
}

func add(ctx context.Context, c *states.Call, arg func(string) any) (*states.Result, error) {
	ret := c.Result()
	command := arg("job")
	if !pytext.Truth(command) {
		command = c.Value("name")
	}
	when, tag, user := arg("timespec"), arg("tag"), arg("user")
	what := "job " + pytext.Str(command) + " added and will run "
	if c.Test() {
		return ret.As(states.None, what+"on "+pytext.Str(when))
	}
	if pytext.Truth(arg("unique_tag")) {
		if !pytext.Truth(tag) {
			return ret.As(states.False, "no tag provided and unique_tag is set to True")
		}
		v, err := c.ExecKw(ctx, "at.jobcheck", nil, map[string]any{"tag": tag})
		if err != nil {
			return nil, err
		}
		if len(jobs(v)) > 0 {
			return ret.As(states.True, "atleast one job with tag "+pytext.Str(tag)+" exists.")
		}
	}
	kw := map[string]any{"tag": tag}
	if pytext.Truth(user) {
		info, err := c.Exec(ctx, "user.info", user)
		if err != nil {
			return nil, err
		}
		if !pytext.Truth(info) {
			return ret.As(states.False, "user "+pytext.Str(user)+" does not exists")
		}
		kw["runas"] = user
		what += "as " + pytext.Str(user) + " "
	}
	ret.Result, ret.Comment = states.True, what+"on "+pytext.Str(when)
	v, err := c.ExecKw(ctx, "at.at", []any{when, command}, kw)
	if err != nil {
		return nil, err
	}
	if list := jobs(v); len(list) > 0 {
		ret.Changes, _ = list[0].(map[string]any)
	}
	if m, _ := v.(map[string]any); m["error"] != nil {
		return ret.As(states.False, pytext.Str(m["error"]))
	}
	return ret, nil
}

// jobs returns the list of jobs in a result.
func jobs(v any) []any {
	m, _ := v.(map[string]any)
	list, _ := m["jobs"].([]any)
	return list
}

// remove removes jobs, and gives the numbers of those that are gone.
func remove(ctx context.Context, c *states.Call, ids ...any) ([]any, error) {
	v, err := c.Exec(ctx, "at.atrm", ids...)
	if err != nil {
		return nil, err
	}
	m, _ := v.(map[string]any)
	done, ok := m["jobs"].(map[string]any)
	if !ok {
		return nil, &modules.TypeError{Msg: "list indices must be integers or slices, not str"}
	}
	list, _ := done["removed"].([]any)
	return list, nil
}

func absent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	if _, ok := c.Keywords["limit"]; ok {
		return ret.As(states.False, "limit parameter not supported "+c.Name())
	}
	if c.Test() {
		return ret.As(states.None, "removed ? job(s)")
	}
	id := c.Value("jobid")
	if pytext.Truth(id) {
		if done, err := one(ctx, c, ret, id); done || err != nil {
			return ret, err
		}
	}
	ids := []any{"all"}
	if len(c.Keywords) > 0 {
		v, err := c.ExecKw(ctx, "at.jobcheck", nil, c.Keywords)
		if err != nil {
			return nil, err
		}
		ids = nil
		for _, x := range jobs(v) {
			j, _ := x.(map[string]any)
			ids = append(ids, pytext.Str(j["job"]))
		}
	}
	gone, err := remove(ctx, c, ids...)
	if err != nil {
		return nil, err
	}
	if len(gone) > 0 {
		ret.Changes["removed"] = gone
	}
	return ret.As(states.True, "removed "+pytext.Str(int64(len(gone)))+" job(s)")
}

// one removes the job of that number.
func one(ctx context.Context, c *states.Call, ret *states.Result, id any) (done bool, err error) {
	v, err := c.Exec(ctx, "at.atq", id)
	if err != nil {
		return false, err
	}
	list := jobs(v)
	what := "job with id " + pytext.Str(id)
	switch len(list) {
	case 0:
		_, err = ret.As(states.True, what+" not present")
		return true, err
	case 1:
	default:
		_, err = ret.As(states.False, "more than one job was return for "+what)
		return true, err
	}
	if j, _ := list[0].(map[string]any); !pytext.Truth(j["job"]) {
		return false, nil
	}
	gone, err := remove(ctx, c, id)
	if err != nil {
		return false, err
	}
	ret.Changes["removed"] = gone
	if slices.Contains(gone, id) {
		_, err = ret.As(states.True, what+" was removed")
	} else {
		_, err = ret.As(states.False, "failed to remove "+what)
	}
	return true, err
}
