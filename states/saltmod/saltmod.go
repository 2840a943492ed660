// Package saltmod is Salt's state module "salt": orchestration, states that command minions and run the functions of a master
// (salt/states/saltmod.py). It does so through the execution functions saltutil.cmd, saltutil.runner and saltutil.wheel, which
// only a program with a master has.
package saltmod

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// salt.state differs: there is no ssh client (ssh: True).

// Module is "saltmod", called "salt".
var Module = &states.Module{Name: "saltmod", Virtual: "salt", Doc: "Commands for minions and for the master, as states of an orchestration.", Funcs: []states.Def{
	{Name: "function", Doc: functionDoc, Params: []modules.Param{{Name: "name"}, {Name: "tgt"}, {Name: "ssh", Default: false}, {Name: "tgt_type", Default: "glob"},
		{Name: "ret", Default: ""}, {Name: "ret_config", Optional: true}, {Name: "ret_kwargs", Optional: true}, {Name: "expect_minions", Default: false},
		{Name: "fail_minions", Optional: true}, {Name: "fail_function", Optional: true}, {Name: "arg", Optional: true}, {Name: "kwarg", Optional: true},
		{Name: "timeout", Optional: true}, {Name: "batch", Optional: true}, {Name: "subset", Optional: true}, {Name: "failhard", Optional: true}},
		Kwargs: "kwargs", Run: function},
	{Name: "parallel_runners", Doc: parallelDoc, Params: []modules.Param{{Name: "name"}, {Name: "runners"}}, Kwargs: "kwargs", Run: parallelRunners},
	{Name: "runner", Doc: runnerDoc, Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: runner},
	{Name: "state", Doc: stateDoc, Params: []modules.Param{{Name: "name"}, {Name: "tgt"}, {Name: "ssh", Default: false}, {Name: "tgt_type", Default: "glob"},
		{Name: "ret", Default: ""}, {Name: "ret_config", Optional: true}, {Name: "ret_kwargs", Optional: true}, {Name: "highstate", Optional: true},
		{Name: "sls", Optional: true}, {Name: "top", Optional: true}, {Name: "saltenv", Optional: true}, {Name: "test", Optional: true},
		{Name: "pillar", Optional: true}, {Name: "pillarenv", Optional: true}, {Name: "expect_minions", Default: true}, {Name: "exclude", Optional: true},
		{Name: "fail_minions", Optional: true}, {Name: "allow_fail", Default: int64(0)}, {Name: "concurrent", Default: false}, {Name: "timeout", Optional: true},
		{Name: "batch", Optional: true}, {Name: "queue", Default: false}, {Name: "subset", Optional: true}, {Name: "orchestration_jid", Optional: true},
		{Name: "failhard", Optional: true}}, Kwargs: "kwargs", Run: state},
	{Name: "wait_for_event", Doc: waitDoc, Params: []modules.Param{{Name: "name"}, {Name: "id_list"}, {Name: "event_id", Default: "id"},
		{Name: "timeout", Default: int64(300)}, {Name: "node", Default: "master"}}, Run: waitForEvent},
	{Name: "wheel", Doc: wheelDoc, Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: wheel},
}}

// orchestration returns the id of the orchestration that the state belongs to, or nil if it does not belong to one.
func orchestration(c *states.Call) any { return c.Low.Value("__orchestration_jid__") }

// announce sends an event about what a state is going to do, for listeners that follow the orchestration.
func announce(c *states.Call, data map[string]any) {
	jid := orchestration(c)
	if jid != nil && c.Agent != nil {
		c.Agent.FireLocal("salt/run/"+pytext.Str(jid)+"/args", data)
	}
}

// common returns the arguments of saltutil.cmd that saltmod.state and saltmod.function share.
func common(c *states.Call, arg []any, kwarg map[string]any) map[string]any {
	kw := map[string]any{"arg": arg, "kwarg": kwarg, "ret": c.Value("ret"), "timeout": c.Value("timeout"), "tgt_type": c.Value("tgt_type"),
		"ssh": c.Value("ssh"), "expect_minions": c.Value("expect_minions")}
	for _, name := range [...]string{"ret_config", "ret_kwargs"} {
		if v := c.Value(name); pytext.Truth(v) {
			kw[name] = v
		}
	}
	if v, ok := c.Keywords["roster"]; ok {
		kw["roster"] = v
	}
	if v := c.Value("batch"); v != nil {
		kw["batch"] = pytext.Str(v)
	}
	if v := c.Value("subset"); v != nil {
		kw["subset"] = v
	}
	if c.Value("failhard") == true || pytext.Truth(c.Opt("failhard")) {
		kw["failhard"] = true
	}
	return kw
}

