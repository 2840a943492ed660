// Package environ is Salt's state module "environ": the environment of the minion's processes (salt/states/environ.py).
package environ

import (
	"context"
	"maps"
	"slices"

	"github.com/brine-salt/brine/internal/jobenv"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "environ".
var Module = &states.Module{Name: "environ", Doc: "The environment of the minion's processes.", Funcs: []states.Def{
	{Name: "setenv", Doc: setenvDoc, Params: []modules.Param{{Name: "name"}, {Name: "value"}, {Name: "false_unsets", Default: false},
		{Name: "clear_all", Default: false}, {Name: "update_minion", Default: false}, {Name: "permanent", Default: false}}, Run: setenv},
}}

const setenvDoc = `Set environment variables for the rest of the state run.

name
    the variable, or any name if value is a dict
value
    the value, False to empty or remove the variable, or a dict of variables
false_unsets
    let False remove a variable
clear_all
    remove all other variables
update_minion
    tell the minion to set them for later jobs as well
permanent
    keep them in the registry, on Windows`

func setenv(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Result = states.True
	wanted := map[string]any{}
	switch v := c.Value("value").(type) {
	case string:
		wanted[c.Name()] = v
	case map[string]any:
		wanted = v
	default:
		if v != false {
			return ret.As(states.False, "Environ value must be string, dict or False")
		}
		wanted[c.Name()] = false
	}
	unset := any("")
	if c.Value("false_unsets") == true {
		unset = nil
	}
	now := jobenv.Map(c.Context().Environ())
	if c.Value("clear_all") == true {
		for key := range now {
			if _, ok := wanted[key]; !ok {
				ret.Changes[key] = unset
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		have, set := now[key]
		switch val := wanted[key]; {
		case val == false:
			switch {
			case !set:
				if unset != nil {
					ret.Changes[key] = ""
				}
			case unset == nil:
				ret.Changes[key] = nil
			case have != "":
				ret.Changes[key] = ""
			}
		case any(have) != val:
			ret.Changes[key] = val
		}
	}
	switch {
	case c.Test() && ret.Changed():
		return ret.As(states.True, "Environ values will be changed")
	case c.Test():
		return ret.As(states.True, "Environ values are already set with the correct values")
	case !ret.Changed():
		return ret.As(states.True, "Environ values were already set with the correct values")
	}
	done, err := c.Exec(ctx, "environ.setenv", wanted, c.Value("false_unsets"), c.Value("clear_all"), c.Value("update_minion"), c.Value("permanent"))
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(done) {
		return ret.As(states.False, "Failed to set environ variables")
	}
	ret.Extra = map[string]any{"changes": done}
	return ret.As(states.True, "Environ values were set")
}
