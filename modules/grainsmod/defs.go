package grainsmod

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "grains": the facts about the host.
var Module = &modules.Module{Name: "grains", Doc: "The facts about the host.", Funcs: []modules.Def{
	{Name: "append", Doc: `Add a value, or the members of a list, to a list in the grains file.

key
    The grain; "a:b" reaches into nested maps.
val
    The value or list.
convert
    Make a list of a grain that is none.
delimiter
    What separates the parts of the key.`,
		Example: "salt '*' grains.append key val", Params: []modules.Param{
			{Name: "key"}, {Name: "val"}, {Name: "convert", Default: false, Type: modules.Bool},
			{Name: "delimiter", Default: ":", Type: modules.String},
		}, Run: appendFn},
	{Name: "delkey", Doc: `Remove a grain from the grains file.

key
    The grain; "a:b" reaches into nested maps.
force
    Remove it also when it is a map or a list.`,
		Example: "salt '*' grains.delkey key", Params: []modules.Param{{Name: "key"}, {Name: "force", Default: false, Type: modules.Bool}}, Run: delkey},
	{Name: "delval", Doc: `Set a grain in the grains file to None, or remove it.

key
    The grain; "a:b" reaches into nested maps.
destructive
    Remove it.
force
    Do so also when it is a map or a list.`,
		Example: "salt '*' grains.delval key", Params: []modules.Param{
			{Name: "key"}, {Name: "destructive", Default: false, Type: modules.Bool}, {Name: "force", Default: false, Type: modules.Bool},
		}, Run: delval},
	{Name: "equals", Doc: "Tell whether a grain has a value, compared as text.",
		Example: `salt '*' grains.equals fqdn some.host.name
salt '*' grains.equals systemd:version 219`, Params: []modules.Param{{Name: "key"}, {Name: "value"}}, Run: equals},
	{Name: "fetch", Python: "get", Doc: "The same as grains.get.", Example: "salt '*' grains.fetch pkg:apache", Params: []modules.Param{
		{Name: "key"}, {Name: "default", Default: "", Type: modules.String}, {Name: "delimiter", Default: ":", Type: modules.String},
		{Name: "ordered", Default: true, Type: modules.Bool},
	}, Ordered: true, Run: fetch},
	{Name: "filter_by", Doc: `Pick an entry of a table by the value of a grain.

lookup_dict
    The table. Its keys are values of the grain or shell patterns for them.
grain
    The grain.
merge
    A map to merge over the result.
default
    The entry when nothing matches.
base
    The entry that the result is merged over.`,
		Example: "salt '*' grains.filter_by '{Debian: Debheads rule, RedHat: I love my hat}'", Params: []modules.Param{
			{Name: "lookup_dict"}, {Name: "grain", Default: "os_family", Type: modules.String}, {Name: "merge", Optional: true},
			{Name: "default", Default: "default", Type: modules.String}, {Name: "base", Optional: true},
		}, Ordered: true, Run: filterBy},
	{Name: "get", Doc: `Return the value of a grain.

key
    The grain; "a:b:0" reaches into nested maps and lists.
default
    What to return if there is no such grain.
delimiter
    What separates the parts of the key.
ordered
    Has no meaning here.`,
		Example: "salt '*' grains.get pkg:apache", Params: []modules.Param{
			{Name: "key"}, {Name: "default", Default: "", Type: modules.String}, {Name: "delimiter", Default: ":", Type: modules.String},
			{Name: "ordered", Default: true, Type: modules.Bool},
		}, Ordered: true, Run: get},
	{Name: "has_value", Doc: `Tell whether there is a grain; "a:b" reaches into nested maps.`, Example: "salt '*' grains.has_value pkg:apache", Params: []modules.Param{{Name: "key"}}, Run: hasValue},
	{Name: "item", Doc: `Return some grains.

default
    The value of those that do not exist.
delimiter
    What separates the parts of a key.
sanitize
    Hide serial numbers, names and domains.`,
		Example: `salt '*' grains.item os
salt '*' grains.item os osrelease oscodename
salt '*' grains.item host sanitize=True`, Args: "args", Kwargs: "kwargs", Out: "nested", Run: item},
	{Name: "items", Doc: `Return all grains.

sanitize
    Hide serial numbers, names and domains.`,
		Example: `salt '*' grains.items
salt '*' grains.items sanitize=True`, Params: []modules.Param{{Name: "sanitize", Default: false, Type: modules.Bool}}, Out: "nested", Run: items},
	{Name: "ls", Doc: "List the names of all grains.", Example: "salt '*' grains.ls", Run: ls},
	{Name: "remove", Doc: `Remove a value from a list in the grains file.

key
    The grain; "a:b" reaches into nested maps.
val
    The value.
delimiter
    What separates the parts of the key.`,
		Example: "salt '*' grains.remove key val", Params: []modules.Param{{Name: "key"}, {Name: "val"}, {Name: "delimiter", Default: ":", Type: modules.String}}, Run: remove},
	{Name: "set", Doc: `Set a grain in the grains file.

key
    The grain; "a:b" reaches into nested maps and makes them.
val
    The value.
force
    Overwrite maps and lists.
destructive
    Remove the grain if the value is None.
delimiter
    What separates the parts of the key.`,
		Example: `salt '*' grains.set 'apps:myApp:port' 2209
salt '*' grains.set 'apps:myApp' '{port: 2209}'`, Params: []modules.Param{
			{Name: "key"}, {Name: "val", Default: "", Type: modules.String}, {Name: "force", Default: false, Type: modules.Bool},
			{Name: "destructive", Default: false, Type: modules.Bool}, {Name: "delimiter", Default: ":", Type: modules.String},
		}, Run: set},
	{Name: "setval", Doc: `Set a grain in the grains file, without a look at what was there.

key
    The grain.
val
    The value.
destructive
    Remove the grain if the value is None.
refresh_pillar
    Read the pillar anew as well.`,
		Example: `salt '*' grains.setval key val
salt '*' grains.setval key "{'sub-key': 'val', 'sub-key2': 'val2'}"`, Params: []modules.Param{
			{Name: "key"}, {Name: "val"}, {Name: "destructive", Default: false, Type: modules.Bool},
			{Name: "refresh_pillar", Default: true, Type: modules.Bool},
		}, Out: "nested", Run: setval},
	{Name: "setvals", Doc: `Set several grains in the grains file.

grains
    The grains, a map.
destructive
    Remove those whose value is None.
refresh_pillar
    Read the pillar anew as well.`,
		Example: `salt '*' grains.setvals "{'key1': 'val1', 'key2': 'val2'}"`, Params: []modules.Param{
			{Name: "grains"}, {Name: "destructive", Default: false, Type: modules.Bool},
			{Name: "refresh_pillar", Default: true, Type: modules.Bool},
		}, Run: setvals},
}}
