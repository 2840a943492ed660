//go:build unix

package file

import (
	"context"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

var existsDef = states.Def{Name: "exists", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: exists}

var missingDef = states.Def{Name: "missing", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: missing}

func exists(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := on(ctx, c)
	name, ret := j.begin()
	switch {
	case name == "":
		return fail(ret, "Must provide name to file.exists")
	case !j.exists(name):
		return fail(ret, "Specified path "+name+" does not exist")
	}
	return ret.As(states.True, "Path "+name+" exists")
}

func missing(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := on(ctx, c)
	name, ret := j.begin()
	switch {
	case name == "":
		return fail(ret, "Must provide name to file.missing")
	case j.exists(name):
		return fail(ret, "Specified path "+name+" exists")
	}
	return ret.As(states.True, "Path "+name+" is missing")
}
