package saltmod_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
	"github.com/brine-salt/brine/states/saltmod"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, saltmod.Module) }

// run runs one state with a saltutil that answers as given, and gives its result.
func run(t *testing.T, fun string, args map[string]any, answer any) map[string]any {
	t.Helper()
	answers := func(context.Context, *modules.Call) (any, error) { return answer, nil }
	var doors []modules.Def
	for _, name := range []string{"cmd", "runner", "wheel"} {
		doors = append(doors, modules.Def{Name: name, Params: []modules.Param{{Name: "x"}}, Args: "args", Kwargs: "kwargs", Run: answers})
	}
	var got any
	door := &modules.Module{Name: "door", Funcs: []modules.Def{{Name: "open", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		low := pyobj.FromMap(args)
		for _, kv := range [][2]string{{"state", "salt"}, {"fun", fun}, {"__id__", "step"}, {"name", "step"}} {
			_ = low.Set(kv[0], kv[1])
		}
		rec, err := states.New(c, states.Options{Registry: states.NewRegistry(saltmod.Module), Opts: map[string]any{"id": "m"}}).Single(ctx, states.NewLow(low))
		got = rec
		return nil, err
	}}}}
	r := modules.NewRegistry(door, &modules.Module{Name: "saltutil", Funcs: doors})
	if res := r.Run(t.Context(), modulestest.Env(t), modules.Request{Fun: "door.open"}); res.Err != nil {
		t.Fatal(res.Err)
	}
	return got.(map[string]any)
}

func TestWhatMinionsAnswer(t *testing.T) {
	good := map[string]any{"a": map[string]any{"result": true, "changes": map[string]any{"x": "y"}}}
	same := map[string]any{"a": map[string]any{"result": true, "changes": map[string]any{}}}
	bad := map[string]any{"a": map[string]any{"result": false, "changes": map[string]any{}}}
	ret := func(v any) map[string]any { return map[string]any{"ret": v, "out": "highstate", "jid": "1"} }
	for _, c := range []struct {
		name    string
		fun     string
		args    map[string]any
		answer  any
		result  any
		comment string
	}{
		{"changes and none", "state", map[string]any{"tgt": "*", "sls": "s"}, map[string]any{"m1": ret(good), "m2": ret(same)}, true,
			"States ran successfully. Updating m1. No changes made to m2."},
		{"a failure", "state", map[string]any{"tgt": "*", "sls": "s"}, map[string]any{"m1": ret(good), "m2": ret(bad)}, false, "Run failed on minions: m2"},
		{"no return, no states", "state", map[string]any{"tgt": "*", "sls": "s"}, map[string]any{"m1": map[string]any{"failed": true}, "m2": ret([]any{"e1", "e2"}),
			"m3": ret("text"), "m4": ret([]any{})}, false, "Run failed on minions: m1, m2, m3, m4\nMinion m1 did not return a state result.\n" +
			"Minion m2 returned errors: e1; e2\nMinion m3 returned 'text' instead of a state result.\nMinion m4 returned an empty error list."},
		{"excused", "state", map[string]any{"tgt": "*", "highstate": true, "fail_minions": "m2, m3"}, map[string]any{"m2": ret(bad)}, true,
			"States ran successfully. Updating m2."},
		{"allowed", "state", map[string]any{"tgt": "*", "top": "t", "allow_fail": int64(1)}, map[string]any{"m2": ret(bad)}, true,
			"States ran successfully. Updating m2."},
		{"nobody", "state", map[string]any{"tgt": "*", "sls": "s"}, map[string]any{}, false, "No minions returned"},
		{"nothing to do", "state", map[string]any{"tgt": "*"}, nil, false, "No highstate or sls specified, no execution made"},
		{"a function", "function", map[string]any{"tgt": "*"}, map[string]any{"m1": ret("x"), "m2": ret(nil)}, true,
			"Function ran successfully. Function step ran on m1, m2."},
		{"a function that fails", "function", map[string]any{"tgt": "*", "fail_minions": []any{"m1"}},
			map[string]any{"m1": ret(false), "m2": map[string]any{"ret": "x", "retcode": int64(2)}}, false,
			"Running function step failed on minions: m2 Function step ran on m1, m2."},
		{"a function nobody ran", "function", map[string]any{"tgt": "*"}, map[string]any{}, false, "No minions responded"},
		{"a runner", "runner", nil, map[string]any{"return": "x", "success": true, "jid": "2"}, true, "Runner function 'step' executed."},
		{"a runner that fails", "runner", nil, map[string]any{"return": map[string]any{"Error": "no"}}, false, "Runner function 'step' failed."},
		{"a wheel", "wheel", nil, map[string]any{"return": "x"}, true, "Wheel function 'step' executed."},
		{"runners that are a list", "parallel_runners", map[string]any{"runners": []any{"a"}}, nil, false, "The runners parameter must be a string or dict."},
		{"runners", "parallel_runners", map[string]any{"runners": map[string]any{"a": nil, "b": []any{map[string]any{"name": "x.y"}}}},
			map[string]any{"return": map[string]any{"exit_code": int64(1)}}, false, "Runners a, b failed."},
		{"orchestrations", "parallel_runners", map[string]any{"runners": "state.orchestrate"},
			map[string]any{"return": map[string]any{"outputter": "highstate", "data": map[string]any{"m": good}}}, true, "All runner functions executed successfully."},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := run(t, c.fun, c.args, c.answer)
			if d := cmp.Diff([]any{c.result, c.comment}, []any{got["result"], got["comment"]}); d != "" {
				t.Error(d)
			}
		})
	}
}
