package supervisord

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "supervisord": processes that supervisord looks after.
var Module = &modules.Module{Name: "supervisord", Doc: `Processes that supervisord looks after.`, Funcs: []modules.Def{
	{Name: "add", Doc: `Start a process or group that is new in the configuration.

name
    The process, or the group with ":" behind it.
user
    The user to work as.
conf_file
    The configuration of supervisord.
bin_env
    A virtual environment, or supervisorctl itself.

CLI Example:

    salt '*' supervisord.add <name>
`, Params: []modules.Param{
		{Name: "name"},
		{Name: "user", Optional: true},
		{Name: "conf_file", Optional: true},
		{Name: "bin_env", Optional: true},
	}, Run: add},
	{Name: "custom", Doc: `Run a command of supervisorctl.

command
    The command.
user
    The user to work as.
conf_file
    The configuration of supervisord.
bin_env
    A virtual environment, or supervisorctl itself.

CLI Example:

    salt '*' supervisord.custom "mstop '*gunicorn*'"
`, Params: []modules.Param{
		{Name: "command"},
		{Name: "user", Optional: true},
		{Name: "conf_file", Optional: true},
		{Name: "bin_env", Optional: true},
	}, Run: custom},
	{Name: "options", Doc: `Return the options of a process in the configuration.

name
    The process, or the group with ":" behind it.
conf_file
    The configuration of supervisord.

CLI Example:

    salt '*' supervisord.options foo
`, Params: []modules.Param{{Name: "name"}, {Name: "conf_file", Optional: true}}, Run: options},
	{Name: "remove", Doc: `Forget a process or group.

name
    The process, or the group with ":" behind it.
user
    The user to work as.
conf_file
    The configuration of supervisord.
bin_env
    A virtual environment, or supervisorctl itself.

CLI Example:

    salt '*' supervisord.remove <name>
`, Params: []modules.Param{
		{Name: "name"},
		{Name: "user", Optional: true},
		{Name: "conf_file", Optional: true},
		{Name: "bin_env", Optional: true},
	}, Run: remove},
	{Name: "reread", Doc: `Read the configuration again.

user
    The user to work as.
conf_file
    The configuration of supervisord.
bin_env
    A virtual environment, or supervisorctl itself.

CLI Example:

    salt '*' supervisord.reread
`, Params: []modules.Param{
		{Name: "user", Optional: true},
		{Name: "conf_file", Optional: true},
		{Name: "bin_env", Optional: true},
	}, Run: reread},
	{Name: "restart", Doc: `Restart a process, a group, or all.

name
    The process, or the group with ":" behind it.
user
    The user to work as.
conf_file
    The configuration of supervisord.
bin_env
    A virtual environment, or supervisorctl itself.

CLI Example:

    salt '*' supervisord.restart <service>
`, Params: []modules.Param{
		{Name: "name", Default: "all", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "conf_file", Optional: true},
		{Name: "bin_env", Optional: true},
	}, Run: restart},
	{Name: "start", Doc: `Start a process, a group, or all.

name
    The process, or the group with ":" behind it.
user
    The user to work as.
conf_file
    The configuration of supervisord.
bin_env
    A virtual environment, or supervisorctl itself.

CLI Example:

    salt '*' supervisord.start <service>
`, Params: []modules.Param{
		{Name: "name", Default: "all", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "conf_file", Optional: true},
		{Name: "bin_env", Optional: true},
	}, Run: start},
	{Name: "status", Doc: `Return the state of processes.

name
    The process, or the group with ":" behind it.
user
    The user to work as.
conf_file
    The configuration of supervisord.
bin_env
    A virtual environment, or supervisorctl itself.

CLI Example:

    salt '*' supervisord.status
`, Params: []modules.Param{
		{Name: "name", Optional: true},
		{Name: "user", Optional: true},
		{Name: "conf_file", Optional: true},
		{Name: "bin_env", Optional: true},
	}, Run: status},
	{Name: "status_bool", Doc: `Tell whether there is a process, or whether it has a state.

name
    The process, or the group with ":" behind it.
expected_state
    The state that it must have.
user
    The user to work as.
conf_file
    The configuration of supervisord.
bin_env
    A virtual environment, or supervisorctl itself.

CLI Example:

    salt '*' supervisord.status_bool nginx expected_state='RUNNING'
`, Params: []modules.Param{
		{Name: "name"},
		{Name: "expected_state", Optional: true},
		{Name: "user", Optional: true},
		{Name: "conf_file", Optional: true},
		{Name: "bin_env", Optional: true},
	}, Run: statusBool},
	{Name: "status_raw", Doc: `Return the state of processes as supervisorctl writes it.

name
    The process, or the group with ":" behind it.
user
    The user to work as.
conf_file
    The configuration of supervisord.
bin_env
    A virtual environment, or supervisorctl itself.

CLI Example:

    salt '*' supervisord.status_raw
`, Params: []modules.Param{
		{Name: "name", Optional: true},
		{Name: "user", Optional: true},
		{Name: "conf_file", Optional: true},
		{Name: "bin_env", Optional: true},
	}, Run: statusRaw},
	{Name: "stop", Doc: `Stop a process, a group, or all.

name
    The process, or the group with ":" behind it.
user
    The user to work as.
conf_file
    The configuration of supervisord.
bin_env
    A virtual environment, or supervisorctl itself.

CLI Example:

    salt '*' supervisord.stop <service>
`, Params: []modules.Param{
		{Name: "name", Default: "all", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "conf_file", Optional: true},
		{Name: "bin_env", Optional: true},
	}, Run: stop},
	{Name: "update", Doc: `Read the configuration again and do what has changed.

user
    The user to work as.
conf_file
    The configuration of supervisord.
bin_env
    A virtual environment, or supervisorctl itself.
name
    The process, or the group with ":" behind it.

CLI Example:

    salt '*' supervisord.update
`, Params: []modules.Param{
		{Name: "user", Optional: true},
		{Name: "conf_file", Optional: true},
		{Name: "bin_env", Optional: true},
		{Name: "name", Optional: true},
	}, Run: update},
}}
