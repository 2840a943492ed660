// Package cron is Salt's state module "cron": jobs and variables in the users' tables of cron (salt/states/cron.py).
package cron

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/cronjob"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "cron".
var Module = &states.Module{Name: "cron", Doc: "Jobs and variables in the users' tables of cron.", Available: available, Funcs: []states.Def{
	{Name: "absent", Doc: absentDoc, Params: []modules.Param{{Name: "name"}, user, {Name: "identifier", Default: false}, {Name: "special", Optional: true}},
		Kwargs: "kwargs", Run: absent},
	{Name: "env_absent", Doc: envAbsentDoc, Params: []modules.Param{{Name: "name"}, user}, Run: envAbsent},
	{Name: "env_present", Doc: envPresentDoc, Params: []modules.Param{{Name: "name"}, {Name: "value", Optional: true}, user}, Run: envPresent},
	{Name: "file", Doc: fileDoc, Params: []modules.Param{{Name: "name"}, {Name: "source_hash", Default: ""}, {Name: "source_hash_name", Optional: true}, user,
		{Name: "template", Optional: true}, {Name: "context", Optional: true}, {Name: "replace", Default: true}, {Name: "defaults", Optional: true},
		{Name: "backup", Default: ""}}, Kwargs: "kwargs", Run: file},
	{Name: "present", Doc: presentDoc, Params: []modules.Param{{Name: "name"}, user, {Name: "minute", Default: "*"}, {Name: "hour", Default: "*"},
		{Name: "daymonth", Default: "*"}, {Name: "month", Default: "*"}, {Name: "dayweek", Default: "*"}, {Name: "comment", Optional: true},
		{Name: "commented", Default: false}, {Name: "identifier", Default: false}, {Name: "special", Optional: true}}, Run: present},
}}

var user = modules.Param{Name: "user", Default: "root"}

const (
	presentDoc = `Have a job in a user's table.

name
    the command
user
    whose table
minute, hour, daymonth, month, dayweek
    when to run it; random picks a time once
special
    when to run it, by a name such as @daily, instead of a time
comment
    a comment above the job
commented
    whether the job is only there as a comment
identifier
    what tells the job from others, the command if it is not given`
	absentDoc = `Have no such job in a user's table.

name
    the command
user
    whose table
identifier
    what tells the job from others, the command if it is not given
special
    the name of its time, if it has one`
	fileDoc = `Have a file as a user's table.

name
    where the file comes from, salt:// or another URL
source_hash, source_hash_name
    its hash, and for which name it is looked up in a file of hashes
user
    whose table
template, context, defaults
    the renderer for the file and what it gets
replace
    whether to replace a table that is there
backup
    whether to keep the table that is replaced`
	envPresentDoc = `Have a variable in a user's table.

name
    the variable
value
    its value
user
    whose table`
	envAbsentDoc = `Have no such variable in a user's table.

name
    the variable
user
    whose table`
)

func available(e *modules.Env) (bool, string) {
	// The execution module is there wherever crontab is.
	return e.Which("crontab") != "", "cron module could not be loaded"
}

// entry is a job as it is wanted.
type entry struct {
	cmd, identifier, special any
	when                     [5]any
	comment, commented       any
}

var columns = [...]string{"minute", "hour", "daymonth", "month", "dayweek"}

// status compares a job with the table: "absent", "present", or "update" if it differs.
func (e *entry) status(ctx context.Context, c *states.Call) (string, error) {
	v, err := c.Exec(ctx, "cron.list_tab", c.Value("user"))
	if err != nil {
		return "", err
	}
	table, _ := v.(map[string]any)
	key := "crons"
	if e.special != nil {
		key = "special"
	}
	if e.identifier != nil {
		e.identifier = pytext.Str(e.identifier)
	}
	if e.commented != nil {
		e.commented = e.commented == true
	}
	jobs, _ := table[key].([]any)
	for _, x := range jobs {
		job, _ := x.(map[string]any)
		if !cronjob.Matches(job, e.cmd, e.identifier) {
			continue
		}
		stale := cronjob.Changes(job["identifier"], e.identifier) || cronjob.Changes(job["cmd"], e.cmd) || cronjob.Changes(job["comment"], e.comment) ||
			cronjob.Changes(job["commented"], e.commented)
		if e.special != nil {
			stale = stale || cronjob.Changes(job["spec"], e.special)
		} else {
			for i, k := range columns {
				if e.when[i] != nil {
					stale = stale || cronjob.Changes(job[k], strings.ToLower(pytext.Str(e.when[i])))
				}
			}
		}
		if stale {
			return "update", nil
		}
		return "present", nil
	}
	return "absent", nil
}

