// Package state is Salt's execution module "state": the door to the state system (package states). Salt's source is
// salt/modules/state.py.
package state

import (
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

// state.orchestrate is absent: orchestration runs on a master, through salt-run.
// state.pkg differs: links of the archive that lead out of it are not followed, and devices are an error.
// state.graph, state.graph_highstate are absent: they draw the graph by which Salt 3008 orders states; states have the order of 3007 here, which has none.
// state.event is absent: salt-run state.event shows a master's events, and a job that never ends has no place in a minion.

// Module is "state".
var Module = &modules.Module{Name: "state", Doc: "Apply states, and look at what would be applied.", Funcs: []modules.Def{
	{Name: "apply", Python: "apply_", Doc: `Apply the states of the top file, or those of the given SLS files: highstate or sls.

mods
    SLS files, a list or separated by commas; none is the top file
` + common,
		Example: `salt '*' state.apply
salt '*' state.apply web,db test=True`, Params: []modules.Param{{Name: "mods", Optional: true}}, Kwargs: "kwargs", Out: highstateOut, Run: apply},
	{Name: "check_request", Doc: `Show what was requested.

name
    one request only`,
		Example: "salt '*' state.check_request", Params: []modules.Param{{Name: "name", Optional: true}}, Out: highstateOut, Run: checkRequest},
	{Name: "clear_cache", Doc: "Forget the high data of earlier runs.", Example: "salt '*' state.clear_cache", Run: clearCache},
	{Name: "clear_request", Doc: `Forget what was requested.

name
    one request only`,
		Example: "salt '*' state.clear_request", Params: []modules.Param{{Name: "name", Optional: true}}, Run: clearRequest},
	{Name: "disable", Doc: `Keep states from being applied until they are enabled again.

states
    SLS files or state functions, a list or separated by commas; highstate is the top file`,
		Example: "salt '*' state.disable highstate,web", Params: []modules.Param{{Name: "states"}}, Run: disable},
	{Name: "enable", Doc: `Allow states again that were disabled.

states
    SLS files or state functions, a list or separated by commas`,
		Example: "salt '*' state.enable web", Params: []modules.Param{{Name: "states"}}, Run: enable},
	{Name: "get_pauses", Doc: `Show which state runs are paused.

jid
    one job, or a list of them`,
		Example: "salt '*' state.get_pauses", Params: []modules.Param{{Name: "jid", Optional: true}}, Run: getPauses},
	{Name: "high", Doc: `Apply high data.

data
    what an SLS file renders to
` + common,
		Example: `salt '*' state.high '{"vim": {"pkg": ["installed"]}}'`, Params: []modules.Param{{Name: "data"}, testParam, queueParam}, Kwargs: "kwargs", Ordered: true, Run: high},
	{Name: "highstate", Doc: `Apply the states that the top file assigns to this minion.

exclude
    SLS files, or dicts with sls or id, to leave out
whitelist
    SLS files to apply and no others
cache
    apply the high data of the last run instead of new files
terse
    return only what failed or changed
mock
    run everything but the states themselves
state_events
    send an event for each state
` + common,
		Example: `salt '*' state.highstate
salt '*' state.highstate exclude=web pillar='{"port": 80}'`, Params: []modules.Param{testParam, queueParam, eventsParam}, Kwargs: "kwargs", Out: highstateOut, Run: highstate},
	{Name: "id_exists", Doc: `Tell whether SLS files have all of the given ids.

ids
    ids, a list or separated by commas
mods
    SLS files, a list or separated by commas`,
		Example: "salt '*' state.id_exists nginx,site web", Params: []modules.Param{{Name: "ids"}, modsParam, testParam, queueParam}, Kwargs: "kwargs", Run: idExists},
	{Name: "list_disabled", Doc: "List what state.disable has disabled.", Example: "salt '*' state.list_disabled", Run: listDisabled},
	{Name: "low", Doc: `Apply one chunk of low data.

data
    the chunk: state, fun, name and arguments`,
		Example: `salt '*' state.low '{"state": "pkg", "fun": "installed", "name": "vim", "__id__": "vim"}'`, Params: []modules.Param{{Name: "data"}, queueParam}, Kwargs: "kwargs", Ordered: true, Run: low},
	{Name: "pause", Doc: `Make a state run wait before a state.

jid
    the job that runs the states
state_id
    the id of the state, or none for the next one
duration
    seconds after which it goes on by itself`,
		Example: "salt '*' state.pause 20171130110407769519 nginx 60", Params: []modules.Param{{Name: "jid"}, {Name: "state_id", Optional: true}, {Name: "duration", Optional: true}}, Run: pause},
	{Name: "pkg", Doc: `Run the states of a packed run, as salt-ssh makes them: an archive (tar, gzip) with lowstate.json, and with pillar.json,
roster_grains.json and a directory of files for each environment as needed. The answer is an empty map if there is no such
archive, it has another hash, or it has names that lead out of it. The files of the archive are used where file_client is local.

pkg_path
    the archive, on this host
pkg_sum, hash_type
    its hash, and of which kind that is
test
    change nothing, only tell what would be done`,
		Example: "salt '*' state.pkg /tmp/salt_state.tgz 760a9353810e36f6d81416366fc426dc md5", Params: []modules.Param{{Name: "pkg_path"}, {Name: "pkg_sum"}, {Name: "hash_type"}, testParam}, Kwargs: "kwargs", Out: highstateOut, Run: pkg},
	{Name: "request", Doc: `Ask the administrator of this host to apply states: they run in test mode, and state.run_request applies them.

mods
    SLS files, a list or separated by commas; none is the top file
name
    name of the request`,
		Example: "salt '*' state.request web", Params: []modules.Param{{Name: "mods", Optional: true}}, Kwargs: "kwargs", Out: highstateOut, Run: request},
	{Name: "resume", Doc: `Let a paused state run go on.

jid
    the job that runs the states
state_id
    the id of the paused state, or none for all`,
		Example: "salt '*' state.resume 20171130110407769519", Params: []modules.Param{{Name: "jid"}, {Name: "state_id", Optional: true}}, Run: resume},
	{Name: "run_request", Doc: `Apply what was requested.

name
    the request`,
		Example: "salt-call state.run_request", Params: []modules.Param{{Name: "name", Default: "default"}}, Kwargs: "kwargs", Out: highstateOut, Run: runRequest},
	{Name: "running", Doc: `Tell which state runs are in progress.

concurrent
    answer as if there were none`,
		Example: "salt '*' state.running", Params: []modules.Param{{Name: "concurrent", Default: false}}, Run: running},
	{Name: "show_highstate", Doc: `Show the high data that the top file gives this minion.

pillar
    pillar values to compile with`,
		Example: "salt '*' state.show_highstate", Params: []modules.Param{queueParam}, Kwargs: "kwargs", Run: showHighstate},
	{Name: "show_low_sls", Doc: `Show the low data of SLS files.

mods
    SLS files, a list or separated by commas
pillar, saltenv, pillarenv
    what to compile with`,
		Example: "salt '*' state.show_low_sls web", Params: []modules.Param{modsParam, testParam, queueParam}, Kwargs: "kwargs", Run: showLowSLS},
	{Name: "show_lowstate", Doc: "Show the low data that the top file gives this minion, in the order in which it would run.", Example: "salt '*' state.show_lowstate", Params: []modules.Param{queueParam}, Kwargs: "kwargs", Run: showLowstate},
	{Name: "show_sls", Doc: `Show the high data of SLS files.

mods
    SLS files, a list or separated by commas
pillar, saltenv, pillarenv
    what to compile with`,
		Example: "salt '*' state.show_sls web,db", Params: []modules.Param{modsParam, testParam, queueParam}, Kwargs: "kwargs", Run: showSLS},
	{Name: "show_state_usage", Doc: "Count which SLS files the top file gives this minion, and which not.", Example: "salt '*' state.show_state_usage", Params: []modules.Param{queueParam}, Kwargs: "kwargs", Run: showUsage},
	{Name: "show_states", Doc: "List the SLS files that a highstate would apply.", Example: "salt '*' state.show_states", Params: []modules.Param{queueParam}, Kwargs: "kwargs", Run: showStates},
	{Name: "show_top", Doc: "Show which SLS files of which environment the top file gives this minion.", Example: "salt '*' state.show_top", Params: []modules.Param{queueParam}, Kwargs: "kwargs", Run: showTop},
	{Name: "single", Doc: `Apply one state that is given here.

fun
    the state function
name
    its name argument
` + common + `
Further arguments are those of the state.`,
		Example: "salt '*' state.single pkg.installed vim", Params: []modules.Param{{Name: "fun"}, {Name: "name"}, testParam, queueParam}, Kwargs: "kwargs", Out: highstateOut, Ordered: true, Run: single},
	{Name: "sls", Doc: `Apply SLS files.

mods
    SLS files, a list or separated by commas
exclude
    SLS files, or dicts with sls or id, to leave out
sync_mods
    kinds of custom modules for which saltutil.sync_… is called first, a list or separated by commas, or all
state_events
    send an event for each state
mock
    run everything but the states themselves
` + common,
		Example: "salt '*' state.sls web,db", Params: []modules.Param{modsParam, testParam, {Name: "exclude", Optional: true}, queueParam,
			{Name: "sync_mods", Optional: true}, eventsParam}, Kwargs: "kwargs", Out: highstateOut, Run: sls},
	{Name: "sls_exists", Doc: `Tell whether SLS files are there and can be rendered.

mods
    SLS files, a list or separated by commas`,
		Example: "salt '*' state.sls_exists web,db", Params: []modules.Param{modsParam, testParam, queueParam}, Kwargs: "kwargs", Run: slsExists},
	{Name: "sls_id", Doc: `Apply one state of SLS files, with what it requires.

id_
    the id of the state
mods
    SLS files in which it and its requisites are
state_events
    send an event for each state
` + common,
		Example: "salt '*' state.sls_id nginx web", Params: []modules.Param{{Name: "id_"}, modsParam, testParam, queueParam, eventsParam}, Kwargs: "kwargs", Out: highstateOut, Run: slsID},
	{Name: "soft_kill", Doc: `End a state run before a state.

jid
    the job that runs the states
state_id
    the id of the state, or none for the next one`,
		Example: "salt '*' state.soft_kill 20171130110407769519 nginx", Params: []modules.Param{{Name: "jid"}, {Name: "state_id", Optional: true}}, Run: softKill},
	{Name: "template", Doc: `Apply an SLS file of this host.

tem
    path of the file; .sls is added if it is missing`,
		Example: "salt '*' state.template /srv/local/web.sls", Params: []modules.Param{{Name: "tem"}, queueParam}, Kwargs: "kwargs", Out: highstateOut, Run: template},
	{Name: "template_str", Doc: `Apply the text of an SLS file.

tem
    the text

Other keyword arguments, pillar among them, are accepted and have no effect, as in stock.`,
		Example: `salt '*' state.template_str '{"vim": {"pkg": ["installed"]}}'`, Params: []modules.Param{{Name: "tem"}, queueParam}, Kwargs: "kwargs", Out: highstateOut, Run: templateStr},
	{Name: "test", Doc: `Tell what state.apply would change.

The arguments are those of state.apply.`,
		Example: "salt '*' state.test web", Args: "args", Kwargs: "kwargs", Out: highstateOut, Run: test},
	{Name: "top", Doc: `Apply another top file.

topfn
    the top file on the file server
` + common,
		Example: "salt '*' state.top staging_top.sls", Params: []modules.Param{{Name: "topfn"}, testParam, queueParam}, Kwargs: "kwargs", Out: highstateOut, Run: top},
}}

const highstateOut = "highstate"

var (
	testParam   = modules.Param{Name: "test", Optional: true}
	queueParam  = modules.Param{Name: "queue", Optional: true}
	eventsParam = modules.Param{Name: "state_events", Optional: true}
	modsParam   = modules.Param{Name: "mods"}
)

// What most functions take besides their own arguments.
const common = `
test
    only tell what would be changed
pillar
    pillar values for this run, over those of the master
saltenv, pillarenv
    the environments of states and pillar
queue
    wait for another state run to end instead of failing; a number lets that many wait
concurrent
    run beside other state runs; states that touch the same things get in each other's way
`
