package systemdservice

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "service": services of systemd.
var Module = &modules.Module{Name: "systemd_service", Virtual: "service", Doc: `Services of systemd.`, Available: available, Funcs: []modules.Def{
	{Name: "available", Doc: `Tell whether there is a service of that name.

` + nameDoc,
		Example: "salt '*' service.available sshd", Params: []modules.Param{{Name: "name"}}, Run: availableRun},
	{Name: "disable", Doc: `Let a service not be started with the host. True if that worked.

` + nameDoc + noBlockDoc + rootDoc,
		Example: "salt '*' service.disable <service name>", Params: []modules.Param{{Name: "name"}, {Name: "no_block", Default: false, Type: modules.Bool}, rootParam}, Kwargs: "kwargs", Run: disable},
	{Name: "disabled", Doc: `Tell whether a service is not started with the host.

` + nameDoc + rootDoc,
		Example: "salt '*' service.disabled <service name>", Params: []modules.Param{{Name: "name"}, rootParam}, Run: disabled},
	{Name: "enable", Doc: `Let a service be started with the host.

` + nameDoc + noBlockDoc + unmaskDoc + unmaskRuntimeDoc + rootDoc,
		Example: "salt '*' service.enable <service name>", Params: []modules.Param{
			{Name: "name"}, {Name: "no_block", Default: false, Type: modules.Bool}, {Name: "unmask", Default: false, Type: modules.Bool},
			{Name: "unmask_runtime", Default: false, Type: modules.Bool}, rootParam,
		}, Kwargs: "kwargs", Run: enable},
	{Name: "enabled", Doc: `Tell whether a service is started with the host.

` + nameDoc + rootDoc,
		Example: "salt '*' service.enabled <service name>", Params: []modules.Param{{Name: "name"}, rootParam}, Kwargs: "kwargs", Run: enabledRun},
	{Name: "execs", Doc: `Return the program of each service.

` + rootDoc,
		Example: "salt '*' service.execs", Params: []modules.Param{rootParam}, Run: execs},
	{Name: "firstboot", Doc: `Make the settings of a system that is started for the first time.

locale
    The language.
locale_message
    The language of messages.
keymap
    The keyboard.
timezone
    The time zone.
hostname
    The name of the host.
machine_id
    The id of the machine.
` + rootDoc,
		Example: "salt '*' service.firstboot keymap=jp locale=en_US.UTF-8", Params: []modules.Param{
			{Name: "locale", Optional: true}, {Name: "locale_message", Optional: true}, {Name: "keymap", Optional: true},
			{Name: "timezone", Optional: true}, {Name: "hostname", Optional: true}, {Name: "machine_id", Optional: true}, rootParam,
		}, Run: firstboot},
	{Name: "force_reload", Doc: `Let a service read its configuration again, or restart it.

` + nameDoc + noBlockDoc + unmaskDoc + unmaskRuntimeDoc,
		Example: "salt '*' service.force_reload <service name>", Params: []modules.Param{
			{Name: "name"},
			{Name: "no_block", Default: true, Type: modules.Bool},
			{Name: "unmask", Default: false, Type: modules.Bool},
			{Name: "unmask_runtime", Default: false, Type: modules.Bool},
		}, Run: forceReload},
	{Name: "get_all", Doc: `List all services and other units that have files.

` + rootDoc,
		Example: "salt '*' service.get_all", Params: []modules.Param{rootParam}, Run: getAll},
	{Name: "get_disabled", Doc: `List the services that are not started with the host.

` + rootDoc,
		Example: "salt '*' service.get_disabled", Params: []modules.Param{rootParam}, Run: getDisabled},
	{Name: "get_enabled", Doc: `List the services that are started with the host.

` + rootDoc,
		Example: "salt '*' service.get_enabled", Params: []modules.Param{rootParam}, Run: getEnabled},
	{Name: "get_running", Doc: "List the running services.", Example: "salt '*' service.get_running", Run: getRunning},
	{Name: "get_static", Doc: `List the services that can neither be enabled nor disabled.

` + rootDoc,
		Example: "salt '*' service.get_static", Params: []modules.Param{rootParam}, Run: getStatic},
	{Name: "mask", Doc: `Make it impossible to start a service.

` + nameDoc + `runtime
    Only until the host is started again.
` + rootDoc,
		Example: `salt '*' service.mask foo
salt '*' service.mask foo runtime=True`, Params: []modules.Param{{Name: "name"}, {Name: "runtime", Default: false, Type: modules.Bool}, rootParam}, Run: mask},
	{Name: "masked", Doc: `Tell whether a service is masked.

` + nameDoc + `runtime
    Only until the host is started again.
` + rootDoc,
		Example: `salt '*' service.masked foo
salt '*' service.masked foo runtime=True`, Params: []modules.Param{{Name: "name"}, {Name: "runtime", Default: false, Type: modules.Bool}, rootParam}, Run: maskedRun},
	{Name: "missing", Doc: `Tell whether there is no service of that name.

` + nameDoc,
		Example: "salt '*' service.missing sshd", Params: []modules.Param{{Name: "name"}}, Run: missing},
	{Name: "offline", Doc: "Tell whether there is no systemd to talk to.", Example: "salt '*' service.offline", Run: offline},
	{Name: "reload", Python: "reload_", Doc: `Let a service read its configuration again.

` + nameDoc + noBlockDoc + unmaskDoc + unmaskRuntimeDoc,
		Example: "salt '*' service.reload <service name>", Params: []modules.Param{
			{Name: "name"},
			{Name: "no_block", Default: false, Type: modules.Bool},
			{Name: "unmask", Default: false, Type: modules.Bool},
			{Name: "unmask_runtime", Default: false, Type: modules.Bool},
		}, Run: reload},
	{Name: "restart", Doc: `Restart a service.

` + nameDoc + noBlockDoc + unmaskDoc + unmaskRuntimeDoc,
		Example: "salt '*' service.restart <service name>", Params: []modules.Param{
			{Name: "name"},
			{Name: "no_block", Optional: true},
			{Name: "unmask", Default: false, Type: modules.Bool},
			{Name: "unmask_runtime", Default: false, Type: modules.Bool},
		}, Run: restart},
	{Name: "show", Doc: `Return the properties of a unit.

` + nameDoc + rootDoc,
		Example: "salt '*' service.show <service name>", Params: []modules.Param{{Name: "name"}, rootParam}, Run: show},
	{Name: "start", Doc: `Start a service.

` + nameDoc + noBlockDoc + unmaskDoc + unmaskRuntimeDoc,
		Example: "salt '*' service.start <service name>", Params: []modules.Param{
			{Name: "name"},
			{Name: "no_block", Default: false, Type: modules.Bool},
			{Name: "unmask", Default: false, Type: modules.Bool},
			{Name: "unmask_runtime", Default: false, Type: modules.Bool},
		}, Run: start},
	{Name: "status", Doc: `Tell whether a service runs; for a pattern a map.

` + nameDoc + `sig
    Not used; other modules find the process by it.`,
		Example: `salt '*' service.status <service name>
salt '*' service.status 'ssh*'`, Params: []modules.Param{{Name: "name"}, {Name: "sig", Optional: true}}, Run: statusRun},
	{Name: "stop", Doc: `Stop a service. True if that worked.

` + nameDoc + noBlockDoc,
		Example: "salt '*' service.stop <service name>", Params: []modules.Param{{Name: "name"}, {Name: "no_block", Optional: true}}, Run: stop},
	{Name: "systemctl_reload", Doc: "Let systemd read its units again.", Example: "salt '*' service.systemctl_reload", Run: systemctlReload},
	{Name: "unmask", Python: "unmask_", Doc: `Take away the mask of a service.

` + nameDoc + `runtime
    Only until the host is started again.
` + rootDoc,
		Example: `salt '*' service.unmask foo
salt '*' service.unmask foo runtime=True`, Params: []modules.Param{{Name: "name"}, {Name: "runtime", Default: false, Type: modules.Bool}, rootParam}, Run: unmaskRun},
}}

// What the functions share: the documentation of parameters, and parameters that may be absent.
const (
	nameDoc = `name
    The service or unit; without a suffix a service.
`
	noBlockDoc = `no_block
    Do not wait until systemd is done.
`
	rootDoc = `root
    Work in the system below this directory.
`
	unmaskDoc = `unmask
    Unmask the service first.
`
	unmaskRuntimeDoc = `unmask_runtime
    Take away a mask that lasts until the host is started again.
`
)

var (
	rootParam = modules.Param{Name: "root", Optional: true}
)
