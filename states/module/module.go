// Package module is Salt's state module "module": execution functions as states (salt/states/module.py).
package module

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// module.run differs: the argument returner has no effect; returns go where the job's returners send them.

// Module is "module".
var Module = &states.Module{Name: "module", Doc: "Execution functions as states.", Funcs: []states.Def{
	{Name: "mod_watch", Python: "run", Doc: runDoc, Kwargs: "kwargs", Run: run},
	{Name: "run", Doc: runDoc, Kwargs: "kwargs", Run: run},
	{Name: "wait", Doc: waitDoc, Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: wait},
	{Name: "watch", Python: "wait", Doc: waitDoc, Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: wait},
}}

const (
	runDoc = `Call execution functions.

Either each function is an argument, with a list of its own arguments:

    reload:
      module.run:
        - service.reload:
          - name: nginx

or name is the one function, and its arguments are those of the state; arguments that the state system has itself are
called m_name, m_names, m_fun, m_state and m_saltenv, and further ones are in args and kwargs.`
	waitDoc = `Call an execution function when a watched state changes.

The arguments are those of module.run.`
)

func wait(_ context.Context, c *states.Call) (*states.Result, error) {
	return c.Result().As(states.True, "")
}

func run(ctx context.Context, c *states.Call) (*states.Result, error) {
	keys := slices.DeleteFunc(slices.Clone(c.KeywordNames), func(k string) bool { return k == "name" || k == "__reqs__" || k == "sfun" })
	legacy := len(keys) == 0 && len(c.Keywords) > 0
	for _, k := range keys {
		legacy = legacy || !strings.Contains(k, ".")
	}
	if legacy {
		return runOne(ctx, c)
	}
	return runEach(ctx, c)
}

// argument returns an argument of the state with its dictionaries in the order of the state file, since that may
// matter to the called function.
func argument(c *states.Call, name string) any {
	if v := c.Low.Ordered(name); reflect.DeepEqual(pyobj.Plain(v), c.Keywords[name]) {
		return v
	}
	return pyobj.From(c.Keywords[name]) // a slot has made something else of it
}

// named returns the entries of a dictionary as keyword arguments; ok is false if v is not a dictionary, or if a key is not text.
func named(v any) (kwargs map[string]any, ok bool) {
	d, ok := v.(*pyobj.Dict)
	if !ok {
		return nil, false
	}
	kwargs = map[string]any{}
	for _, k := range d.Keys() {
		name, isText := k.(string)
		kwargs[name], ok = d.Value(k), ok && isText
	}
	return kwargs, ok
}

func known(c *states.Call, fun string) *modules.Def {
	d, err := c.Registry().Lookup(fun, c.Env)
	if err != nil {
		return nil
	}
	return d
}

// plural returns "True" for more than one, which Salt's comments contain in place of a plural s.
func plural(n int) string {
	if n > 1 {
		return "True"
	}
	return ""
}

// runEach calls every function that is an argument (_run).
func runEach(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Result = states.None
	names := []any{}
	var funs, missing, tests []string
	for _, k := range c.KeywordNames {
		if k == "name" {
			continue
		}
		names = append(names, k)
		if !strings.Contains(k, ".") {
			continue
		}
		funs = append(funs, k)
		fun, _, _ := strings.Cut(k, ":")
		if known(c, fun) == nil {
			missing = append(missing, fun)
		} else if c.Test() {
			tests = append(tests, fun)
		}
	}
	ret.Extra = map[string]any{"name": names}
	if funs == nil {
		return ret.As(states.False, "No function provided.")
	}
	if missing != nil || tests != nil {
		var parts []string
		if missing != nil {
			ret.Result = states.False
			parts = append(parts, "Unavailable function"+plural(len(missing))+": "+strings.Join(missing, ", ")+".")
		}
		if tests != nil {
			parts = append(parts, "Function"+plural(len(tests))+" "+strings.Join(tests, ", ")+" to be executed.")
		}
		return ret.As(ret.Result, strings.Join(parts, " "))
	}
	var failures, good []string
	changes := &pyobj.Dict{}
	for _, k := range funs {
		fun, _, _ := strings.Cut(k, ":")
		v, err := callWith(ctx, c, fun, argument(c, k))
		var (
			usage *modules.UsageError
			typ   *modules.TypeError
		)
		switch m, isMap := v.(*pyobj.Dict); {
		case errors.As(err, &usage), errors.As(err, &typ):
			failures = append(failures, "'"+k+"' failed: "+states.ErrorText(err))
		case err != nil:
			return nil, err
		case !succeeded(v) && isMap:
			failures = append(failures, "'"+k+"' failed: "+commentOf(m, "(error message N/A)"))
		case !succeeded(v):
			failures = append(failures, "'"+k+"': "+pyobj.Str(v))
		default:
			text := pyobj.Str(v)
			if isMap {
				text = commentOf(m, "Success")
			}
			good = append(good, k+": "+text)
			ret.Changes[k] = v
			_ = changes.Set(k, v)
		}
	}
	ret.Extra["changes"] = changes
	return ret.As(states.OutcomeOf(failures == nil), strings.Join(append(failures, good...), ", "))
}

