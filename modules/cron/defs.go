package cron

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "cron".
var Module = &modules.Module{Name: "cron", Doc: "The users' tables of cron.", Available: available, Funcs: []modules.Def{
	{Name: "get_entry", Doc: `Return one entry of the user's table, False if there is none.

identifier
    The entry's identifier.
cmd
    The entry's command, if no identifier is given.`,
		Example: "salt '*' cron.get_entry root identifier=task1", Params: []modules.Param{{Name: "user"}, {Name: "identifier", Optional: true}, {Name: "cmd", Optional: true}}, Run: getEntry},
	{Name: "list_tab", Doc: `Return the user's table: the lines before Salt's mark (pre), jobs (crons), jobs with @names (special) and
variables (env).`,
		Example: "salt '*' cron.list_tab root", Params: []modules.Param{{Name: "user"}}, Run: listTab},
	{Name: "ls", Python: "list_tab", Doc: "Do what cron.list_tab does.", Example: "salt '*' cron.ls root", Params: []modules.Param{{Name: "user"}}, Run: listTab},
	{Name: "raw_cron", Doc: "Return the text of the user's table.", Example: "salt '*' cron.raw_cron root", Params: []modules.Param{{Name: "user"}}, Run: rawCron},
	{Name: "rm", Python: "rm_job", Doc: "Do what cron.rm_job does.", Example: "salt '*' cron.rm root /usr/local/bin/weekly", Params: []modules.Param{
		{Name: "user"}, {Name: "cmd"}, {Name: "minute", Optional: true}, {Name: "hour", Optional: true}, {Name: "daymonth", Optional: true},
		{Name: "month", Optional: true}, {Name: "dayweek", Optional: true}, {Name: "identifier", Optional: true},
	}, Run: rmJob},
	{Name: "rm_env", Doc: `Remove a variable from the user's table: "removed" or "absent".`, Example: "salt '*' cron.rm_env root MAILTO", Params: []modules.Param{{Name: "user"}, {Name: "name"}}, Run: rmEnv},
	{Name: "rm_job", Doc: `Remove a job from the user's table: "removed" or "absent".

minute, hour, daymonth, month, dayweek
    Remove the job only if it runs at these times.
identifier
    The job's identifier, which goes before its command.`,
		Example: "salt '*' cron.rm_job root /usr/local/bin/weekly dayweek=1", Params: []modules.Param{
			{Name: "user"}, {Name: "cmd"}, {Name: "minute", Optional: true}, {Name: "hour", Optional: true}, {Name: "daymonth", Optional: true},
			{Name: "month", Optional: true}, {Name: "dayweek", Optional: true}, {Name: "identifier", Optional: true},
		}, Run: rmJob},
	{Name: "rm_special", Doc: `Remove a job with an @name from the user's table: "removed" or "absent".`, Example: "salt '*' cron.rm_special root /usr/local/bin/hourly", Params: []modules.Param{{Name: "user"}, {Name: "cmd"}, {Name: "special", Optional: true}, {Name: "identifier", Optional: true}}, Run: rmSpecial},
	{Name: "set_env", Doc: `Set a variable in the user's table: "new", "updated" or "present".`, Example: "salt '*' cron.set_env root MAILTO ops@example.org", Params: []modules.Param{{Name: "user"}, {Name: "name"}, {Name: "value", Optional: true}}, Run: setEnv},
	{Name: "set_job", Doc: `Put a job into the user's table, or change the one with this identifier or command: "new", "updated" or
"present".

minute, hour, daymonth, month, dayweek
    When it runs: as in crontab(5), "random", or "5:20" for a random number of that range.
commented : False
    Put it in as a comment, so that it does not run.
comment
    A comment above the job.
identifier
    What the job is known by even when its command changes.`,
		Example: "salt '*' cron.set_job root '*' '*' '*' '*' 1 /usr/local/bin/weekly", Params: []modules.Param{
			{Name: "user"}, {Name: "minute"}, {Name: "hour"}, {Name: "daymonth"}, {Name: "month"}, {Name: "dayweek"}, {Name: "cmd"},
			{Name: "commented", Default: false}, {Name: "comment", Optional: true}, {Name: "identifier", Optional: true},
		}, Run: setJob},
	{Name: "set_special", Doc: `Put a job with an @name into the user's table, or change it: "new", "updated" or "present".`, Example: "salt '*' cron.set_special root @hourly '/usr/local/bin/hourly'", Params: []modules.Param{
		{Name: "user"}, {Name: "special"}, {Name: "cmd"}, {Name: "commented", Default: false}, {Name: "comment", Optional: true},
		{Name: "identifier", Optional: true},
	}, Run: setSpecial},
	{Name: "write_cron_file", Doc: "Make the contents of a file the user's table and tell whether that worked.", Example: "salt '*' cron.write_cron_file root /srv/crontab", Params: []modules.Param{{Name: "user"}, {Name: "path"}}, Run: writeFile},
	{Name: "write_cron_file_verbose", Doc: "Make the contents of a file the user's table and return what crontab said, as cmd.run_all does.", Example: "salt '*' cron.write_cron_file_verbose root /srv/crontab", Params: []modules.Param{{Name: "user"}, {Name: "path"}}, Run: writeFileVerbose},
}}
