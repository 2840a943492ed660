// Package state is Salt's execution module "state": the door to the state system (package states). Salt's source is
// salt/modules/state.py.
package state

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

// state.orchestrate is absent: orchestration runs on a master, through salt-run.
// state.pkg differs: links of the archive that lead out of it are not followed, and devices are an error.
// state.graph, state.graph_highstate are absent: they draw the graph by which Salt 3008 orders states; states have the order of 3007 here, which has none.
// state.event is absent: salt-run state.event shows a master's events, and a job that never ends has no place in a minion.

//go:embed docs.txt.gz
var docs string

// Module is "state".
var Module = &modules.Module{Name: "state", Doc: "Apply states, and look at what would be applied.", Docs: &docs, Funcs: []modules.Def{
	{Name: "apply", Python: "apply_",
		Params: []modules.Param{{Name: "mods", Optional: true}}, Kwargs: "kwargs", Out: highstateOut, Run: apply},
	{Name: "check_request",
		Params: []modules.Param{{Name: "name", Optional: true}}, Out: highstateOut, Run: checkRequest},
	{Name: "clear_cache", Run: clearCache},
	{Name: "clear_request", Params: []modules.Param{{Name: "name", Optional: true}}, Run: clearRequest},
	{Name: "disable", Params: []modules.Param{{Name: "states"}}, Run: disable},
	{Name: "enable", Params: []modules.Param{{Name: "states"}}, Run: enable},
	{Name: "get_pauses", Params: []modules.Param{{Name: "jid", Optional: true}}, Run: getPauses},
	{Name: "high",
		Params: []modules.Param{{Name: "data"}, testParam, queueParam}, Kwargs: "kwargs", Ordered: true, Run: high},
	{Name: "highstate",
		Params: []modules.Param{testParam, queueParam, eventsParam}, Kwargs: "kwargs", Out: highstateOut, Run: highstate},
	{Name: "id_exists",
		Params: []modules.Param{{Name: "ids"}, modsParam, testParam, queueParam}, Kwargs: "kwargs", Run: idExists},
	{Name: "list_disabled", Run: listDisabled},
	{Name: "low", Params: []modules.Param{{Name: "data"}, queueParam}, Kwargs: "kwargs", Ordered: true, Run: low},
	{Name: "pause",
		Params: []modules.Param{{Name: "jid"}, {Name: "state_id", Optional: true}, {Name: "duration", Optional: true}}, Run: pause},
	{Name: "pkg",
		Params: []modules.Param{{Name: "pkg_path"}, {Name: "pkg_sum"}, {Name: "hash_type"}, testParam}, Kwargs: "kwargs", Out: highstateOut, Run: pkg},
	{Name: "request",
		Params: []modules.Param{{Name: "mods", Optional: true}}, Kwargs: "kwargs", Out: highstateOut, Run: request},
	{Name: "resume", Params: []modules.Param{{Name: "jid"}, {Name: "state_id", Optional: true}}, Run: resume},
	{Name: "run_request",
		Params: []modules.Param{{Name: "name", Default: "default"}}, Kwargs: "kwargs", Out: highstateOut, Run: runRequest},
	{Name: "running", Params: []modules.Param{{Name: "concurrent", Default: false}}, Run: running},
	{Name: "show_highstate", Params: []modules.Param{queueParam}, Kwargs: "kwargs", Run: showHighstate},
	{Name: "show_low_sls",
		Params: []modules.Param{modsParam, testParam, queueParam}, Kwargs: "kwargs", Run: showLowSLS},
	{Name: "show_lowstate", Params: []modules.Param{queueParam}, Kwargs: "kwargs", Run: showLowstate},
	{Name: "show_sls", Params: []modules.Param{modsParam, testParam, queueParam}, Kwargs: "kwargs", Run: showSLS},
	{Name: "show_state_usage", Params: []modules.Param{queueParam}, Kwargs: "kwargs", Run: showUsage},
	{Name: "show_states", Params: []modules.Param{queueParam}, Kwargs: "kwargs", Run: showStates},
	{Name: "show_top", Params: []modules.Param{queueParam}, Kwargs: "kwargs", Run: showTop},
	{Name: "single",
		Params: []modules.Param{{Name: "fun"}, {Name: "name"}, testParam, queueParam}, Kwargs: "kwargs", Out: highstateOut, Ordered: true, Run: single},
	{Name: "sls", Params: []modules.Param{modsParam, testParam, {Name: "exclude", Optional: true}, queueParam,
		{Name: "sync_mods", Optional: true}, eventsParam}, Kwargs: "kwargs", Out: highstateOut, Run: sls},
	{Name: "sls_exists", Params: []modules.Param{modsParam, testParam, queueParam}, Kwargs: "kwargs", Run: slsExists},
	{Name: "sls_id",
		Params: []modules.Param{{Name: "id_"}, modsParam, testParam, queueParam, eventsParam}, Kwargs: "kwargs", Out: highstateOut, Run: slsID},
	{Name: "soft_kill", Params: []modules.Param{{Name: "jid"}, {Name: "state_id", Optional: true}}, Run: softKill},
	{Name: "template",
		Params: []modules.Param{{Name: "tem"}, queueParam}, Kwargs: "kwargs", Out: highstateOut, Run: template},
	{Name: "template_str",
		Params: []modules.Param{{Name: "tem"}, queueParam}, Kwargs: "kwargs", Out: highstateOut, Run: templateStr},
	{Name: "test", Args: "args", Kwargs: "kwargs", Out: highstateOut, Run: test},
	{Name: "top",
		Params: []modules.Param{{Name: "topfn"}, testParam, queueParam}, Kwargs: "kwargs", Out: highstateOut, Run: top},
}}

const highstateOut = "highstate"

var (
	testParam   = modules.Param{Name: "test", Optional: true}
	queueParam  = modules.Param{Name: "queue", Optional: true}
	eventsParam = modules.Param{Name: "state_events", Optional: true}
	modsParam   = modules.Param{Name: "mods"}
)
