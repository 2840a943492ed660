package schedule

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "schedule": the jobs that the minion runs by itself.
var Module = &modules.Module{Name: "schedule", Doc: "The jobs that the minion runs by itself.", Docs: &docs, Funcs: []modules.Def{
	{Name: "add", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: add},
	{Name: "build_schedule_item", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: buildItem},
	{Name: "copy", Params: []modules.Param{{Name: "name"}, {Name: "target"}}, Kwargs: "kwargs", Run: copyJob},
	{Name: "delete", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: remove},
	{Name: "disable", Kwargs: "kwargs", Run: disable},
	{Name: "disable_job", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: disableJob},
	{Name: "enable", Kwargs: "kwargs", Run: enable},
	{Name: "enable_job", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: enableJob},
	{Name: "is_enabled", Params: []modules.Param{{Name: "name", Optional: true}}, Run: isEnabled},
	{Name: "job_status",
		Params: []modules.Param{{Name: "name"}, {Name: "time_fmt", Default: "%Y-%m-%dT%H:%M:%S"}}, Run: jobStatus},
	{Name: "list", Python: "list_",
		Params: []modules.Param{{Name: "show_all", Default: false}, {Name: "show_disabled", Default: true}, {Name: "where", Optional: true},
			{Name: "return_yaml", Default: true}, {Name: "offline", Default: false}}, Run: list},
	{Name: "modify", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: modify},
	{Name: "move", Params: []modules.Param{{Name: "name"}, {Name: "target"}}, Kwargs: "kwargs", Run: move},
	{Name: "postpone_job",
		Params: []modules.Param{{Name: "name"}, {Name: "current_time"}, {Name: "new_time"}}, Kwargs: "kwargs", Run: postponeJob},
	{Name: "purge", Kwargs: "kwargs", Run: purge},
	{Name: "reload", Python: "reload_", Run: reload},
	{Name: "run_job", Params: []modules.Param{{Name: "name"}, {Name: "force", Default: false}}, Run: runJob},
	{Name: "save", Kwargs: "kwargs", Run: save},
	{Name: "show_next_fire_time", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: showNextFireTime},
	{Name: "skip_job",
		Params: []modules.Param{{Name: "name"}, {Name: "current_time"}}, Kwargs: "kwargs", Run: skipJob},
}}
