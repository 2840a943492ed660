package saltutil

import (
	"context"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

// Module is Salt's "saltutil": managing the minion and its jobs.
var Module = &modules.Module{Name: "saltutil", Doc: "Managing the minion and its jobs.", Funcs: []modules.Def{
	{Name: "clear_cache", Doc: "Remove the files in the minion's cache directory, apart from what the running minion needs.", Example: "salt '*' saltutil.clear_cache", Run: clearCache},
	{Name: "clear_job_cache", Doc: `Remove the returns that the minion keeps of finished jobs.

hours
    Keep those that are not older.`,
		Example: "salt '*' saltutil.clear_job_cache hours=12", Params: []modules.Param{{Name: "hours", Default: int64(24), Type: modules.Int}}, Run: clearJobCache},
	{Name: "cmd", Doc: `Run a function on minions of the master, which must run on the host of this minion. The answer has for each minion what it
returned, as "ret", and how.

` + jobDoc + `batch
    How many minions work at a time, a number or a percentage; failhard ends with the first that fails.
subset
    How many of the minions that have the function to run it on, at random.`,
		Example: "salt master_minion saltutil.cmd 'web*' test.ping", Params: jobParams, Kwargs: "kwargs", Run: cmd},
	{Name: "cmd_iter", Doc: `As saltutil.cmd, and fire an event of the job's progress for every answer as it comes.

` + jobDoc,
		Example: "salt master_minion saltutil.cmd_iter 'web*' test.ping", Params: jobParams, Kwargs: "kwargs", Run: cmdIter},
	{Name: "find_cached_job", Doc: "Return what the minion keeps of a finished job; it must have the option cache_jobs.", Example: "salt '*' saltutil.find_cached_job JID", Params: []modules.Param{{Name: "jid"}}, Run: findCachedJob},
	{Name: "find_job", Doc: "Return a job if it is running or waiting on the minion, else an empty map.", Example: "salt '*' saltutil.find_job JID", Params: []modules.Param{{Name: "jid"}}, Run: findJob},
	{Name: "is_running", Doc: "List the running jobs whose function matches a shell pattern.", Example: "salt '*' saltutil.is_running state.highstate", Params: []modules.Param{{Name: "fun"}}, Run: isRunning},
	{Name: "kill_all_jobs", Doc: "Kill all running jobs with the programs they run. The answer says what was done to each.", Example: "salt '*' saltutil.kill_all_jobs", Run: killAllJobs},
	{Name: "kill_job", Doc: "Kill a running job with the programs it runs. The answer is an empty text if there is no such job.", Example: "salt '*' saltutil.kill_job JID", Params: []modules.Param{{Name: "jid"}}, Run: killJob},
	{Name: "list_extmods", Doc: "List Python code that an earlier minion has brought from the master, by kind.", Example: "salt '*' saltutil.list_extmods", Run: listExtmods},
	{Name: "mmodule", Doc: `Call an execution function of the minion.

saltenv
    Taken for compatibility.
fun
    The function. Further arguments are its own.`,
		Example: "salt '*' saltutil.mmodule base test.ping", Params: []modules.Param{{Name: "saltenv"}, {Name: "fun"}}, Args: "args", Kwargs: "kwargs", Run: mmodule},
	{Name: "pillar_refresh", Python: "refresh_pillar", Doc: `Get the pillar from the master anew. The answer tells whether that was possible.

wait
    Wait no longer than timeout. A salt-call then waits for the running minion as well.
timeout
    The longest time to wait, in seconds.
clean_cache
    Have the master make it even if it keeps one (pillar_cache).`,
		Example: "salt '*' saltutil.pillar_refresh", Params: []modules.Param{
			{Name: "wait", Default: false, Type: modules.Bool}, {Name: "timeout", Default: int64(30), Type: modules.Int},
			{Name: "clean_cache", Default: true, Type: modules.Bool},
		}, Run: refreshPillar},
	{Name: "refresh_beacons", Doc: "Tell the minion's event bus to read the beacons anew. The answer is False if there is no bus.", Example: "salt '*' saltutil.refresh_beacons", Run: refreshBeacons},
	{Name: "refresh_grains", Doc: `Gather the grains anew and get the pillar from the master. The answer tells whether that was possible.

refresh_pillar
    Get the pillar as well.
clean_pillar_cache
    Taken for compatibility.`,
		Example: "salt '*' saltutil.refresh_grains refresh_pillar=False", Kwargs: "kwargs", Run: refreshGrains},
	{Name: "refresh_matchers", Doc: "Fire the event matchers_refresh on the minion's bus. Matchers are part of the program and need no refresh.", Example: "salt '*' saltutil.refresh_matchers", Run: refreshMatchers},
	{Name: "refresh_modules", Doc: `Gather the grains anew and decide again which modules fit this host.

async
    False makes a salt-call wait until the running minion has done so as well.`,
		Example: "salt '*' saltutil.refresh_modules", Kwargs: "kwargs", Run: refreshModules},
	{Name: "refresh_pillar", Doc: `Get the pillar from the master anew. The answer tells whether that was possible.

wait
    Wait no longer than timeout. A salt-call then waits for the running minion as well.
timeout
    The longest time to wait, in seconds.
clean_cache
    Have the master make it even if it keeps one (pillar_cache).`,
		Example: "salt '*' saltutil.refresh_pillar wait=True timeout=60", Params: []modules.Param{
			{Name: "wait", Default: false, Type: modules.Bool}, {Name: "timeout", Default: int64(30), Type: modules.Int},
			{Name: "clean_cache", Default: true, Type: modules.Bool},
		}, Run: refreshPillar},
	{Name: "refresh_resources", Doc: "Fire the event resource_refresh on the minion's bus. The minion itself has no resources to look for.", Example: "salt '*' saltutil.refresh_resources", Run: refreshResources},
	{Name: "regen_keys", Doc: "Remove the minion's keys and restart it, so that it makes new ones. The master must accept them.", Example: "salt '*' saltutil.regen_keys", Run: regenKeys},
	{Name: "revoke_auth", Doc: `Ask the master to remove the minion's key. The answer tells whether it was asked.

preserve_minion_cache
    Have the master keep what it has cached of the minion.`,
		Example: "salt '*' saltutil.revoke_auth", Params: []modules.Param{{Name: "preserve_minion_cache", Default: false, Type: modules.Bool}}, Run: revokeAuth},
	{Name: "runner", Doc: `Run a function of the runners on the master, which must run on the host of this minion.

name
    The function, such as jobs.list_jobs.

arg
    A list of its arguments. Further keyword arguments of this function are keyword arguments of the runner, too.

kwarg
    A map of its keyword arguments.

full_return
    Return what is known of the run: job id, arguments, whether it succeeded.

saltenv
    The environment, for functions that have such an argument.

jid
    The job id of the orchestration that the run is part of.`,
		Example: `salt master_minion saltutil.runner jobs.list_jobs
salt master_minion saltutil.runner test.arg arg="['baz']" kwarg="{'foo': 'bar'}"`, Params: []modules.Param{{Name: "name"}, {Name: "arg", Optional: true}, {Name: "kwarg", Optional: true}, {Name: "full_return", Default: false},
			{Name: "saltenv", Default: "base"}, {Name: "jid", Optional: true}}, Kwargs: "kwargs", Run: runner},
	{Name: "running", Doc: "List the jobs that the minion runs, apart from the one that asks.", Example: "salt '*' saltutil.running", Run: running},
	{Name: "signal_job", Doc: `Send a signal to the programs of a running job. The answer is an empty text if there is no such job.

jid
    The job.
sig
    The number of the signal.`,
		Example: "salt '*' saltutil.signal_job JID 15", Params: []modules.Param{{Name: "jid"}, {Name: "sig"}}, Run: signalJob},
	{Name: "sync_all", Doc: `Tell of code of all kinds of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + `clean_pillar_cache
    Have the master make the pillar even if it keeps one (pillar_cache).
refresh
    Refresh grains and pillar.`,
		Example: "salt '*' saltutil.sync_all", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
			{Name: "clean_pillar_cache", Default: false, Type: modules.Bool},
		}, Run: syncAll},
	{Name: "sync_beacons", Doc: `Tell of beacons of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_beacons", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: syncBeacons},
	{Name: "sync_clouds", Doc: `Tell of cloud modules of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_clouds", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "clouds") }},
	{Name: "sync_engines", Doc: `Tell of engines of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_engines", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: false, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "engines") }},
	{Name: "sync_executors", Doc: `Tell of executors of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_executors", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "executors") }},
	{Name: "sync_grains", Doc: `Tell of grains of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_grains", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
			{Name: "clean_pillar_cache", Default: false, Type: modules.Bool},
		}, Run: syncGrains},
	{Name: "sync_log_handlers", Doc: `Tell of log handlers of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_log_handlers", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "log_handlers") }},
	{Name: "sync_matchers", Doc: `Tell of matchers of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_matchers", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: false, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "matchers") }},
	{Name: "sync_modules", Doc: `Tell of execution modules of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_modules", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "modules") }},
	{Name: "sync_output", Doc: `Tell of outputters of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_output", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "outputters") }},
	{Name: "sync_outputters", Python: "sync_output", Doc: `Tell of outputters of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_outputters", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "outputters") }},
	{Name: "sync_pillar", Doc: `Tell of external pillars of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_pillar", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
			{Name: "clean_pillar_cache", Default: false, Type: modules.Bool},
		}, Run: syncPillar},
	{Name: "sync_proxymodules", Doc: `Tell of proxy modules of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_proxymodules", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: false, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "proxy") }},
	{Name: "sync_renderers", Doc: `Tell of renderers of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_renderers", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "renderers") }},
	{Name: "sync_resources", Doc: `Tell of kinds of resources of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + `refresh
    Fire the event resource_refresh.`,
		Example: "salt '*' saltutil.sync_resources", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: syncResources},
	{Name: "sync_returners", Doc: `Tell of returners of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_returners", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "returners") }},
	{Name: "sync_sdb", Doc: `Tell of sdb modules of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc,
		Example: "salt '*' saltutil.sync_sdb", Params: []modules.Param{saltenvParam, extmodWhitelistParam, extmodBlacklistParam}, Run: syncSdb},
	{Name: "sync_serializers", Doc: `Tell of serializers of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_serializers", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "serializers") }},
	{Name: "sync_states", Doc: `Tell of state modules of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_states", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "states") }},
	{Name: "sync_thorium", Doc: `Tell of thorium modules of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_thorium", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: false, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "thorium") }},
	{Name: "sync_tops", Doc: `Tell of master tops of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc,
		Example: "salt '*' saltutil.sync_tops", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: syncTops},
	{Name: "sync_utils", Doc: `Tell of utility modules of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_utils", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "utils") }},
	{Name: "sync_wrapper", Doc: `Tell of wrapper modules of the master that this host does not run. No code of a master is run; the owner of
the host installs files in module_dirs and its siblings.

` + saltenvDoc + refreshDoc,
		Example: "salt '*' saltutil.sync_wrapper", Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: syncWrapper},
	{Name: "term_all_jobs", Doc: "Ask all running jobs to end. The answer says what was done to each.", Example: "salt '*' saltutil.term_all_jobs", Run: termAllJobs},
	{Name: "term_job", Doc: "Ask a running job to end. The answer is an empty text if there is no such job.", Example: "salt '*' saltutil.term_job JID", Params: []modules.Param{{Name: "jid"}}, Run: termJob},
	{Name: "update", Doc: "Install a version of the minion, as agent.update.", Example: "salt '*' saltutil.update", Params: []modules.Param{{Name: "version", Optional: true}}, Run: update},
	{Name: "wheel", Doc: `Run a wheel function of the master, which must run on the host of this minion. What is known of the run is returned: job id,
arguments, whether it succeeded, and under "return" what the function gave.

name
    The function, such as key.list_all. Further arguments are its own.`,
		Example: `salt master_minion saltutil.wheel key.accept jerry
salt master_minion saltutil.wheel minions.connected`, Params: []modules.Param{{Name: "name"}}, Args: "args", Kwargs: "kwargs", Run: wheel},
}}

// jobDoc documents the arguments that cmd and cmd_iter share.
const jobDoc = `tgt
    The minions that are meant, and with tgt_type how they are.
fun, arg, kwarg
    The function with its arguments.
timeout
    How many seconds a minion may keep silent; by default the master's timeout.
ret
    Returners to hand the returns to; ret_config and ret_kwargs are theirs.
expect_minions
    Whether minions that do not return are in the answer, too.
`

// jobParams are these arguments.
var jobParams = []modules.Param{{Name: "tgt"}, {Name: "fun"}, {Name: "arg", Default: []any{}}, {Name: "timeout", Optional: true},
	{Name: "tgt_type", Default: "glob"}, {Name: "ret", Default: ""}, {Name: "kwarg", Optional: true}, {Name: "ssh", Default: false}}

// What the functions share: the documentation of parameters, and parameters that may be absent.
const (
	refreshDoc = `refresh
    Refresh what depends on them.
`
	saltenvDoc = `saltenv, extmod_whitelist, extmod_blacklist
    Taken for compatibility.
`
)

var (
	extmodBlacklistParam = modules.Param{Name: "extmod_blacklist", Optional: true}
	extmodWhitelistParam = modules.Param{Name: "extmod_whitelist", Optional: true}
	saltenvParam         = modules.Param{Name: "saltenv", Optional: true}
)
