// Package status is Salt's state module "status": states that only look, at the load and at processes (salt/states/status.py).
package status

import (
	"context"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "status".
var Module = &states.Module{Name: "status", Doc: "States that only look, at the load and at processes.", Funcs: []states.Def{
	{Name: "loadavg", Doc: loadavgDoc, Params: []modules.Param{{Name: "name"}, {Name: "maximum", Optional: true}, {Name: "minimum", Optional: true}}, Run: loadavg},
	{Name: "process", Doc: processDoc, Params: []modules.Param{{Name: "name"}}, Run: process},
}}

const (
	loadavgDoc = `Fail when the load is beyond limits.

name
    1-min, 5-min or 15-min
maximum, minimum
    the limits`
	processDoc = `Fail when a process does not run.

name
    what its command line has`
)

func loadavg(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Extra = map[string]any{"data": map[string]any{}}
	v, err := c.Exec(ctx, "status.loadavg")
	if err != nil {
		return nil, err
	}
	data, _ := v.(map[string]any)
	name := c.Str("name")
	load, ok := data[name]
	if !ok {
		return ret.As(states.False, "Requested load average "+name+" not available ")
	}
	low, high := c.Bool("minimum"), c.Bool("maximum")
	if low && high {
		bad, err := atLeast(c.Value("minimum"), c.Value("maximum"))
		if err != nil {
			return nil, err
		}
		if bad {
			return ret.As(states.False, "Min must be less than max")
		}
	}
	number, err := float(load)
	if err != nil {
		return nil, err
	}
	ret.Extra["data"] = load
	text := pytext.Float(number)
	if low {
		limit, err := float(c.Value("minimum"))
		if err != nil {
			return nil, err
		}
		if number < limit {
			return ret.As(states.False, "Load avg is below minimum of "+c.Str("minimum")+" at "+text)
		}
	}
	if high {
		limit, err := float(c.Value("maximum"))
		if err != nil {
			return nil, err
		}
		if number > limit {
			return ret.As(states.False, "Load avg above maximum of "+c.Str("maximum")+" at "+text)
		}
	}
	return ret.As(states.True, "Load avg in acceptable range")
}

// float implements Python's float().
func float(v any) (float64, error) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case int64:
		return float64(v), nil
	case bool:
		if v {
			return 1, nil
		}
		return 0, nil
	case string:
		if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
			return f, nil
		}
		return 0, &modules.PythonError{Type: "ValueError", Msg: "could not convert string to float: " + pytext.Repr(v)}
	}
	return 0, &modules.TypeError{Msg: "float() argument must be a string or a real number, not '" + modules.TypeName(v) + "'"}
}

// atLeast implements Python's a >= b.
func atLeast(a, b any) (bool, error) {
	s, isText := a.(string)
	t, alsoText := b.(string)
	if isText && alsoText {
		return s >= t, nil
	}
	x, err1 := float(a)
	y, err2 := float(b)
	if isText || alsoText || err1 != nil || err2 != nil {
		return false, &modules.TypeError{Msg: "'>=' not supported between instances of '" + modules.TypeName(a) + "' and '" + modules.TypeName(b) + "'"}
	}
	return x >= y, nil
}

func process(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Extra = map[string]any{"data": map[string]any{}}
	v, err := c.Exec(ctx, "status.pid", c.Value("name"))
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(v) {
		return ret.As(states.False, `Process signature "`+c.Str("name")+`" not found `)
	}
	ret.Extra["data"] = v
	return ret.As(states.True, `Process signature "`+c.Str("name")+`" was found `)
}
