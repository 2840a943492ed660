package debianservice

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "service": services of Debian without systemd.
var Module = &modules.Module{Name: "debian_service", Virtual: "service", Doc: `Services of Debian without systemd.`, Available: available, Funcs: []modules.Def{
	{Name: "available", Doc: `Tell whether there is a service of that name.

` + nameDoc,
		Example: "salt '*' service.available sshd", Params: []modules.Param{{Name: "name"}}, Run: present},
	{Name: "disable", Doc: `Let a service not be started with the host. True if that worked.

` + nameDoc,
		Example: "salt '*' service.disable <service name>", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: disable},
	{Name: "disabled", Doc: `Tell whether a service is not started with the host.

` + nameDoc,
		Example: "salt '*' service.disabled <service name>", Params: []modules.Param{{Name: "name"}}, Run: disabled},
	{Name: "enable", Doc: `Let a service be started with the host.

` + nameDoc,
		Example: "salt '*' service.enable <service name>", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: enable},
	{Name: "enabled", Doc: `Tell whether a service is started with the host.

` + nameDoc,
		Example: "salt '*' service.enabled <service name>", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: enabled},
	{Name: "force_reload", Doc: `Let a service read its configuration again, or restart it.

` + nameDoc,
		Example: "salt '*' service.force_reload <service name>", Params: []modules.Param{{Name: "name"}}, Run: forceReload},
	{Name: "get_all", Doc: "List all services and other units that have files.", Example: "salt '*' service.get_all", Run: getAll},
	{Name: "get_disabled", Doc: "List the services that are not started with the host.", Example: "salt '*' service.get_disabled", Run: getDisabled},
	{Name: "get_enabled", Doc: "List the services that are started with the host.", Example: "salt '*' service.get_enabled", Run: getEnabled},
	{Name: "missing", Doc: `Tell whether there is no service of that name.

` + nameDoc,
		Example: "salt '*' service.missing sshd", Params: []modules.Param{{Name: "name"}}, Run: missing},
	{Name: "reload", Python: "reload_", Doc: `Let a service read its configuration again.

` + nameDoc,
		Example: "salt '*' service.reload <service name>", Params: []modules.Param{{Name: "name"}}, Run: reload},
	{Name: "restart", Doc: `Restart a service.

` + nameDoc,
		Example: "salt '*' service.restart <service name>", Params: []modules.Param{{Name: "name"}}, Run: restart},
	{Name: "start", Doc: `Start a service.

` + nameDoc,
		Example: "salt '*' service.start <service name>", Params: []modules.Param{{Name: "name"}}, Run: start},
	{Name: "status", Doc: `Tell whether a service runs; for a pattern a map.

` + nameDoc + `sig
    Look for a process by this text instead.`,
		Example: `salt '*' service.status <service name>
salt '*' service.status 'ssh*'`, Params: []modules.Param{{Name: "name"}, {Name: "sig", Optional: true}}, Run: status},
	{Name: "stop", Doc: `Stop a service. True if that worked.

` + nameDoc,
		Example: "salt '*' service.stop <service name>", Params: []modules.Param{{Name: "name"}}, Run: stop},
}}

// The documentation of parameters that functions share.
const (
	nameDoc = `name
    The service.
`
)
