package supervisord

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "supervisord": processes that supervisord looks after.
var Module = &modules.Module{Name: "supervisord", Doc: `Processes that supervisord looks after.`, Docs: &docs, Funcs: []modules.Def{
	{Name: "add", Params: []modules.Param{{Name: "name"}, userParam, confFileParam, binEnvParam}, Run: add},
	{Name: "custom", Params: []modules.Param{{Name: "command"}, userParam, confFileParam, binEnvParam}, Run: custom},
	{Name: "options", Params: []modules.Param{{Name: "name"}, confFileParam}, Run: options},
	{Name: "remove", Params: []modules.Param{{Name: "name"}, userParam, confFileParam, binEnvParam}, Run: remove},
	{Name: "reread", Params: []modules.Param{userParam, confFileParam, binEnvParam}, Run: reread},
	{Name: "restart", Params: []modules.Param{
		{Name: "name", Default: "all", Type: modules.String}, userParam, confFileParam, binEnvParam,
	}, Run: restart},
	{Name: "start", Params: []modules.Param{
		{Name: "name", Default: "all", Type: modules.String}, userParam, confFileParam, binEnvParam,
	}, Run: start},
	{Name: "status",
		Params: []modules.Param{{Name: "name", Optional: true}, userParam, confFileParam, binEnvParam}, Run: status},
	{Name: "status_bool", Params: []modules.Param{
		{Name: "name"}, {Name: "expected_state", Optional: true}, userParam, confFileParam, binEnvParam,
	}, Run: statusBool},
	{Name: "status_raw",
		Params: []modules.Param{{Name: "name", Optional: true}, userParam, confFileParam, binEnvParam}, Run: statusRaw},
	{Name: "stop", Params: []modules.Param{
		{Name: "name", Default: "all", Type: modules.String}, userParam, confFileParam, binEnvParam,
	}, Run: stop},
	{Name: "update",
		Params: []modules.Param{userParam, confFileParam, binEnvParam, {Name: "name", Optional: true}}, Run: update},
}}

var (
	binEnvParam   = modules.Param{Name: "bin_env", Optional: true}
	confFileParam = modules.Param{Name: "conf_file", Optional: true}
	userParam     = modules.Param{Name: "user", Optional: true}
)
