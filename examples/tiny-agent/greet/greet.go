// Package greet is an execution module from outside of brine.
package greet

import (
	"context"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

// Module is "greet".
var Module = &modules.Module{Name: "greet", Doc: "Greetings.", Funcs: []modules.Def{
	{Name: "hello", Doc: "Greet somebody.", Example: "salt '*' greet.hello Ada",
		Params: []modules.Param{{Name: "name", Type: modules.String, Default: "world"}}, Run: hello},
}}

func hello(_ context.Context, c *modules.Call) (any, error) {
	return "Hello " + c.Str("name") + " from " + c.ID, nil
}
