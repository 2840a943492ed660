package schedule

import (
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

const common = `
persist
    Whether the change is kept for the next start of the minion, True.
test
    Only say what would be done.
`

// Module is Salt's "schedule": the jobs that the minion runs by itself.
var Module = &modules.Module{Name: "schedule", Doc: "The jobs that the minion runs by itself.", Funcs: []modules.Def{
	{Name: "add", Doc: `Add a job to the schedule.

name
    The name of the job, which must be new.
function
    The function to run, with job_args and job_kwargs as its arguments.
seconds, minutes, hours, days
    How often to run it.
when, once, cron
    At which times to run it: texts with date or time, one time, or a cron expression.
splay, range, skip_during_range, until, after, maxrunning, returner, return_job, metadata, run_on_start, enabled, jid_include
    As in the option schedule.
offline
    Change the file that a minion reads when it starts, rather than the running minion.
` + common,
		Example: `salt '*' schedule.add job1 function='test.ping' seconds=3600
salt '*' schedule.add job2 function='cmd.run' job_args="['date']" cron='*/5 * * * *'`, Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: add},
	{Name: "build_schedule_item", Doc: "Make a job of the arguments of schedule.add, without adding it.", Example: "salt '*' schedule.build_schedule_item job1 function='test.ping' seconds=3600", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: buildItem},
	{Name: "copy", Doc: "Give a job to other minions as well. The master must allow this minion to publish schedule.add.", Example: "salt '*' schedule.copy jobname target", Params: []modules.Param{{Name: "name"}, {Name: "target"}}, Kwargs: "kwargs", Run: copyJob},
	{Name: "delete", Doc: `Delete a job from the schedule. Jobs of the pillar stay.
` + common,
		Example: "salt '*' schedule.delete job1", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: remove},
	{Name: "disable", Doc: `Disable the whole schedule.
` + common,
		Example: "salt '*' schedule.disable", Kwargs: "kwargs", Run: disable},
	{Name: "disable_job", Doc: `Disable a job of the schedule.
` + common,
		Example: "salt '*' schedule.disable_job job1", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: disableJob},
	{Name: "enable", Doc: `Enable the whole schedule.
` + common,
		Example: "salt '*' schedule.enable", Kwargs: "kwargs", Run: enable},
	{Name: "enable_job", Doc: "Enable a job of the schedule.", Example: "salt '*' schedule.enable_job job1", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: enableJob},
	{Name: "is_enabled", Doc: "Tell whether the schedule is enabled; with a name, show that job, or an empty map if there is none.",
		Example: `salt '*' schedule.is_enabled name=job_name
salt '*' schedule.is_enabled`, Params: []modules.Param{{Name: "name", Optional: true}}, Run: isEnabled},
	{Name: "job_status", Doc: `Show everything that the schedule knows of a job, such as when it ran last and will run next.

time_fmt
    How times are written.`,
		Example: "salt '*' schedule.job_status job_name", Params: []modules.Param{{Name: "name"}, {Name: "time_fmt", Default: "%Y-%m-%dT%H:%M:%S"}}, Run: jobStatus},
	{Name: "list", Python: "list_", Doc: `List the jobs of the schedule.

show_all
    Also the minion's own, whose names begin with two underscores.
show_disabled
    Also disabled jobs.
where
    "opts" or "pillar": only the jobs of the configuration or of the pillar.
return_yaml
    Answer with YAML text, which also says which jobs are saved; else with a map.
offline
    List the jobs that are saved.`,
		Example: `salt '*' schedule.list
salt '*' schedule.list show_disabled=False`, Params: []modules.Param{{Name: "show_all", Default: false}, {Name: "show_disabled", Default: true}, {Name: "where", Optional: true},
			{Name: "return_yaml", Default: true}, {Name: "offline", Default: false}}, Run: list},
	{Name: "modify", Doc: `Replace a job of the schedule. Without function it keeps its function; everything else must be given again.
` + common,
		Example: "salt '*' schedule.modify job1 function='test.ping' seconds=3600", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: modify},
	{Name: "move", Doc: "Give a job to other minions and delete it here. The master must allow this minion to publish schedule.add.", Example: "salt '*' schedule.move jobname target", Params: []modules.Param{{Name: "name"}, {Name: "target"}}, Kwargs: "kwargs", Run: move},
	{Name: "postpone_job", Doc: `Run a job at another time instead of the one at which it is due.

current_time, new_time
    Times as time_fmt has them, by default 2026-11-21T10:00:00.`,
		Example: "salt '*' schedule.postpone_job job current_time new_time", Params: []modules.Param{{Name: "name"}, {Name: "current_time"}, {Name: "new_time"}}, Kwargs: "kwargs", Run: postponeJob},
	{Name: "purge", Doc: `Delete all jobs from the schedule. Jobs of the pillar stay.
` + common,
		Example: "salt '*' schedule.purge", Kwargs: "kwargs", Run: purge},
	{Name: "reload", Python: "reload_", Doc: "Read the jobs of the pillar and of the file schedule.conf in the directory of default_include anew.", Example: "salt '*' schedule.reload", Run: reload},
	{Name: "run_job", Doc: `Run a job of the schedule now.

force
    Even if it is disabled.`,
		Example: "salt '*' schedule.run_job job1", Params: []modules.Param{{Name: "name"}, {Name: "force", Default: false}}, Run: runJob},
	{Name: "save", Doc: "Save the jobs that are not of the pillar for the next start of the minion.", Example: "salt '*' schedule.save", Kwargs: "kwargs", Run: save},
	{Name: "show_next_fire_time", Doc: "Show when a job will run next.", Example: "salt '*' schedule.show_next_fire_time job_name", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: showNextFireTime},
	{Name: "skip_job", Doc: `Leave a job out at a time at which it is due.

current_time
    A time as time_fmt has it, by default 2026-11-21T10:00:00.`,
		Example: "salt '*' schedule.skip_job job time", Params: []modules.Param{{Name: "name"}, {Name: "current_time"}}, Kwargs: "kwargs", Run: skipJob},
}}
