package configmod

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "config": settings from options, grains and pillar.
var Module = &modules.Module{Name: "config", Doc: "Settings from options, grains and pillar.", Funcs: []modules.Def{
	{Name: "backup_mode", Doc: "Return the backup mode for files: the one given, or that of the configuration.", Example: "salt '*' config.backup_mode", Params: []modules.Param{{Name: "backup", Default: "", Type: modules.String}}, Run: backupMode},
	{Name: "dot_vals", Doc: `Return all options and values of the pillar's "master" map whose names begin with a word and a dot.`, Example: "salt '*' config.dot_vals host", Params: []modules.Param{{Name: "value"}}, Run: dotVals},
	{Name: "get", Doc: `Return a setting from the first place that has it: the minion's options, its grains, its pillar, the pillar's "master" map, or
the built-in defaults.

key
    The setting; "a:b" reaches into nested maps.
default
    What to return if nothing has it.
delimiter
    What separates the parts of the key.
merge
    Merge what all places have, rather than take the first: "recurse" merges nested maps, "overwrite" replaces them.
omit_opts, omit_pillar, omit_master, omit_grains
    Places not to look at.`,
		Example: `salt '*' config.get pkg:apache
salt '*' config.get lxc.container_profile:centos merge=recurse`, Params: []modules.Param{
			{Name: "key"}, {Name: "default", Default: "", Type: modules.String}, {Name: "delimiter", Default: ":", Type: modules.String},
			{Name: "merge", Optional: true}, {Name: "omit_opts", Default: false, Type: modules.Bool},
			{Name: "omit_pillar", Default: false, Type: modules.Bool}, {Name: "omit_master", Default: false, Type: modules.Bool},
			{Name: "omit_grains", Default: false, Type: modules.Bool},
		}, Ordered: true, Run: get},
	{Name: "items", Doc: "Return the minion's whole configuration.", Example: "salt '*' config.items", Run: items},
	{Name: "manage_mode", Doc: "Write a file mode the way Salt does, as four octal digits.", Example: "salt '*' config.manage_mode 644", Params: []modules.Param{{Name: "mode"}}, Run: manageMode},
	{Name: "merge", Doc: `Return a setting, with what several places have put together: maps merged, lists joined.

value
    The setting.
default
    What to return if nothing has it.
omit_opts, omit_master, omit_pillar
    Places not to look at.`,
		Example: "salt '*' config.merge schedule", Params: []modules.Param{
			{Name: "value"}, {Name: "default", Default: "", Type: modules.String},
			{Name: "omit_opts", Default: false, Type: modules.Bool}, {Name: "omit_master", Default: false, Type: modules.Bool},
			{Name: "omit_pillar", Default: false, Type: modules.Bool},
		}, Run: merge},
	{Name: "option", Doc: `Return a setting from the first place that has it: the minion's options, its grains, its pillar, the pillar's "master" map, or
the built-in defaults. Nested maps are not looked into.

value
    The setting, or a shell pattern with wildcard=True.
default
    What to return if nothing has it.
omit_opts, omit_grains, omit_pillar, omit_master, omit_all
    Places not to look at.
wildcard
    Return a map of all settings that match.`,
		Example: "salt '*' config.option redis.host", Params: []modules.Param{
			{Name: "value"}, {Name: "default", Optional: true}, {Name: "omit_opts", Default: false, Type: modules.Bool},
			{Name: "omit_grains", Default: false, Type: modules.Bool}, {Name: "omit_pillar", Default: false, Type: modules.Bool},
			{Name: "omit_master", Default: false, Type: modules.Bool}, {Name: "omit_all", Default: false, Type: modules.Bool},
			{Name: "wildcard", Default: false, Type: modules.Bool},
		}, Run: option},
	{Name: "valid_fileproto", Doc: "Tell whether a URI begins with a protocol that files can be fetched by.", Example: "salt '*' config.valid_fileproto salt://path/to/file", Params: []modules.Param{{Name: "uri"}}, Run: validFileproto},
}}
