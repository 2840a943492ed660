package at

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "at".
var Module = &modules.Module{Name: "at", Doc: "Jobs that at(1) runs later.", Available: available, Funcs: []modules.Def{
	{Name: "at", Doc: `Add a job: the time, then the command.

tag
    A word to find the job by.
runas
    The user to run it as.`,
		Example: "salt '*' at.at '12:05am' '/sbin/reboot' tag=reboot", Args: "args", Kwargs: "kwargs", Run: at},
	{Name: "atc", Doc: "Return the script of a job.", Example: "salt '*' at.atc 5", Params: []modules.Param{{Name: "jobid"}}, Run: atc},
	{Name: "atq", Doc: "Return the jobs, all or those with a tag or number.", Example: "salt '*' at.atq", Params: []modules.Param{{Name: "tag", Optional: true}}, Run: atq},
	{Name: "atrm", Doc: "Remove jobs by number, or all, or all with a tag.", Example: "salt '*' at.atrm all reboot", Args: "args", Run: atrm},
	{Name: "jobcheck", Doc: "Return the jobs that fit all conditions: runas, tag, hour, minute, day, month, year.", Example: "salt '*' at.jobcheck runas=anna day=13", Kwargs: "kwargs", Run: jobcheck},
}}