func commentOf(d *pyobj.Dict, otherwise string) string {
	if v, ok := d.Get("comment"); ok {
		return pyobj.Str(v)
	}
	return otherwise
}

// positional returns the parameters that can be passed by position.
func positional(d *modules.Def) []modules.Param {
	return slices.DeleteFunc(slices.Clone(d.Params), func(p modules.Param) bool { return p.KeywordOnly })
}

// callWith calls a function with a list of arguments, in which dicts are keyword arguments (salt/utils/functools.py: call_function).
func callWith(ctx context.Context, c *states.Call, fun string, argv any) (any, error) {
	d := known(c, fun)
	var expected []string
	kwargs := map[string]any{}
	params := positional(d)
	for _, p := range params {
		if p.Required() {
			expected = append(expected, p.Name)
		}
	}
	var list, args []any
	switch v := argv.(type) {
	case *pyobj.List:
		list = v.Items
	case string:
		for _, r := range v {
			list = append(list, string(r))
		}
	case *pyobj.Dict:
		list = v.Keys()
	case nil:
	default:
		return nil, &modules.TypeError{Msg: "salt.states.module._call_function() argument after * must be an iterable, not " + modules.TypeName(v)}
	}
	placed := map[string]any{}
	for _, x := range slices.Backward(list) {
		m, ok := named(x)
		if !ok {
			args = append(args, x)
			continue
		}
		for k, v := range m {
			if slices.Contains(expected, k) {
				placed[k] = v
			} else {
				maps.Copy(kwargs, m)
			}
		}
	}
	slices.Reverse(args)
	for _, name := range expected {
		if v, ok := placed[name]; ok {
			args = append(args, v)
		}
	}
	var missing []string
	passed := len(args)
	if len(expected) > passed {
		for _, p := range params[passed:] {
			if _, ok := kwargs[p.Name]; ok || !p.Required() {
				passed++
			} else {
				missing = append(missing, p.Name)
			}
		}
	}
	if missing != nil {
		return nil, modules.Usagef("Missing arguments: %s", strings.Join(missing, ", "))
	}
	// The call would fill in defaults itself. Salt passes them, so naming a parameter that is also passed by position
	// is an error here too.
	return c.ExecOrdered(ctx, fun, args, kwargs)
}

// renamed returns the name by which a state passes an argument whose own name the state system uses itself.
func renamed(name string, def bool) string {
	switch name {
	case "name", "fun", "state", "saltenv":
		return "m_" + name
	case "names":
		if !def {
			return "m_names"
		}
	}
	return name
}

// runOne calls the function that is the state's name (_legacy_run).
func runOne(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Result = states.None
	kwargs := map[string]any{}
	for k := range c.Keywords {
		kwargs[k] = argument(c, k)
	}
	fun := pytext.Str(kwargs["name"])
	delete(kwargs, "name")
	ret.Name = fun
	d := known(c, fun)
	if d == nil {
		return ret.As(states.False, "Module function "+fun+" is not available")
	}
	if c.Test() {
		return ret.As(states.None, "Module function "+fun+" is set to execute")
	}
	take := func(name string) (any, bool) {
		v, ok := kwargs[name]
		delete(kwargs, name)
		return v, ok
	}
	var args []any
	var missing []string
	for _, p := range positional(d) {
		if p.Required() {
			name := renamed(p.Name, false)
			if v, ok := take(name); ok {
				args = append(args, v)
			} else {
				missing = append(missing, name)
			}
			continue
		}
		v := p.Default
		if name := renamed(p.Name, true); name != p.Name {
			if x, ok := take(name); ok {
				v = x
			}
		}
		if x, ok := take(p.Name); ok {
			v = x
		}
		args = append(args, v)
	}
	if missing != nil {
		return ret.As(states.False, "The following arguments are missing: "+strings.Join(missing, " "))
	}
	if d.Args != "" {
		if v, ok := take(renamed(d.Args, false)); ok {
			list, ok := v.(*pyobj.List)
			if !ok {
				return ret.As(states.False, "'"+d.Args+"' must be a list.")
			}
			args = append(args, list.Items...)
		}
	}
	more := map[string]any{}
	if d.Kwargs != "" {
		if v, ok := take(d.Kwargs); ok {
			if more, ok = named(v); !ok {
				return ret.As(states.False, "'"+d.Kwargs+"' must be a dict.")
			}
		}
	}
	v, err := c.ExecOrdered(ctx, fun, args, more)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return ret.As(states.False, "Module function "+fun+" threw an exception. Exception: "+states.ErrorText(err))
	}
	ret.Changes["ret"] = v
	return ret.As(states.OutcomeOf(succeeded(v)), "Module function "+fun+" executed")
}

// succeeded reads an answer: False, or a dict with a false result or a return code, at any depth, is a failure.
func succeeded(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case *pyobj.Dict:
		for k, x := range v.All() {
			switch x := x.(type) {
			case *pyobj.Dict:
				if !succeeded(x) {
					return false
				}
			default:
				if k == "result" && x == false || k == "retcode" && x != int64(0) && x != false {
					return false
				}
			}
		}
	}
	return true
}
