package chef

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "chef": runs of the Chef client of this host.
var Module = &modules.Module{Name: "chef", Doc: `Runs of Chef on this host.`, Available: available, Funcs: []modules.Def{
	{Name: "client", Doc: `Run chef-client once, and return its output and exit status, as cmd.run_all does.

` + whyrunDoc + `localmode
    Use a repository of this host instead of a server.
` + logfileDoc + `
Further keyword arguments are options of chef-client: server, client_key, config, config-file-jail, environment, group,
json-attributes, log_level, node-name, override-runlist, pid, run-lock-timeout, runlist, user, validation_key and so on.`,
		Example: "salt '*' chef.client server=https://localhost", Params: []modules.Param{whyrunParam, {Name: "localmode", Default: false, Type: modules.Bool}, logfileParam},
		Kwargs: "kwargs", Run: client},
	{Name: "solo", Doc: `Run chef-solo, and return its output and exit status, as cmd.run_all does.

` + whyrunDoc + logfileDoc + `
Further keyword arguments are options of chef-solo: config, environment, group, json-attributes, log_level, node-name,
override-runlist, recipe-url, run-lock-timeout, user and so on.`,
		Example: "salt '*' chef.solo override-runlist=test", Params: []modules.Param{whyrunParam, logfileParam}, Kwargs: "kwargs", Run: solo},
}}

const (
	whyrunDoc = `whyrun
    Only say what would be done.
`
	logfileDoc = `logfile
    The log file; /var/log/chef-client.log or /var/log/chef-solo.log when not given.
`
)

var (
	whyrunParam  = modules.Param{Name: "whyrun", Default: false, Type: modules.Bool}
	logfileParam = modules.Param{Name: "logfile", Optional: true}
)