// mayFail returns the minions whose failure is ignored.
func mayFail(c *states.Call, ret *states.Result) []string {
	switch v := c.Value("fail_minions").(type) {
	case nil:
	case string:
		return c.Strings("fail_minions")
	case []any:
		list := make([]string, len(v))
		for i, x := range v {
			list[i] = pytext.Str(x)
		}
		return list
	default:
		ret.Warn("'fail_minions' needs to be a list or a comma separated string. Ignored.")
	}
	return nil
}

// command calls saltutil.cmd and returns the answer of each minion.
func command(ctx context.Context, c *states.Call, fun string, kw map[string]any) (map[string]map[string]any, error) {
	v, err := c.ExecKw(ctx, "saltutil.cmd", []any{c.Value("tgt"), fun}, kw)
	if err != nil {
		return nil, err
	}
	m, _ := v.(map[string]any)
	out := make(map[string]map[string]any, len(m))
	for id, x := range m {
		out[id], _ = x.(map[string]any)
	}
	return out, nil
}

// follow notes the job that a state has made.
func follow(ret *states.Result, answers map[string]map[string]any) {
	if len(answers) == 0 {
		return
	}
	first := slices.Min(slices.Collect(maps.Keys(answers)))
	if jid, ok := answers[first]["jid"]; ok {
		ret.Extra = map[string]any{"__jid__": jid}
	}
}

// value returns the return value in a minion's answer.
func value(data map[string]any) (any, bool) {
	if v, ok := data["ret"]; ok {
		return v, true
	}
	v, ok := data["return"]
	return v, ok
}

func function(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Result = states.True
	arg, ok := c.Value("arg").([]any)
	if s, isText := c.Value("arg").(string); isText {
		ret.Warn("Please specify 'arg' as a list of arguments.")
		for _, word := range strings.Fields(s) {
			arg = append(arg, word)
		}
	} else if !ok {
		arg = []any{}
	}
	kwarg := map[string]any{}
	if v, _ := c.InOrder("kwarg"); v != nil {
		if d, ok := v.(*pyobj.Dict); ok {
			for k, x := range d.All() {
				kwarg[pyobj.Str(k)] = x
			}
		}
	}
	kw := common(c, arg, kwarg)
	kw["_cmd_meta"] = true
	name := c.Name()
	if c.Test() {
		return ret.As(states.None, fmt.Sprintf("Function %s would be executed on target %s", name, pytext.Str(c.Value("tgt"))))
	}
	announce(c, map[string]any{"type": "function", "tgt": c.Value("tgt"), "name": name, "args": kw})
	answers, err := command(ctx, c, name, kw)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return ret.As(states.False, states.ErrorText(err))
	}
	follow(ret, answers)
	excused := mayFail(c, ret)
	var failed []string
	changes := map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(answers)) {
		data := answers[id]
		bad := false
		if pytext.Truth(data["retcode"]) {
			ret.Result, bad = states.False, true
		}
		var got any = false
		good := false
		if !pytext.Truth(data["failed"]) {
			v, ok := value(data)
			if !ok {
				return nil, &modules.PythonError{Type: "KeyError", Msg: "'ret'"}
			}
			got, good = v, true
			if fun := c.Str("fail_function"); fun != "" {
				v, err := c.Exec(ctx, fun, got)
				if err != nil {
					return nil, err
				}
				good = pytext.Truth(v)
			}
			good = good && got != false
		}
		if bad || !good && !slices.Contains(excused, id) {
			failed = append(failed, id)
		}
		changes[id] = got
	}
	if len(answers) == 0 {
		return ret.As(states.False, "No minions responded")
	}
	ret.Changes = map[string]any{"ret": changes}
	if len(failed) > 0 {
		ret.Result, ret.Comment = states.False, "Running function "+name+" failed on minions: "+strings.Join(failed, ", ")
	} else {
		ret.Comment = "Function ran successfully."
	}
	ret.Comment += " Function " + name + " ran on " + strings.Join(slices.Sorted(maps.Keys(changes)), ", ") + "."
	return ret, nil
}

