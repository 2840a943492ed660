// Package debconfmod is Salt's state module "debconf": answers to the questions that packages of Debian ask when they are
// installed (salt/states/debconfmod.py).
package debconfmod

import (
	"context"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "debconf".
var Module = &states.Module{
	Name: "debconfmod", Virtual: "debconf", Doc: "Answers to the questions that packages of Debian ask.", Available: available,
	Needs: "debconf.show", Otherwise: "debconf module could not be loaded",
	Funcs: []states.Def{
		{Name: "set", Doc: setDoc, Params: []modules.Param{{Name: "name"}, {Name: "data"}}, Kwargs: "kwargs", Run: set},
		{Name: "set_file", Doc: setFileDoc, Params: []modules.Param{{Name: "name"}, {Name: "source"}, {Name: "template", Optional: true},
			{Name: "context", Optional: true}, {Name: "defaults", Optional: true}}, Kwargs: "kwargs", Run: setFile},
	},
}

const (
	setDoc = `Have questions answered.

name
    the package
data
    a map from questions to maps with type and value`
	setFileDoc = `Answer the questions that a file has answers to.

name
    a name for the state
source
    the file: a path or URL, with lines as debconf-set-selections takes them
template
    the engine by which the file is rendered first
context, defaults
    what the template may use`
)

func available(e *modules.Env) (bool, string) {
	if e.Grain("os_family") != "Debian" {
		return false, "debconf state only runs on Debian systems"
	}
	return true, ""
}

func setFile(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	names := [...]string{"Context", "Defaults"}
	var maps [2]map[string]any
	for i, key := range [...]string{"context", "defaults"} {
		m, ok := c.Value(key).(map[string]any)
		if !ok && c.Value(key) != nil {
			return ret.As(states.False, names[i]+" must be formed as a dict")
		}
		if maps[i] = m; m == nil {
			maps[i] = map[string]any{}
		}
	}
	if c.Test() {
		return ret.As(states.None, "Debconf selections would have been set.")
	}
	args, fun := []any{c.Value("source")}, "debconf.set_file"
	if c.Bool("template") {
		args, fun = append(args, c.Value("template"), maps[0], maps[1]), "debconf.set_template"
	}
	done, err := c.ExecKw(ctx, fun, args, c.OwnKeywords())
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(done) {
		return ret.As(states.False, "Unable to set debconf selections from file.")
	}
	return ret.As(states.True, "Debconf selections were set.")
}

func set(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Result = states.True
	current, err := c.Exec(ctx, "debconf.show", c.Value("name"))
	if err != nil {
		return nil, err
	}
	known, _ := current.([]any)
	data, ok := c.Low.Ordered("data").(*pyobj.Dict)
	if !ok {
		return nil, modules.NoAttribute(c.Value("data"), "items")
	}
	for k, v := range data.All() {
		key := pyobj.Str(k)
		kind, value, err := answer(pyobj.Plain(v))
		if err != nil {
			return nil, err
		}
		if has(known, key, kind, value) {
			if ret.Comment == "" {
				ret.Comment = "Unchanged answers: "
			}
			ret.Comment += key + " "
			continue
		}
		if c.Test() {
			ret.Result, ret.Changes[key] = states.None, "New value: "+pytext.Str(value)
			continue
		}
		done, err := c.Exec(ctx, "debconf.set", c.Value("name"), key, kind, value)
		switch {
		case err != nil:
			return nil, err
		case !pytext.Truth(done):
			ret.Result, ret.Comment, ret.Changes[key] = states.False, "Some settings failed to be applied.", "Failed to set!"
		case kind == "password":
			ret.Changes[key] = "(password hidden)"
		default:
			ret.Changes[key] = pytext.Str(value)
		}
	}
	if !ret.Changed() {
		ret.Comment = "All specified answers are already set"
	}
	return ret, nil
}

// answer splits an answer of debconf into its type and its value.
func answer(v any) (kind, value any, err error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, nil, &modules.TypeError{Msg: "'" + modules.TypeName(v) + "' object is not subscriptable"}
	}
	for _, key := range [...]string{"type", "value"} {
		if _, ok := m[key]; !ok {
			return nil, nil, &modules.PythonError{Type: "KeyError", Msg: "'" + key + "'"}
		}
	}
	kind, value = m["type"], m["value"]
	if kind == "boolean" {
		value = "false"
		if pytext.Truth(m["value"]) {
			value = "true"
		}
	}
	return kind, value, nil
}

// has reports whether the answer is known already.
func has(known []any, key string, kind, value any) bool {
	for _, x := range known {
		if q, ok := x.([]any); ok && len(q) == 3 && q[0] == key && q[1] == kind && q[2] == pytext.Str(value) {
			return true
		}
	}
	return false
}
