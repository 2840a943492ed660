package systemdservice

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "service": services of systemd.
var Module = &modules.Module{Name: "systemd_service", Virtual: "service", Doc: `Services of systemd.`, Docs: &docs, Available: available, Funcs: []modules.Def{
	{Name: "available", Params: []modules.Param{{Name: "name"}}, Run: availableRun},
	{Name: "disable",
		Params: []modules.Param{{Name: "name"}, {Name: "no_block", Default: false, Type: modules.Bool}, rootParam}, Kwargs: "kwargs", Run: disable},
	{Name: "disabled", Params: []modules.Param{{Name: "name"}, rootParam}, Run: disabled},
	{Name: "enable", Params: []modules.Param{
		{Name: "name"}, {Name: "no_block", Default: false, Type: modules.Bool}, {Name: "unmask", Default: false, Type: modules.Bool},
		{Name: "unmask_runtime", Default: false, Type: modules.Bool}, rootParam,
	}, Kwargs: "kwargs", Run: enable},
	{Name: "enabled", Params: []modules.Param{{Name: "name"}, rootParam}, Kwargs: "kwargs", Run: enabledRun},
	{Name: "execs", Params: []modules.Param{rootParam}, Run: execs},
	{Name: "firstboot", Params: []modules.Param{
		{Name: "locale", Optional: true}, {Name: "locale_message", Optional: true}, {Name: "keymap", Optional: true},
		{Name: "timezone", Optional: true}, {Name: "hostname", Optional: true}, {Name: "machine_id", Optional: true}, rootParam,
	}, Run: firstboot},
	{Name: "force_reload", Params: []modules.Param{
		{Name: "name"},
		{Name: "no_block", Default: true, Type: modules.Bool},
		{Name: "unmask", Default: false, Type: modules.Bool},
		{Name: "unmask_runtime", Default: false, Type: modules.Bool},
	}, Run: forceReload},
	{Name: "get_all", Params: []modules.Param{rootParam}, Run: getAll},
	{Name: "get_disabled", Params: []modules.Param{rootParam}, Run: getDisabled},
	{Name: "get_enabled", Params: []modules.Param{rootParam}, Run: getEnabled},
	{Name: "get_running", Run: getRunning},
	{Name: "get_static", Params: []modules.Param{rootParam}, Run: getStatic},
	{Name: "mask",
		Params: []modules.Param{{Name: "name"}, {Name: "runtime", Default: false, Type: modules.Bool}, rootParam}, Run: mask},
	{Name: "masked",
		Params: []modules.Param{{Name: "name"}, {Name: "runtime", Default: false, Type: modules.Bool}, rootParam}, Run: maskedRun},
	{Name: "missing", Params: []modules.Param{{Name: "name"}}, Run: missing},
	{Name: "offline", Run: offline},
	{Name: "reload", Python: "reload_",
		Params: []modules.Param{
			{Name: "name"},
			{Name: "no_block", Default: false, Type: modules.Bool},
			{Name: "unmask", Default: false, Type: modules.Bool},
			{Name: "unmask_runtime", Default: false, Type: modules.Bool},
		}, Run: reload},
	{Name: "restart", Params: []modules.Param{
		{Name: "name"},
		{Name: "no_block", Optional: true},
		{Name: "unmask", Default: false, Type: modules.Bool},
		{Name: "unmask_runtime", Default: false, Type: modules.Bool},
	}, Run: restart},
	{Name: "show", Params: []modules.Param{{Name: "name"}, rootParam}, Run: show},
	{Name: "start", Params: []modules.Param{
		{Name: "name"},
		{Name: "no_block", Default: false, Type: modules.Bool},
		{Name: "unmask", Default: false, Type: modules.Bool},
		{Name: "unmask_runtime", Default: false, Type: modules.Bool},
	}, Run: start},
	{Name: "status", Params: []modules.Param{{Name: "name"}, {Name: "sig", Optional: true}}, Run: statusRun},
	{Name: "stop", Params: []modules.Param{{Name: "name"}, {Name: "no_block", Optional: true}}, Run: stop},
	{Name: "systemctl_reload", Run: systemctlReload},
	{Name: "unmask", Python: "unmask_",
		Params: []modules.Param{{Name: "name"}, {Name: "runtime", Default: false, Type: modules.Bool}, rootParam}, Run: unmaskRun},
}}

var (
	rootParam = modules.Param{Name: "root", Optional: true}
)
