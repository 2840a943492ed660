package publish

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

const common = `
tgt, tgt_type
    Which minions, as the salt command takes them.
fun
    The function. Those of publish itself are refused.
arg
    Its arguments: a list, or text with one of them.
returner
    A returner that the minions are to use.
timeout
    How many seconds to wait for them.
`

// Module is Salt's "publish": commands that a minion sends to other minions.
var Module = &modules.Module{Name: "publish", Doc: "Commands that a minion sends to other minions.", Funcs: []modules.Def{
	{Name: "full_data", Doc: `Run a function on other minions and answer with everything that they return. The master's option peer must allow it.
` + common,
		Example: "salt system.example.com publish.full_data '*' cmd.run 'ls -la /tmp'", Params: []modules.Param{{Name: "tgt"}, {Name: "fun"}, {Name: "arg", Optional: true}, {Name: "tgt_type", Default: "glob"},
			{Name: "returner", Default: ""}, {Name: "timeout", Default: int64(5)}}, Run: fullData},
	{Name: "publish", Doc: `Run a function on other minions and answer with their results. The master's option peer must allow it.
` + common + `via_master
    Which of several masters to ask.`,
		Example: "salt system.example.com publish.publish '*' cmd.run 'ls -la /tmp'", Params: []modules.Param{{Name: "tgt"}, {Name: "fun"}, {Name: "arg", Optional: true}, {Name: "tgt_type", Default: "glob"},
			{Name: "returner", Default: ""}, {Name: "timeout", Default: int64(5)}, {Name: "via_master", Optional: true}}, Run: publish},
	{Name: "runner", Doc: "Run a runner on the master and answer with its result. The master's option peer_run must allow it.", Example: "salt system.example.com publish.runner manage.down", Params: []modules.Param{{Name: "fun"}, {Name: "arg", Optional: true}, {Name: "timeout", Default: int64(5)}}, Run: runner},
}}
