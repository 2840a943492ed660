// Package stateconf is Salt's state module "stateconf": states that only hold arguments for the renderer of that name.
package stateconf

import (
	"context"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "stateconf".
var Module = &states.Module{Name: "stateconf", Doc: "States that hold arguments for others.", Funcs: []states.Def{
	{Name: "context", Python: "_no_op", Doc: doc, Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: nothing},
	{Name: "set", Python: "_no_op", Doc: doc, Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: nothing},
}}

const doc = `Do nothing; the arguments are there for other states.

name
    the state's name`

func nothing(_ context.Context, c *states.Call) (*states.Result, error) {
	return c.Result().As(states.True, "")
}
