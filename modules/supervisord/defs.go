package supervisord

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "supervisord": processes that supervisord looks after.
var Module = &modules.Module{Name: "supervisord", Doc: `Processes that supervisord looks after.`, Funcs: []modules.Def{
	{Name: "add", Doc: `Start a process or group that is new in the configuration.

` + nameDoc + userDoc + confFileDoc + binEnvDoc,
		Example: "salt '*' supervisord.add <name>", Params: []modules.Param{{Name: "name"}, userParam, confFileParam, binEnvParam}, Run: add},
	{Name: "custom", Doc: `Run a command of supervisorctl.

command
    The command.
` + userDoc + confFileDoc + binEnvDoc,
		Example: `salt '*' supervisord.custom "mstop '*gunicorn*'"`, Params: []modules.Param{{Name: "command"}, userParam, confFileParam, binEnvParam}, Run: custom},
	{Name: "options", Doc: `Return the options of a process in the configuration.

` + nameDoc + confFileDoc,
		Example: "salt '*' supervisord.options foo", Params: []modules.Param{{Name: "name"}, confFileParam}, Run: options},
	{Name: "remove", Doc: `Forget a process or group.

` + nameDoc + userDoc + confFileDoc + binEnvDoc,
		Example: "salt '*' supervisord.remove <name>", Params: []modules.Param{{Name: "name"}, userParam, confFileParam, binEnvParam}, Run: remove},
	{Name: "reread", Doc: `Read the configuration again.

` + userDoc + confFileDoc + binEnvDoc,
		Example: "salt '*' supervisord.reread", Params: []modules.Param{userParam, confFileParam, binEnvParam}, Run: reread},
	{Name: "restart", Doc: `Restart a process, a group, or all.

` + nameDoc + userDoc + confFileDoc + binEnvDoc,
		Example: "salt '*' supervisord.restart <service>", Params: []modules.Param{
			{Name: "name", Default: "all", Type: modules.String}, userParam, confFileParam, binEnvParam,
		}, Run: restart},
	{Name: "start", Doc: `Start a process, a group, or all.

` + nameDoc + userDoc + confFileDoc + binEnvDoc,
		Example: "salt '*' supervisord.start <service>", Params: []modules.Param{
			{Name: "name", Default: "all", Type: modules.String}, userParam, confFileParam, binEnvParam,
		}, Run: start},
	{Name: "status", Doc: `Return the state of processes.

` + nameDoc + userDoc + confFileDoc + binEnvDoc,
		Example: "salt '*' supervisord.status", Params: []modules.Param{{Name: "name", Optional: true}, userParam, confFileParam, binEnvParam}, Run: status},
	{Name: "status_bool", Doc: `Tell whether there is a process, or whether it has a state.

` + nameDoc + `expected_state
    The state that it must have.
` + userDoc + confFileDoc + binEnvDoc,
		Example: "salt '*' supervisord.status_bool nginx expected_state='RUNNING'", Params: []modules.Param{
			{Name: "name"}, {Name: "expected_state", Optional: true}, userParam, confFileParam, binEnvParam,
		}, Run: statusBool},
	{Name: "status_raw", Doc: `Return the state of processes as supervisorctl writes it.

` + nameDoc + userDoc + confFileDoc + binEnvDoc,
		Example: "salt '*' supervisord.status_raw", Params: []modules.Param{{Name: "name", Optional: true}, userParam, confFileParam, binEnvParam}, Run: statusRaw},
	{Name: "stop", Doc: `Stop a process, a group, or all.

` + nameDoc + userDoc + confFileDoc + binEnvDoc,
		Example: "salt '*' supervisord.stop <service>", Params: []modules.Param{
			{Name: "name", Default: "all", Type: modules.String}, userParam, confFileParam, binEnvParam,
		}, Run: stop},
	{Name: "update", Doc: `Read the configuration again and do what has changed.

` + userDoc + confFileDoc + binEnvDoc + nameDoc,
		Example: "salt '*' supervisord.update", Params: []modules.Param{userParam, confFileParam, binEnvParam, {Name: "name", Optional: true}}, Run: update},
}}

// What the functions share: the documentation of parameters, and parameters that may be absent.
const (
	binEnvDoc = `bin_env
    A virtual environment, or supervisorctl itself.
`
	confFileDoc = `conf_file
    The configuration of supervisord.
`
	nameDoc = `name
    The process, or the group with ":" behind it.
`
	userDoc = `user
    The user to work as.
`
)

var (
	binEnvParam   = modules.Param{Name: "bin_env", Optional: true}
	confFileParam = modules.Param{Name: "conf_file", Optional: true}
	userParam     = modules.Param{Name: "user", Optional: true}
)