// wanted returns the job that the state describes.
func wanted(c *states.Call) (*entry, *states.Result) {
	ret := c.Result()
	ret.Name = pytext.Strip(c.Name())
	e := &entry{cmd: ret.Name, identifier: c.Value("identifier"), special: c.Value("special")}
	if e.identifier == false {
		e.identifier = ret.Name
	}
	return e, ret
}

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	e, ret := wanted(c)
	e.comment, e.commented = c.Value("comment"), c.Value("commented")
	args := map[string]any{"user": c.Value("user"), "cmd": ret.Name, "comment": e.comment, "commented": e.commented, "identifier": e.identifier}
	for i, k := range columns {
		e.when[i] = c.Value(k)
	}
	if c.Test() {
		status, err := e.status(ctx, c)
		if err != nil {
			return nil, err
		}
		return announce(ret, "Cron "+ret.Name, status)
	}
	fun := "cron.set_job"
	if e.special != nil {
		fun, args["special"] = "cron.set_special", e.special
	} else {
		for i, k := range columns {
			args[k] = e.when[i]
		}
	}
	data, err := c.ExecKw(ctx, fun, nil, args)
	if err != nil {
		return nil, err
	}
	return did(c, ret, "Cron "+ret.Name, data)
}

// announce returns the result in test mode for a job or variable that must exist.
func announce(ret *states.Result, what, status string) (*states.Result, error) {
	switch status {
	case "absent":
		return ret.As(states.None, what+" is set to be added")
	case "update":
		return ret.As(states.None, what+" is set to be updated")
	}
	return ret.As(states.True, what+" already present")
}

// did returns the result for a job or variable that must exist.
func did(c *states.Call, ret *states.Result, what string, data any) (*states.Result, error) {
	switch data {
	case "present":
		return ret.As(states.True, what+" already present")
	case "new":
		ret.Changes[c.Str("user")] = ret.Name
		return ret.As(states.True, what+" added to "+c.Str("user")+"'s crontab")
	case "updated":
		ret.Changes[c.Str("user")] = ret.Name
		return ret.As(states.True, what+" updated")
	}
	return ret.As(states.False, what+" for user "+c.Str("user")+" failed to commit with error \n"+pytext.Str(data))
}

// gone returns the result for a job or variable that must not exist.
func gone(c *states.Call, ret *states.Result, what string, data any) (*states.Result, error) {
	switch data {
	case "absent":
		return ret.As(states.True, what+" already absent")
	case "removed":
		ret.Changes[c.Str("user")] = ret.Name
		return ret.As(states.True, what+" removed from "+c.Str("user")+"'s crontab")
	}
	return ret.As(states.False, what+" for user "+c.Str("user")+" failed to commit with error "+pytext.Str(data))
}

// going returns the result in test mode for a job or variable that must not exist.
func going(ret *states.Result, what, status string) (*states.Result, error) {
	if status == "absent" {
		return ret.As(states.True, what+" is absent")
	}
	return ret.As(states.None, what+" is set to be removed")
}

func absent(ctx context.Context, c *states.Call) (*states.Result, error) {
	e, ret := wanted(c)
	special := e.special
	if c.Test() {
		e.special = nil // Salt looks among the jobs with times only
		status, err := e.status(ctx, c)
		if err != nil {
			return nil, err
		}
		return going(ret, "Cron "+ret.Name, status)
	}
	fun, args := "cron.rm_job", map[string]any{"identifier": e.identifier}
	if special != nil {
		fun, args["special"] = "cron.rm_special", special
	}
	data, err := c.ExecKw(ctx, fun, []any{c.Value("user"), ret.Name}, args)
	if err != nil {
		return nil, err
	}
	return gone(c, ret, "Cron "+ret.Name, data)
}

// envStatus compares a variable with the table, like [entry.status].
func envStatus(ctx context.Context, c *states.Call, name, value any) (string, error) {
	v, err := c.Exec(ctx, "cron.list_tab", c.Value("user"))
	if err != nil {
		return "", err
	}
	if value == nil {
		value = ""
	}
	table, _ := v.(map[string]any)
	list, _ := table["env"].([]any)
	for _, x := range list {
		if env, _ := x.(map[string]any); pyobj.Equal(name, env["name"]) {
			if pyobj.Equal(value, env["value"]) {
				return "present", nil
			}
			return "update", nil
		}
	}
	return "absent", nil
}

func envPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	what := "Cron env " + ret.Name
	if c.Test() {
		status, err := envStatus(ctx, c, c.Value("name"), c.Value("value"))
		if err != nil {
			return nil, err
		}
		return announce(ret, what, status)
	}
	data, err := c.ExecKw(ctx, "cron.set_env", []any{c.Value("user"), c.Value("name")}, map[string]any{"value": c.Value("value")})
	if err != nil {
		return nil, err
	}
	return did(c, ret, what, data)
}

func envAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Name = pytext.Strip(ret.Name)
	what := "Cron env " + ret.Name
	if c.Test() {
		status, err := envStatus(ctx, c, ret.Name, nil)
		if err != nil {
			return nil, err
		}
		return going(ret, what, status)
	}
	data, err := c.Exec(ctx, "cron.rm_env", c.Value("user"), ret.Name)
	if err != nil {
		return nil, err
	}
	return gone(c, ret, what, data)
}
