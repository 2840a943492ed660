package saltutil

import (
	"context"
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "saltutil": managing the minion and its jobs.
var Module = &modules.Module{Name: "saltutil", Doc: "Managing the minion and its jobs.", Docs: &docs, Funcs: []modules.Def{
	{Name: "clear_cache", Run: clearCache},
	{Name: "clear_job_cache",
		Params: []modules.Param{{Name: "hours", Default: int64(24), Type: modules.Int}}, Run: clearJobCache},
	{Name: "cmd", Params: jobParams, Kwargs: "kwargs", Run: cmd},
	{Name: "cmd_iter", Params: jobParams, Kwargs: "kwargs", Run: cmdIter},
	{Name: "find_cached_job", Params: []modules.Param{{Name: "jid"}}, Run: findCachedJob},
	{Name: "find_job", Params: []modules.Param{{Name: "jid"}}, Run: findJob},
	{Name: "is_running", Params: []modules.Param{{Name: "fun"}}, Run: isRunning},
	{Name: "kill_all_jobs", Run: killAllJobs},
	{Name: "kill_job", Params: []modules.Param{{Name: "jid"}}, Run: killJob},
	{Name: "list_extmods", Run: listExtmods},
	{Name: "mmodule",
		Params: []modules.Param{{Name: "saltenv"}, {Name: "fun"}}, Args: "args", Kwargs: "kwargs", Run: mmodule},
	{Name: "pillar_refresh", Python: "refresh_pillar",
		Params: []modules.Param{
			{Name: "wait", Default: false, Type: modules.Bool}, {Name: "timeout", Default: int64(30), Type: modules.Int},
			{Name: "clean_cache", Default: true, Type: modules.Bool},
		}, Run: refreshPillar},
	{Name: "refresh_beacons", Run: refreshBeacons},
	{Name: "refresh_grains", Kwargs: "kwargs", Run: refreshGrains},
	{Name: "refresh_matchers", Run: refreshMatchers},
	{Name: "refresh_modules", Kwargs: "kwargs", Run: refreshModules},
	{Name: "refresh_pillar", Params: []modules.Param{
		{Name: "wait", Default: false, Type: modules.Bool}, {Name: "timeout", Default: int64(30), Type: modules.Int},
		{Name: "clean_cache", Default: true, Type: modules.Bool},
	}, Run: refreshPillar},
	{Name: "refresh_resources", Run: refreshResources},
	{Name: "regen_keys", Run: regenKeys},
	{Name: "revoke_auth",
		Params: []modules.Param{{Name: "preserve_minion_cache", Default: false, Type: modules.Bool}}, Run: revokeAuth},
	{Name: "runner",
		Params: []modules.Param{{Name: "name"}, {Name: "arg", Optional: true}, {Name: "kwarg", Optional: true}, {Name: "full_return", Default: false},
			{Name: "saltenv", Default: "base"}, {Name: "jid", Optional: true}}, Kwargs: "kwargs", Run: runner},
	{Name: "running", Run: running},
	{Name: "signal_job", Params: []modules.Param{{Name: "jid"}, {Name: "sig"}}, Run: signalJob},
	{Name: "sync_all", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		{Name: "clean_pillar_cache", Default: false, Type: modules.Bool},
	}, Run: syncAll},
	{Name: "sync_beacons", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
	}, Run: syncBeacons},
	{Name: "sync_clouds", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "clouds") }},
	{Name: "sync_engines", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: false, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "engines") }},
	{Name: "sync_executors", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "executors") }},
	{Name: "sync_grains", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		{Name: "clean_pillar_cache", Default: false, Type: modules.Bool},
	}, Run: syncGrains},
	{Name: "sync_log_handlers", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "log_handlers") }},
	{Name: "sync_matchers", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: false, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "matchers") }},
	{Name: "sync_modules", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "modules") }},
	{Name: "sync_output", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "outputters") }},
	{Name: "sync_outputters", Python: "sync_output",
		Params: []modules.Param{
			saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "outputters") }},
	{Name: "sync_pillar", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
		{Name: "clean_pillar_cache", Default: false, Type: modules.Bool},
	}, Run: syncPillar},
	{Name: "sync_proxymodules", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: false, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "proxy") }},
	{Name: "sync_renderers", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "renderers") }},
	{Name: "sync_resources", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
	}, Run: syncResources},
	{Name: "sync_returners", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "returners") }},
	{Name: "sync_sdb",
		Params: []modules.Param{saltenvParam, extmodWhitelistParam, extmodBlacklistParam}, Run: syncSdb},
	{Name: "sync_serializers", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "serializers") }},
	{Name: "sync_states", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "states") }},
	{Name: "sync_thorium", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: false, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "thorium") }},
	{Name: "sync_tops", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
	}, Run: syncTops},
	{Name: "sync_utils", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return syncCode(ctx, c, "utils") }},
	{Name: "sync_wrapper", Params: []modules.Param{
		saltenvParam, {Name: "refresh", Default: true, Type: modules.Bool}, extmodWhitelistParam, extmodBlacklistParam,
	}, Run: syncWrapper},
	{Name: "term_all_jobs", Run: termAllJobs},
	{Name: "term_job", Params: []modules.Param{{Name: "jid"}}, Run: termJob},
	{Name: "update", Params: []modules.Param{{Name: "version", Optional: true}}, Run: update},
	{Name: "wheel", Params: []modules.Param{{Name: "name"}}, Args: "args", Kwargs: "kwargs", Run: wheel},
}}

// jobParams are these arguments.
var jobParams = []modules.Param{{Name: "tgt"}, {Name: "fun"}, {Name: "arg", Default: []any{}}, {Name: "timeout", Optional: true},
	{Name: "tgt_type", Default: "glob"}, {Name: "ret", Default: ""}, {Name: "kwarg", Optional: true}, {Name: "ssh", Default: false}}

var (
	extmodBlacklistParam = modules.Param{Name: "extmod_blacklist", Optional: true}
	extmodWhitelistParam = modules.Param{Name: "extmod_whitelist", Optional: true}
	saltenvParam         = modules.Param{Name: "saltenv", Optional: true}
)
