package linux_sysctl

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "sysctl" on Linux.
var Module = &modules.Module{Name: "linux_sysctl", Virtual: "sysctl", Doc: "Parameters of the kernel.", Available: available, Funcs: []modules.Def{
	{Name: "assign", Doc: "Set a parameter until the next boot.", Example: "salt '*' sysctl.assign net.ipv4.ip_forward 1", Params: []modules.Param{{Name: "name"}, {Name: "value"}}, Run: assignParam},
	{Name: "default_config", Doc: "Return the file that sysctl.persist writes to by default.", Example: "salt -G 'kernel:Linux' sysctl.default_config", Run: defaultConfig},
	{Name: "get", Doc: "Return the value of a parameter.", Example: "salt '*' sysctl.get net.ipv4.ip_forward", Params: []modules.Param{{Name: "name"}}, Run: get},
	{Name: "persist", Doc: `Set a parameter now and for every boot: "Updated" or "Already set".

config
    The file to write it to.`,
		Example: "salt '*' sysctl.persist net.ipv4.ip_forward 1", Params: []modules.Param{{Name: "name"}, {Name: "value"}, {Name: "config", Optional: true}}, Run: persist},
	{Name: "show", Doc: `Return all parameters.

config_file : False
    The file to read them from, rather than asking the kernel.`,
		Example: "salt '*' sysctl.show", Params: []modules.Param{{Name: "config_file", Default: false}}, Run: show},
}}
