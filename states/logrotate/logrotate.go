// Package logrotate is Salt's state module "logrotate": the configuration of logrotate(8) (salt/states/logrotate.py).
package logrotate

import (
	"context"
	"errors"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "logrotate".
var Module = &states.Module{Name: "logrotate", Doc: "The configuration of logrotate.", Funcs: []states.Def{
	{Name: "set", Python: "set_", Doc: setDoc, Params: []modules.Param{{Name: "name"}, {Name: "key"}, {Name: "value"}, {Name: "setting", Optional: true},
		{Name: "conf_file", Default: "/etc/logrotate.conf"}}, Run: set},
}}

const setDoc = `Have a directive set, in the file or in a block of it.

key
    the directive, or the log file whose block it is
value
    the value, or a directive of the block
setting
    the value of the directive of the block; one that is false removes the directive
conf_file
    the file`

// number returns a value as an integer if it reads as one, and unchanged otherwise.
func number(v any) any {
	if n, err := modules.ToInt(pytext.Str(v)); err == nil {
		return n
	}
	return v
}

func set(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	kw := map[string]any{"key": c.Value("key"), "conf_file": c.Value("conf_file")}
	what, wanted := "command '"+pytext.Str(c.Value("key"))+"'", number(c.Value("value"))
	block := c.Value("setting") != nil
	if block {
		kw["value"] = c.Value("value")
		what = "block '" + pytext.Str(c.Value("key")) + "' command '" + pytext.Str(c.Value("value")) + "'"
		wanted = number(c.Value("setting"))
	}
	current, err := c.ExecKw(ctx, "logrotate.get", nil, kw)
	var python *modules.PythonError
	if errors.As(err, &python) && (python.Type == "AttributeError" || python.Type == "KeyError") {
		current, err = false, nil
	}
	if err != nil {
		return nil, err
	}
	capital := string(what[0]-'a'+'A') + what[1:]
	shown := pytext.Str(wanted)
	if pyobj.Equal(pyobj.From(current), pyobj.From(wanted)) {
		return ret.As(states.True, capital+" already has value: "+shown)
	}
	ret.Changes["old"], ret.Changes["new"] = current, wanted
	if c.Test() {
		return ret.As(states.None, capital+" will be set to value: "+shown)
	}
	if block {
		kw["setting"] = wanted
	} else {
		kw["value"] = wanted
	}
	done, err := c.ExecKw(ctx, "logrotate.set", nil, kw)
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(done) {
		return ret.As(states.False, "Unable to set "+what+" value: "+shown)
	}
	return ret.As(states.True, "Set "+what+" value: "+shown)
}