func waitForEvent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	name := c.Name()
	if c.Test() {
		return ret.As(states.None, "Orchestration would wait for event '"+name+"'")
	}
	if c.Listen == nil {
		return nil, modules.Errorf("cannot wait for events: this program has no event bus")
	}
	timeout, err := c.Seconds("timeout")
	if err != nil {
		return nil, err
	}
	list, ok := c.Value("id_list").([]any)
	if !ok {
		return nil, &modules.TypeError{Msg: "object of type '" + modules.TypeName(c.Value("id_list")) + "' has no len()"}
	}
	missing := slices.Clone(list)
	bus, err := c.Listen(ctx, c.Str("node"), "")
	if err != nil {
		return nil, err
	}
	defer bus.Close()
	start := time.Now()
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var seen []any
	for {
		tag, data, err := bus.Next(limited)
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if limited.Err() != nil {
				return ret.As(states.False, "Timeout value reached.")
			}
			return nil, err
		}
		if fnmatch.Match(name, tag) {
			for _, id := range identifiers(data, c.Str("event_id")) {
				if i := slices.IndexFunc(missing, func(x any) bool { return nested.Equal(x, id) }); i >= 0 {
					missing = slices.Delete(missing, i, i+1)
					seen = append(seen, id)
					ret.Changes["minions_seen"] = seen
				}
			}
		}
		if len(missing) == 0 {
			return ret.As(states.True, "All events seen in "+pytext.Str(time.Since(start).Seconds())+" seconds.")
		}
	}
}

// identifiers returns the values at a key of an event's data, or of the data inside it.
func identifiers(data map[string]any, key string) []any {
	v := data[key]
	if v == nil {
		if inner, ok := data["data"].(map[string]any); ok {
			v = inner[key]
		}
	}
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{v}
}

// arguments returns the keyword arguments of the state without those that Salt adds.
func arguments(c *states.Call) map[string]any {
	kw := maps.Clone(c.Keywords)
	if kw == nil {
		kw = map[string]any{}
	}
	return kw
}

func runner(ctx context.Context, c *states.Call) (*states.Result, error) {
	return onMaster(ctx, c, "Runner", "saltutil.runner", map[string]any{"full_return": true})
}

func wheel(ctx context.Context, c *states.Call) (*states.Result, error) {
	return onMaster(ctx, c, "Wheel", "saltutil.wheel", nil)
}

// onMaster runs a function of the master.
func onMaster(ctx context.Context, c *states.Call, kind, door string, more map[string]any) (*states.Result, error) {
	ret := c.Result()
	name := c.Name()
	if c.Test() {
		return ret.As(states.None, kind+" function '"+name+"' would be executed.")
	}
	kw := arguments(c)
	maps.Copy(kw, map[string]any{"__orchestration_jid__": orchestration(c), "__env__": c.Saltenv()})
	maps.Copy(kw, more)
	if user, _ := c.Context().Get("__user__"); kind == "Runner" && user != "" && user != nil {
		kw["__pub_user"] = user // that of the run which the orchestration is
	}
	v, err := c.ExecKw(ctx, door, []any{name}, kw)
	if err != nil {
		return nil, err
	}
	out, ok := v.(map[string]any)
	if !ok {
		return nil, modules.NoAttribute(v, "get")
	}
	success := true
	if s, ok := out["success"]; ok {
		success = pytext.Truth(s)
	}
	if m, ok := out["return"].(map[string]any); ok && m["Error"] != nil {
		success = false
	}
	ret.Changes = map[string]any{"return": out["return"]}
	ret.Result = states.OutcomeOf(success)
	ret.Comment = kind + " function '" + name + "' failed."
	if success {
		ret.Comment = kind + " function '" + name + "' executed."
	}
	if jid, ok := out["jid"]; ok {
		ret.Extra = map[string]any{"__jid__": jid}
	}
	return ret, nil
}
