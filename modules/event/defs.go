package event

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "event": firing events on the minion's and on the master's event bus.
var Module = &modules.Module{Name: "event", Doc: "Firing events on the minion's and on the master's event bus.", Funcs: []modules.Def{
	{Name: "fire", Doc: `Fire an event on the minion's own event bus. The answer is False if the minion has none.

data
    A map.
tag
    The event's tag.`,
		Example: `salt '*' event.fire '{"data": "my event data"}' 'tag'`, Params: []modules.Param{{Name: "data"}, {Name: "tag"}}, Run: fire},
	{Name: "fire_master", Doc: `Send an event to the master. The answer tells whether the master has it.

data
    What listeners find in the event.
tag
    The event's tag.
preload
    Further fields of the request.`,
		Example: `salt '*' event.fire_master '{"data": "my event data"}' 'tag'`, Params: []modules.Param{{Name: "data"}, {Name: "tag"}, {Name: "preload", Optional: true}}, Run: fireMaster},
	{Name: "send", Doc: `Send an event to the master. The answer tells whether the master has it. A minion without master fires it on its own bus.

tag
    The event's tag, with slashes between its parts.
data
    A map with what listeners find in the event. Further keyword arguments are added to it.
preload
    Further fields of the request.
with_env, with_grains, with_pillar
    Add the environment variables, the grains or the pillar: all of them, or those that a list names.
with_env_opts
    Add the configured saltenv and pillarenv.`,
		Example: `salt '*' event.send myco/mytag foo=Foo bar=Bar
salt '*' event.send myco/mytag '{foo: Foo, bar: Bar}' with_grains='[os, host]'`, Params: []modules.Param{
			{Name: "tag"}, {Name: "data", Optional: true}, {Name: "preload", Optional: true},
			{Name: "with_env", Default: false, Type: modules.Bool},
			{Name: "with_grains", Default: false, Type: modules.Bool},
			{Name: "with_pillar", Default: false, Type: modules.Bool},
			{Name: "with_env_opts", Default: false, Type: modules.Bool},
		}, Kwargs: "kwargs", Run: send},
}}
