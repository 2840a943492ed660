package status

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, Module) }

// fake is the execution module "status" of a host with a load of 0.5 where one process has the name "found".
var fake = &modules.Module{Name: "status", Funcs: []modules.Def{
	{Name: "loadavg", Run: func(context.Context, *modules.Call) (any, error) {
		return map[string]any{"1-min": 0.5, "5-min": "0.25", "15-min": int64(3)}, nil
	}},
	{Name: "pid", Params: []modules.Param{{Name: "sig"}}, Run: func(_ context.Context, c *modules.Call) (any, error) {
		if c.Str("sig") == "found" {
			return "17\n18", nil
		}
		return "", nil
	}},
}}

// TestLoad compares the answers of the states of a known load and process.
func TestLoad(t *testing.T) {
	for _, c := range []struct {
		fun, name string
		args      map[string]any
		result    any
		comment   string
		data      any
	}{
		{"loadavg", "1-min", nil, true, "Load avg in acceptable range", 0.5},
		{"loadavg", "1-min", map[string]any{"maximum": "0.5", "minimum": "0.25"}, true, "Load avg in acceptable range", 0.5},
		{"loadavg", "5-min", map[string]any{"minimum": int64(1)}, false, "Load avg is below minimum of 1 at 0.25", "0.25"},
		{"loadavg", "15-min", map[string]any{"maximum": 2.5}, false, "Load avg above maximum of 2.5 at 3.0", int64(3)},
		{"loadavg", "15-min", map[string]any{"maximum": true}, false, "Load avg above maximum of True at 3.0", int64(3)},
		{"loadavg", "1-min", map[string]any{"maximum": int64(1), "minimum": int64(1)}, false, "Min must be less than max", map[string]any{}},
		{"loadavg", "1-min", map[string]any{"maximum": "5", "minimum": "10"}, false, "Load avg is below minimum of 10 at 0.5", 0.5}, // as texts, "10" is less
		{"loadavg", "2-min", nil, false, "Requested load average 2-min not available ", map[string]any{}},
		{"process", "found", nil, true, `Process signature "found" was found `, "17\n18"},
		{"process", "none", nil, false, `Process signature "none" not found `, map[string]any{}},
	} {
		kwargs := map[string]any{"name": c.name}
		for k, v := range c.args {
			kwargs[k] = v
		}
		got := statestest.Apply(t, modulestest.Env(t), Module, "status."+c.fun, kwargs, false, fake)
		want := map[string]any{"result": c.result, "comment": c.comment, "data": c.data}
		if diff := cmp.Diff(want, map[string]any{"result": got["result"], "comment": got["comment"], "data": got["data"]}); diff != "" {
			t.Errorf("%s %v: %s", c.fun, kwargs, diff)
		}
	}
}

// TestNoNumber compares the errors of limits that are not numbers.
func TestNoNumber(t *testing.T) {
	for _, c := range []struct {
		args map[string]any
		want string
	}{
		{map[string]any{"maximum": "much"}, "could not convert string to float: 'much'"},
		{map[string]any{"minimum": []any{int64(1)}}, "float() argument must be a string or a real number, not 'list'"},
		{map[string]any{"minimum": "1", "maximum": int64(2)}, "'>=' not supported between instances of 'str' and 'int'"},
	} {
		c.args["name"] = "1-min"
		got := statestest.Apply(t, modulestest.Env(t), Module, "status.loadavg", c.args, false, fake)
		if text, _ := got["comment"].(string); got["result"] != false || !strings.Contains(text, c.want) {
			t.Errorf("%v: %v", c.args, got)
		}
	}
}
