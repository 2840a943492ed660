package quota

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "quota".
var Module = &modules.Module{Name: "quota", Doc: "Quotas of disk space.", Available: available, Funcs: []modules.Def{
	{Name: "get_mode", Doc: "Return whether quotas are on for a file system.", Example: "salt '*' quota.get_mode /home", Params: []modules.Param{{Name: "device"}}, Run: getMode},
	{Name: "off", Doc: "Turn quotas off.", Example: "salt '*' quota.off /home", Params: []modules.Param{{Name: "device"}}, Run: off},
	{Name: "on", Doc: "Turn quotas on.", Example: "salt '*' quota.on /home", Params: []modules.Param{{Name: "device"}}, Run: on},
	{Name: "report", Doc: "Return the quotas of a file system.", Example: "salt '*' quota.report /home", Params: []modules.Param{{Name: "mount"}}, Run: report},
	{Name: "set", Python: "set_", Doc: "Set the quota of a user or a group: block-soft-limit, block-hard-limit, file-soft-limit, file-hard-limit.", Example: "salt '*' quota.set /home user=anna block-soft-limit=2048576", Params: []modules.Param{{Name: "device"}}, Kwargs: "kwargs", Run: set},
	{Name: "stats", Doc: "Return what quotastats tells.", Example: "salt '*' quota.stats", Run: stats},
	{Name: "warn", Doc: "Run quotawarn, which mails those who use too much.", Example: "salt '*' quota.warn", Run: warn},
}}
