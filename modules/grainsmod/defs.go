package grainsmod

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "grains": the facts about the host.
var Module = &modules.Module{Name: "grains", Doc: "The facts about the host.", Docs: &docs, Funcs: []modules.Def{
	{Name: "append", Params: []modules.Param{
		{Name: "key"}, {Name: "val"}, {Name: "convert", Default: false, Type: modules.Bool},
		{Name: "delimiter", Default: ":", Type: modules.String},
	}, Ordered: true, Run: appendFn},
	{Name: "delkey",
		Params: []modules.Param{{Name: "key"}, {Name: "force", Default: false, Type: modules.Bool}}, Ordered: true, Run: delkey},
	{Name: "delval", Params: []modules.Param{
		{Name: "key"}, {Name: "destructive", Default: false, Type: modules.Bool}, {Name: "force", Default: false, Type: modules.Bool},
	}, Ordered: true, Run: delval},
	{Name: "equals", Params: []modules.Param{{Name: "key"}, {Name: "value"}}, Run: equals},
	{Name: "fetch", Python: "get", Params: []modules.Param{
		{Name: "key"}, {Name: "default", Default: "", Type: modules.String}, {Name: "delimiter", Default: ":", Type: modules.String},
		{Name: "ordered", Default: true, Type: modules.Bool},
	}, Ordered: true, Run: fetch},
	{Name: "filter_by", Params: []modules.Param{
		{Name: "lookup_dict"}, {Name: "grain", Default: "os_family", Type: modules.String}, {Name: "merge", Optional: true},
		{Name: "default", Default: "default", Type: modules.String}, {Name: "base", Optional: true},
	}, Ordered: true, Run: filterBy},
	{Name: "get", Params: []modules.Param{
		{Name: "key"}, {Name: "default", Default: "", Type: modules.String}, {Name: "delimiter", Default: ":", Type: modules.String},
		{Name: "ordered", Default: true, Type: modules.Bool},
	}, Ordered: true, Run: get},
	{Name: "has_value", Params: []modules.Param{{Name: "key"}}, Run: hasValue},
	{Name: "item", Args: "args", Kwargs: "kwargs", Out: "nested", Run: item},
	{Name: "items",
		Params: []modules.Param{{Name: "sanitize", Default: false, Type: modules.Bool}}, Out: "nested", Run: items},
	{Name: "ls", Run: ls},
	{Name: "remove",
		Params: []modules.Param{{Name: "key"}, {Name: "val"}, {Name: "delimiter", Default: ":", Type: modules.String}}, Ordered: true, Run: remove},
	{Name: "set", Params: []modules.Param{
		{Name: "key"}, {Name: "val", Default: "", Type: modules.String}, {Name: "force", Default: false, Type: modules.Bool},
		{Name: "destructive", Default: false, Type: modules.Bool}, {Name: "delimiter", Default: ":", Type: modules.String},
	}, Ordered: true, Run: set},
	{Name: "setval", Params: []modules.Param{
		{Name: "key"}, {Name: "val"}, {Name: "destructive", Default: false, Type: modules.Bool},
		{Name: "refresh_pillar", Default: true, Type: modules.Bool},
	}, Out: "nested", Ordered: true, Run: setval},
	{Name: "setvals", Params: []modules.Param{
		{Name: "grains"}, {Name: "destructive", Default: false, Type: modules.Bool},
		{Name: "refresh_pillar", Default: true, Type: modules.Bool},
	}, Ordered: true, Run: setvals},
}}
