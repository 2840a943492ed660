package service

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// service.running, service.dead differ: nothing is done specially for services of Windows and macOS, for which there is no module.

// Module is "service".
var Module = &states.Module{
	Name: "service", Doc: "Services, through the init system of the host.",
	Needs: "service.start", Otherwise: "No service execution module loaded: check support for service management on this system",
	Funcs: []states.Def{
		{Name: "dead", Doc: deadDoc, Params: statusParams[:], Kwargs: "kwargs", Run: dead},
		{Name: "disabled", Doc: disabledDoc, Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: disabled},
		{Name: "enabled", Doc: enabledDoc, Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: enabled},
		{Name: "masked", Doc: maskedDoc, Params: []modules.Param{{Name: "name"}, {Name: "runtime", Default: false}}, Run: masked},
		{Name: "mod_beacon", Doc: "Watch the service with the beacon service.", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: modBeacon},
		{Name: "mod_watch", Doc: watchDoc, Params: []modules.Param{{Name: "name"}, {Name: "sfun", Optional: true}, {Name: "sig", Optional: true},
			{Name: "reload", Default: false}, {Name: "full_restart", Default: false}, {Name: "init_delay", Optional: true}, {Name: "force", Default: false}},
			Kwargs: "kwargs", Run: modWatch},
		{Name: "running", Doc: runningDoc, Params: statusParams[:], Kwargs: "kwargs", Run: running},
		{Name: "unmasked", Doc: unmaskedDoc, Params: []modules.Param{{Name: "name"}, {Name: "runtime", Default: false}}, Run: unmasked},
	},
}

var statusParams = [...]modules.Param{{Name: "name"}, {Name: "enable", Optional: true}, {Name: "sig", Optional: true}, {Name: "init_delay", Optional: true}}

const (
	runningDoc = `Have a service running. When a watched state changes it is started anew.

name
    the service
enable
    True has it started with the host, False has it not
sig
    a text to find among the processes, where the init system does not know whether the service runs
init_delay
    seconds to wait before looking whether it runs
no_block
    do not wait for systemd
unmask
    unmask the service first
unmask_runtime
    unmask it only until the host starts again
reload, force, full_restart
    what to do instead of a restart when a watched state changes`
	deadDoc = `Have a service not running. When a watched state changes it is stopped.

name
    the service
enable
    True has it started with the host, False has it not
sig
    a text to find among the processes, where the init system does not know whether the service runs
init_delay
    seconds to wait before looking whether it runs
no_block
    do not wait for systemd`
	enabledDoc = `Have a service started with the host. It is not started now.

name
    the service`
	disabledDoc = `Have a service not started with the host. It is not stopped now.

name
    the service`
	maskedDoc = `Have a unit of systemd masked, so that nothing can start it.

name
    the unit
runtime
    only until the host starts again`
	unmaskedDoc = `Have a unit of systemd not masked.

name
    the unit
runtime
    look at masks that hold only until the host starts again`
	watchDoc = `Restart, reload, start or stop a service because a watched state changed.

name
    the service
sfun
    the function that watches
sig
    a text to find among the processes, where the init system does not know whether the service runs
reload
    reload it instead of restarting it
full_restart
    stop it and start it instead of restarting it
init_delay
    seconds to wait before the state ends
force
    reload it by force`
)
