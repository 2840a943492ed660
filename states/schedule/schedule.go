// Package schedule is Salt's state module "schedule": jobs of the minion's schedule (salt/states/schedule.py).
package schedule

import (
	"context"
	"maps"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "schedule".
var Module = &states.Module{Name: "schedule", Doc: "Jobs of the minion's schedule.", Funcs: []states.Def{
	{Name: "absent", Doc: absentDoc, Params: params[:], Kwargs: "kwargs", Run: func(ctx context.Context, c *states.Call) (*states.Result, error) {
		return switched(ctx, c, "schedule.delete", "Removed job ")
	}},
	{Name: "disabled", Doc: disabledDoc, Params: params[:], Kwargs: "kwargs", Run: func(ctx context.Context, c *states.Call) (*states.Result, error) {
		return switched(ctx, c, "schedule.disable_job", "Disabled job ")
	}},
	{Name: "enabled", Doc: enabledDoc, Params: params[:], Kwargs: "kwargs", Run: func(ctx context.Context, c *states.Call) (*states.Result, error) {
		return switched(ctx, c, "schedule.enable_job", "Enabled job ")
	}},
	{Name: "present", Doc: presentDoc, Params: params[:], Kwargs: "kwargs", Run: present},
}}

var params = [...]modules.Param{{Name: "name"}}

const (
	options = `

name
    the job
persist
    keep the change for minions that start later
offline
    change the file of the schedule, where no minion runs`
	presentDoc  = `Have a job in the schedule. Further arguments are those of schedule.add: function, job_args, seconds, cron, when and so on.` + options
	absentDoc   = `Have no such job in the schedule.` + options
	enabledDoc  = `Have a job of the schedule enabled.` + options
	disabledDoc = `Have a job of the schedule disabled.` + options
)

// current returns the jobs of the schedule.
func current(ctx context.Context, c *states.Call, offline bool) (map[string]any, error) {
	kw := map[string]any{"show_all": true, "return_yaml": false}
	if offline {
		kw["offline"] = c.Keywords["offline"]
	}
	v, err := c.ExecKw(ctx, "schedule.list", nil, kw)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		return map[string]any{}, nil // "Event module not available. …"
	}
	return m, nil
}

// call calls a function about the job; in test mode it says only what it would do.
func call(ctx context.Context, c *states.Call, fun string) (map[string]any, error) {
	kw := make(map[string]any, len(c.Keywords)+1)
	for k := range c.Keywords {
		kw[k] = c.KeywordInOrder(k) // as the job is written to the file of the schedule
	}
	if c.Test() {
		kw["test"] = true
	}
	v, err := c.ExecKw(ctx, fun, []any{c.Value("name")}, kw)
	m, _ := v.(map[string]any)
	return m, err
}

// refused returns the result for a function that did nothing, with its comment.
func refused(ret *states.Result, res map[string]any) (*states.Result, error) {
	ret.Extra = map[string]any{"comment": res["comment"]}
	return ret.As(states.OutcomeOf(pytext.Truth(res["result"])), "")
}

// changes returns the changes in a function's result.
func changes(res map[string]any) (map[string]any, error) {
	v, ok := res["changes"]
	if !ok {
		return nil, &modules.PythonError{Type: "KeyError", Msg: "'changes'"}
	}
	m, _ := v.(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	return m, nil
}

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Result = states.True
	jobs, err := current(ctx, c, true)
	if err != nil {
		return nil, err
	}
	have, there := jobs[c.Name()]
	fun, did := "schedule.add", "Adding new job "+c.Name()+" to schedule"
	if there {
		fun, did = "schedule.modify", "Modifying job "+c.Name()+" in schedule"
		v, err := c.ExecKw(ctx, "schedule.build_schedule_item", []any{c.Value("name")}, c.Keywords)
		if err != nil {
			return nil, err
		}
		if item, ok := v.(map[string]any); ok {
			if res, ok := item["result"]; ok && !pytext.Truth(res) {
				return refused(ret, item)
			}
			item = maps.Clone(item)
			if _, ok := item["enabled"]; !ok {
				item["enabled"] = true
			}
			v = item
		}
		if pyobj.Equal(pyobj.From(v), pyobj.From(have)) {
			return ret.As(states.True, "Job "+c.Name()+" in correct state")
		}
	}
	res, err := call(ctx, c, fun)
	switch {
	case err != nil:
		return nil, err
	case !c.Test() && !pytext.Truth(res["result"]):
		return refused(ret, res)
	case c.Test():
		did = pytext.Str(res["comment"])
	}
	if c.Test() && !there {
		ret.Changes[c.Name()] = "added"
	} else if ret.Changes, err = changes(res); err != nil {
		return nil, err
	}
	return ret.As(states.True, did)
}

// switched removes, enables or disables a job.
func switched(ctx context.Context, c *states.Call, fun, did string) (*states.Result, error) {
	ret := c.Result()
	ret.Result = states.True
	jobs, err := current(ctx, c, fun != "schedule.enable_job")
	if err != nil {
		return nil, err
	}
	if _, there := jobs[c.Name()]; !there {
		return ret.As(states.True, "Job "+c.Name()+" not present in schedule")
	}
	res, err := call(ctx, c, fun)
	switch {
	case err != nil:
		return nil, err
	case c.Test():
		return ret.As(states.True, pytext.Str(res["comment"]))
	case !pytext.Truth(res["result"]):
		return refused(ret, res)
	case fun == "schedule.delete":
		if ret.Changes, err = changes(res); err != nil {
			return nil, err
		}
	}
	return ret.As(states.True, did+c.Name()+" from schedule")
}
