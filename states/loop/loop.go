// Package loop is Salt's state module "loop": functions that are called until they answer as expected (salt/states/loop.py).
package loop

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// loop.until is absent: its condition is Python code.

// Module is "loop".
var Module = &states.Module{Name: "loop", Doc: "Functions that are called until they answer as expected.", Funcs: []states.Def{
	{Name: "until_no_eval", Doc: untilDoc, Params: []modules.Param{{Name: "name"}, {Name: "expected"}, {Name: "compare_operator", Default: "eq"},
		{Name: "timeout", Default: int64(60)}, {Name: "period", Default: int64(1)}, {Name: "init_wait", Default: int64(0)},
		{Name: "args", Optional: true}, {Name: "kwargs", Optional: true}}, Run: until},
}}

const untilDoc = `Call a function until it answers as expected.

name
    the execution function
expected
    what to compare its answer with
compare_operator
    eq, ne, lt, le, gt, ge, contains, is_, is_not, or an execution function of two arguments
timeout
    seconds to try
period
    seconds between two calls
init_wait
    seconds before the first
args, kwargs
    arguments of the function`

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case bool:
		return 0, true
	}
	return 0, false
}

func until(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	fun, op := c.Name(), c.Str("compare_operator")
	known := func(f string) bool {
		_, err := c.Registry().Lookup(f, c.Env)
		return err == nil
	}
	period, ok1 := number(c.Value("period"))
	timeout, ok2 := number(c.Value("timeout"))
	switch {
	case !known(fun):
		ret.Comment = `Module.function "` + fun + `" is unavailable.`
	case !ok1:
		ret.Comment = "Period must be specified as a float in seconds"
	case !ok2:
		ret.Comment = "Timeout must be specified as a float in seconds"
	case !known(op) && compare(op, nil, nil) == nil:
		ret.Comment = `Invalid operator "` + op + `" supplied.`
	}
	if c.Test() {
		return ret.As(states.None, `Would have waited for "`+fun+`" to produce "`+c.Text(c.Value("expected"))+`".`)
	}
	if ret.Comment != "" {
		return ret, nil
	}
	if wait, _ := number(c.Value("init_wait")); wait > 0 {
		if err := pause(ctx, wait); err != nil {
			return nil, err
		}
	}
	args, _ := c.Value("args").([]any)
	kwargs, err := c.Map("kwargs")
	if err != nil {
		return nil, err
	}
	end := time.Now().Add(seconds(timeout))
	n := 0
	for time.Now().Before(end) {
		n++
		got, err := c.ExecKw(ctx, fun, args, kwargs)
		if err != nil {
			return ret.As(states.False, "Exception occurred while executing "+fun+": "+exceptionClass(err)+":"+states.ErrorText(err))
		}
		good := false
		if known(op) {
			v, err := c.Exec(ctx, op, got, c.Value("expected"))
			if err != nil {
				return nil, err
			}
			good = pytext.Truth(v)
		} else if v := compare(op, got, c.Value("expected")); v != nil {
			good = *v
		}
		if good {
			return ret.As(states.True, fmt.Sprintf("Call provided the expected results in %d attempts", n))
		}
		if err := pause(ctx, period); err != nil {
			return nil, err
		}
	}
	return ret.As(states.False, fmt.Sprintf("Call did not produce the expected result after %d attempts", n))
}

func exceptionClass(err error) string { return "<class '" + states.ErrorClass(err) + "'>" }

func seconds(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }

func pause(ctx context.Context, sec float64) error {
	t := time.NewTimer(seconds(sec))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// compare implements Python's comparison operator op. It returns nil if the types do not support it.
func compare(op string, a, b any) *bool {
	x, okA := number(a)
	y, okB := number(b)
	s, okS := a.(string)
	t, okT := b.(string)
	order := 2
	switch {
	case okA && okB && x < y, okS && okT && s < t:
		order = -1
	case okA && okB && x > y, okS && okT && s > t:
		order = 1
	case nested.Equal(a, b):
		order = 0
	}
	var v bool
	switch op {
	case "eq", "is_":
		v = order == 0
	case "ne", "is_not":
		v = order != 0
	case "lt":
		v = order == -1
	case "le":
		v = order == -1 || order == 0
	case "gt":
		v = order == 1
	case "ge":
		v = order == 1 || order == 0
	case "contains":
		switch a := a.(type) {
		case string:
			v = okT && strings.Contains(a, t)
		case []any:
			for _, x := range a {
				v = v || nested.Equal(x, b)
			}
		case map[string]any:
			_, v = a[t]
		}
	default:
		return nil
	}
	return &v
}
