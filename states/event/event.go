// Package event is Salt's state module "event": events to the master (salt/states/event.py).
package event

import (
	"context"
	"maps"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "event".
var Module = &states.Module{Name: "event", Doc: "Events to the master.", Funcs: []states.Def{
	{Name: "fire_master", Python: "send", Doc: sendDoc, Params: sendParams[:], Kwargs: "kwargs", Run: send},
	{Name: "mod_watch", Python: "send", Doc: sendDoc, Params: sendParams[:], Kwargs: "kwargs", Run: send},
	{Name: "send", Doc: sendDoc, Params: sendParams[:], Kwargs: "kwargs", Run: send},
	{Name: "wait", Doc: waitDoc, Params: []modules.Param{{Name: "name"}, {Name: "sfun", Optional: true}, {Name: "data", Optional: true}}, Run: wait},
}}

var sendParams = [...]modules.Param{{Name: "name"}, {Name: "data", Optional: true}, {Name: "preload", Optional: true}, {Name: "with_env", Default: false},
	{Name: "with_grains", Default: false}, {Name: "with_pillar", Default: false}, {Name: "show_changed", Default: true}}

const (
	sendDoc = `Send an event to the master.

name
    the event's tag
data
    its data
preload
    what to put beside the data
with_env, with_grains, with_pillar
    send environment, grains or pillar as well, all or those in a list
show_changed
    show tag and data as changes`
	waitDoc = `Send an event when a watched state changes.

name
    the event's tag
data
    its data`
)

func send(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	if c.Bool("show_changed") {
		ret.Changes["tag"], ret.Changes["data"] = c.Value("name"), c.Value("data")
	}
	if c.Test() {
		return ret.As(states.None, "Event would have been fired")
	}
	kw := maps.Clone(c.Keywords)
	delete(kw, "__reqs__")
	for _, name := range [...]string{"data", "preload", "with_env", "with_grains", "with_pillar"} {
		kw[name] = c.Value(name)
	}
	sent, err := c.ExecKw(ctx, "event.send", []any{c.Value("name")}, kw)
	if err != nil {
		return nil, err
	}
	return ret.As(states.OutcomeOf(pytext.Truth(sent)), "Event fired")
}

func wait(_ context.Context, c *states.Call) (*states.Result, error) {
	return c.Result().As(states.True, "")
}
