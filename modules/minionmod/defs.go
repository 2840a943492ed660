package minionmod

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "minion": the keys of a master on the same host, and the minion's own end and restart.
var Module = &modules.Module{Name: "minion", Doc: "The keys of a master on the same host, and the minion's own end and restart.", Funcs: []modules.Def{
	{Name: "kill", Doc: "End the minion with a signal. Its supervisor may start it again.", Example: "salt 'minion1' minion.kill", Params: []modules.Param{{Name: "timeout", Default: int64(15)}}, Run: kill},
	{Name: "list", Python: "list_", Doc: "List the accepted, unaccepted, rejected and denied keys of a master on the same host.", Example: "salt 'master' minion.list", Run: list},
	{Name: "restart", Doc: `Restart the minion: with the command of the option minion_restart_command, by systemd where it runs, else by ending the
minion so that its supervisor starts it again.

systemd
    Whether systemd may be used.
win_service
    For Windows, without effect elsewhere.
schedule_retry, retry_delay
    Have systemd look after so many seconds whether the minion runs, and start it if not.`,
		Example: "salt 'minion1' minion.restart", Params: []modules.Param{{Name: "systemd", Default: true}, {Name: "win_service", Default: true}, {Name: "schedule_retry", Default: false},
			{Name: "retry_delay", Default: int64(180)}}, Run: restart},
}}
