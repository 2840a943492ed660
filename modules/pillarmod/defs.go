package pillarmod

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "pillar": data that the master has for this minion.
var Module = &modules.Module{Name: "pillar", Doc: "Data that the master has for this minion.", Funcs: []modules.Def{
	{Name: "data", Doc: "The same as pillar.items.", Example: "salt '*' pillar.data", Params: []modules.Param{
		{Name: "pillar", Optional: true, KeywordOnly: true}, {Name: "pillar_enc", Optional: true, KeywordOnly: true},
		{Name: "pillarenv", Optional: true, KeywordOnly: true}, {Name: "saltenv", Optional: true, KeywordOnly: true},
		{Name: "unmask", Optional: true, KeywordOnly: true},
	}, Args: "args", Run: data},
	{Name: "fetch", Python: "get", Doc: "The same as pillar.get.", Example: "salt '*' pillar.fetch pkg:apache", Params: []modules.Param{
		{Name: "key"}, {Name: "default", Optional: true}, {Name: "merge", Default: false, Type: modules.Bool},
		{Name: "merge_nested_lists", Optional: true}, {Name: "delimiter", Default: ":", Type: modules.String},
		{Name: "pillarenv", Optional: true}, {Name: "saltenv", Optional: true}, {Name: "unmask", Optional: true},
	}, Ordered: true, Run: fetch},
	{Name: "file_exists", Doc: `Tell whether a file exists below one of the minion's own pillar_roots.

path
    The file, relative to the root.
saltenv
    The one environment to look in.`,
		Example: "salt '*' pillar.file_exists foo/bar.sls", Params: []modules.Param{{Name: "path"}, {Name: "saltenv", Optional: true}}, Run: fileExists},
	{Name: "filter_by", Doc: `Pick an entry of a table by a value of the pillar.

lookup_dict
    The table. Its keys are values of the pillar or shell patterns for them.
pillar
    The key in the pillar; "a:b" reaches into nested maps.
merge
    A map to merge over the result.
default
    The entry when nothing matches.
base
    The entry that the result is merged over.`,
		Example: "salt '*' pillar.filter_by '{web: Serve it up, db: I query, default: x_x}' role", Params: []modules.Param{
			{Name: "lookup_dict"}, {Name: "pillar"}, {Name: "merge", Optional: true},
			{Name: "default", Default: "default", Type: modules.String}, {Name: "base", Optional: true},
		}, Ordered: true, Run: filterBy},
	{Name: "get", Doc: `Return a value of the pillar that the minion has in memory.

key
    The key; "a:b:0" reaches into nested maps and lists.
default
    What to return if there is no such key.
merge
    Merge the value over the default, if both are maps, or join them, if both are lists.
merge_nested_lists
    Join lists inside maps as well, rather than replace them.
delimiter
    What separates the parts of the key.
pillarenv, saltenv
    Compile the pillar of this environment anew.
unmask
    Taken for compatibility: nothing is masked.`,
		Example: `salt '*' pillar.get pkg:apache
salt '*' pillar.get abc::def|ghi delimiter='|'`, Params: []modules.Param{
			{Name: "key"}, {Name: "default", Optional: true}, {Name: "merge", Default: false, Type: modules.Bool},
			{Name: "merge_nested_lists", Optional: true}, {Name: "delimiter", Default: ":", Type: modules.String},
			{Name: "pillarenv", Optional: true}, {Name: "saltenv", Optional: true}, {Name: "unmask", Optional: true},
		}, Ordered: true, Run: get},
	{Name: "item", Doc: `Return some values of the pillar that the minion has in memory.

default
    The value of those that do not exist.
delimiter
    What separates the parts of a key.
pillarenv, saltenv
    Compile the pillar of this environment anew.`,
		Example: `salt '*' pillar.item foo
salt '*' pillar.item foo:bar
salt '*' pillar.item foo bar baz`, Params: []modules.Param{
			{Name: "default", Optional: true, KeywordOnly: true},
			{Name: "delimiter", Optional: true, KeywordOnly: true},
			{Name: "pillarenv", Optional: true, KeywordOnly: true}, {Name: "saltenv", Optional: true, KeywordOnly: true},
			{Name: "unmask", Optional: true, KeywordOnly: true},
		}, Args: "args", Run: item},
	{Name: "items", Doc: `Compile the pillar anew and return it, or some values of the one in memory.

pillar
    Values to use instead of what the pillar has.
pillar_enc
    How these are encrypted.
pillarenv, saltenv
    The environment.`,
		Example: "salt '*' pillar.items", Params: []modules.Param{
			{Name: "pillar", Optional: true, KeywordOnly: true}, {Name: "pillar_enc", Optional: true, KeywordOnly: true},
			{Name: "pillarenv", Optional: true, KeywordOnly: true}, {Name: "saltenv", Optional: true, KeywordOnly: true},
			{Name: "unmask", Optional: true, KeywordOnly: true},
		}, Args: "args", Run: items},
	{Name: "keys", Doc: `List the keys of a map in the pillar.

key
    Where the map is; "a:b" reaches into nested maps.
delimiter
    What separates the parts of the key.`,
		Example: "salt '*' pillar.keys web:sites", Params: []modules.Param{{Name: "key"}, {Name: "delimiter", Default: ":", Type: modules.String}, {Name: "unmask", Optional: true}}, Run: keys},
	{Name: "ls", Doc: "Compile the pillar anew and list its keys. The arguments are those of pillar.items.", Example: "salt '*' pillar.ls", Params: []modules.Param{
		{Name: "pillar", Optional: true, KeywordOnly: true}, {Name: "pillar_enc", Optional: true, KeywordOnly: true},
		{Name: "pillarenv", Optional: true, KeywordOnly: true}, {Name: "saltenv", Optional: true, KeywordOnly: true},
		{Name: "unmask", Optional: true, KeywordOnly: true},
	}, Args: "args", Run: ls},
	{Name: "obfuscate", Doc: "Compile the pillar anew and return it with types in place of values. The arguments are those of pillar.items.", Example: "salt '*' pillar.obfuscate", Params: []modules.Param{
		{Name: "pillar", Optional: true, KeywordOnly: true}, {Name: "pillar_enc", Optional: true, KeywordOnly: true},
		{Name: "pillarenv", Optional: true, KeywordOnly: true}, {Name: "saltenv", Optional: true, KeywordOnly: true},
		{Name: "unmask", Optional: true, KeywordOnly: true},
	}, Args: "args", Run: obfuscate},
	{Name: "raw", Doc: "Return the pillar that the minion has in memory, or one of its keys.",
		Example: `salt '*' pillar.raw
salt '*' pillar.raw key='roles'`, Params: []modules.Param{{Name: "key", Optional: true}, {Name: "unmask", Optional: true}}, Run: raw},
}}
