// Package local is Salt's returner "local": it writes returns to the minion's log. Salt's source:
// salt/returners/local.py.
package local

import (
	"context"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/returners"
)

func init() { returners.Register(Module) }

// Module returns the returner "local". Salt's prints to standard output; a minion has none, so this one writes to the
// log.
func Module() *modules.Module {
	return &modules.Module{Name: "local", Doc: "Show returns in the minion's log.", Funcs: []modules.Def{
		returners.Def("event_return", "Show an event.", show("event"), "event"),
		returners.Def("returner", "Show a return.", show("ret"), "ret"),
	}}
}

func show(param string) modules.Func {
	return func(_ context.Context, c *modules.Call) (any, error) {
		c.Logger().Info(pytext.Repr(c.Value(param)))
		return nil, nil
	}
}
