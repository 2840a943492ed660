// Package quota is Salt's state module "quota": whether file systems count what users have (salt/states/quota.py).
package quota

import (
	"context"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "quota".
var Module = &states.Module{
	Name: "quota", Doc: "Whether file systems count what users have.", Needs: "quota.report", Otherwise: "quota module could not be loaded",
	Funcs: []states.Def{{Name: "mode", Doc: modeDoc, Params: []modules.Param{{Name: "name"}, {Name: "mode"}, {Name: "quotatype"}}, Run: mode}},
}

const modeDoc = `Have quotas on or off for a file system.

name
    the mount point
mode
    True or False
quotatype
    user or group`

func mode(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	name, fun := c.Str("name"), "off"
	if c.Value("mode") == true {
		fun = "on"
	}
	v, err := c.Exec(ctx, "quota.get_mode", c.Value("name"))
	if err != nil {
		return nil, err
	}
	for _, key := range [...]string{name, c.Str("quotatype")} {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, &modules.TypeError{Msg: "'" + modules.TypeName(v) + "' object is not subscriptable"}
		}
		if v, ok = m[key]; !ok {
			return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(key)}
		}
	}
	switch {
	case v == fun:
		return ret.As(states.True, "Quota for "+name+" already set to "+fun)
	case c.Test():
		return ret.As(states.None, "Quota for "+name+" needs to be set to "+fun)
	}
	done, err := c.Exec(ctx, "quota."+fun, c.Value("name"))
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(done) {
		return ret.As(states.False, "Failed to set quota for "+name+" to "+fun)
	}
	ret.Changes["quota"] = c.Value("name")
	return ret.As(states.True, "Set quota for "+name+" to "+fun)
}
