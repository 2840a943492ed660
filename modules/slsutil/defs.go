package slsutil

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "slsutil": merging, rendering and reading data.
var Module = &modules.Module{Name: "slsutil", Doc: "Merging, rendering and reading data.", Funcs: []modules.Def{
	{Name: "banner", Doc: `Return a block of comment lines with a border, for the top of managed files.

width
    The width in characters.
commentchar
    What each line begins with.
borderchar
    The character of the border.
blockstart, blockend
    Lines before and after the block.
title, text
    What stands in the block.
newline
    End the block with a line break.`,
		Example: "salt '*' slsutil.banner width=60 title='Do not edit'", Params: []modules.Param{
			{Name: "width", Default: int64(72), Type: modules.Int},
			{Name: "commentchar", Default: "#", Type: modules.String},
			{Name: "borderchar", Default: "#", Type: modules.String}, {Name: "blockstart", Optional: true},
			{Name: "blockend", Optional: true}, {Name: "title", Optional: true}, {Name: "text", Optional: true},
			{Name: "newline", Default: false, Type: modules.Bool},
		}, Run: banner},
	{Name: "boolstr", Doc: `Return one of two values, depending on whether a third is true.

value
    The value that decides.
true, false
    The values to choose from.`,
		Example: "salt '*' slsutil.boolstr True true=yes false=no", Params: []modules.Param{
			{Name: "value"}, {Name: "true", Default: "true", Type: modules.String},
			{Name: "false", Default: "false", Type: modules.String},
		}, Run: boolstr},
	{Name: "deserialize", Doc: `Read data from its text.

serializer
    The format: configparser, json, keyvalue, msgpack, plist, yaml or yamlex.
stream_or_string
    The text. Further keyword arguments are options of the format.`,
		Example: `salt '*' slsutil.deserialize 'json' '{"foo": "Foo!"}'`, Params: []modules.Param{{Name: "serializer"}, {Name: "stream_or_string"}}, Kwargs: "mod_kwargs", Ordered: true, Run: deserialize},
	{Name: "dir_exists", Doc: `Tell whether the file server has a directory.

path
    The directory.
saltenv
    The environment.`,
		Example: "salt '*' slsutil.dir_exists nginx/files", Params: []modules.Param{{Name: "path"}, {Name: "saltenv", Default: "base", Type: modules.String}}, Run: dirExists},
	{Name: "file_exists", Doc: `Tell whether the file server has a file.

path
    The file.
saltenv
    The environment.`,
		Example: "salt '*' slsutil.file_exists nginx/defaults.yaml", Params: []modules.Param{{Name: "path"}, {Name: "saltenv", Default: "base", Type: modules.String}}, Run: fileExists},
	{Name: "findup", Doc: `Return the nearest file of some name in a directory of the file server or in those above it.

startpath
    The path where the search begins; empty is the root.
filenames
    The name, or a list of names.
saltenv
    The environment.`,
		Example: "salt '*' slsutil.findup formulas/shared/nginx map.jinja", Params: []modules.Param{
			{Name: "startpath"}, {Name: "filenames"}, {Name: "saltenv", Default: "base", Type: modules.String},
		}, Run: findup},
	{Name: "merge", Doc: `Merge two values.

obj_a, obj_b
    The values; the second wins.
strategy
    How: aggregate, list, overwrite, recurse, none, or smart, which is recurse for most renderers.
renderer
    The renderer that smart looks at.
merge_lists
    Join lists rather than replace them.`,
		Example: "salt '*' slsutil.merge '{foo: Foo}' '{bar: Bar}'", Params: []modules.Param{
			{Name: "obj_a"}, {Name: "obj_b"}, {Name: "strategy", Default: "smart", Type: modules.String},
			{Name: "renderer", Default: "yaml", Type: modules.String},
			{Name: "merge_lists", Default: false, Type: modules.Bool},
		}, Ordered: true, Run: mergeFn},
	{Name: "merge_all", Doc: "Merge the members of a list, each over those before it. The other arguments are those of slsutil.merge.", Example: "salt '*' slsutil.merge_all '[{foo: Foo}, {foo: Bar}]'", Params: []modules.Param{
		{Name: "lst"}, {Name: "strategy", Default: "smart", Type: modules.String},
		{Name: "renderer", Default: "yaml", Type: modules.String},
		{Name: "merge_lists", Default: false, Type: modules.Bool},
	}, Ordered: true, Run: mergeAll},
	{Name: "path_exists", Doc: `Tell whether the file server has a file or directory.

path
    The file or directory.
saltenv
    The environment.`,
		Example: "salt '*' slsutil.path_exists nginx/defaults.yaml", Params: []modules.Param{{Name: "path"}, {Name: "saltenv", Default: "base", Type: modules.String}}, Run: pathExists},
	{Name: "renderer", Doc: `Send a file or text through renderers and return what they make of it.

path
    The file: an address or a path of this host.
string
    The text, in place of a file.
default_renderer
    The renderers, unless the first line names some after "#!".

Further keyword arguments are names that the template sees.`,
		Example: `salt '*' slsutil.renderer salt://path/to/file
salt '*' slsutil.renderer /path/to/file.jinja default_renderer='jinja'
salt '*' slsutil.renderer string='Hello, {{ name }}.' name='world'`, Params: []modules.Param{
			{Name: "path", Optional: true}, {Name: "string", Optional: true},
			{Name: "default_renderer", Default: "jinja|yaml", Type: modules.String},
		}, Kwargs: "kwargs", Run: renderer},
	{Name: "serialize", Doc: `Write data as text.

serializer
    The format: configparser, json, keyvalue, msgpack, plist, python, yaml or yamlex.
obj
    The data. Further keyword arguments are options of the format.`,
		Example: `salt '*' slsutil.serialize 'json' obj="{'foo': 'Foo!'}"`, Params: []modules.Param{{Name: "serializer"}, {Name: "obj"}}, Kwargs: "mod_kwargs", Ordered: true, Run: serialize},
	{Name: "update", Doc: `Put one map over another.

dest
    The map below.
upd
    The map above.
recursive_update
    Do so at every depth.
merge_lists
    Join lists rather than replace them.`,
		Example: "salt '*' slsutil.update '{foo: Foo}' '{bar: Bar}'", Params: []modules.Param{
			{Name: "dest"}, {Name: "upd"}, {Name: "recursive_update", Default: true, Type: modules.Bool},
			{Name: "merge_lists", Default: false, Type: modules.Bool},
		}, Ordered: true, Run: update},
}}
