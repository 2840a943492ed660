package defaults

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "defaults": default values of formulas.
var Module = &modules.Module{Name: "defaults", Doc: "Default values of formulas.", Funcs: []modules.Def{
	{Name: "deepcopy", Doc: "Return a copy of a value.", Example: "salt '*' defaults.deepcopy '{a: [b]}'", Params: []modules.Param{{Name: "source"}}, Ordered: true, Run: deepcopy},
	{Name: "get", Doc: `Return a default value of a formula, from its file defaults.yaml or defaults.json on the file server.

key
    The formula and the key in it, with colons between the parts.
default
    What is returned if there is no such key.`,
		Example: "salt '*' defaults.get core:users:root", Params: []modules.Param{{Name: "key"}, {Name: "default", Default: "", Type: modules.String}}, Ordered: true, Run: get},
	{Name: "merge", Doc: `Put one map over another, at every depth.

dest
    The map below.
src
    The map above.
merge_lists
    Join lists rather than replace them.
in_place
    Taken for compatibility.
convert_none
    Take None for an empty map.`,
		Example: "salt '*' defaults.merge '{a: b}' '{d: e}'", Params: []modules.Param{
			{Name: "dest"}, {Name: "src"}, {Name: "merge_lists", Default: false, Type: modules.Bool},
			{Name: "in_place", Default: true, Type: modules.Bool}, {Name: "convert_none", Default: true, Type: modules.Bool},
		}, Ordered: true, Run: merge},
	{Name: "update", Doc: `Put every map in a map over the same defaults.

dest
    A map of maps.
defaults
    The defaults.
merge_lists
    Join lists rather than replace them.
in_place
    Taken for compatibility.
convert_none
    Take None for an empty map.`,
		Example: "salt '*' defaults.update '{one: {a: b}}' '{c: d}'", Params: []modules.Param{
			{Name: "dest"}, {Name: "defaults"}, {Name: "merge_lists", Default: true, Type: modules.Bool},
			{Name: "in_place", Default: true, Type: modules.Bool}, {Name: "convert_none", Default: true, Type: modules.Bool},
		}, Ordered: true, Run: update},
}}
