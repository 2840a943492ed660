package environ

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "environ": environment variables of the job.
var Module = &modules.Module{Name: "environ", Doc: "Environment variables of the job.", Funcs: []modules.Def{
	{Name: "get", Doc: `Return an environment variable.

key
    Its name.
default
    What is returned if there is no such variable.`,
		Example: `salt '*' environ.get foo
salt '*' environ.get baz default=False`, Params: []modules.Param{{Name: "key"}, {Name: "default", Default: "", Type: modules.String}}, Run: get},
	{Name: "has_value", Doc: `Tell whether there is an environment variable, or whether it has a certain value.

key
    Its name.
value
    The value that it must have.`,
		Example: "salt '*' environ.has_value foo", Params: []modules.Param{{Name: "key"}, {Name: "value", Optional: true}}, Run: hasValue},
	{Name: "item", Doc: `Return several environment variables.

keys
    A name, or a list of names.
default
    What stands for missing variables.`,
		Example: `salt '*' environ.item foo
salt '*' environ.item '[foo, baz]' default=None`, Params: []modules.Param{{Name: "keys"}, {Name: "default", Default: "", Type: modules.String}}, Run: item},
	{Name: "items", Doc: "Return all environment variables.", Example: "salt '*' environ.items", Run: items},
	{Name: "setenv", Doc: `Set several environment variables for the rest of the job. The answer is what they are now.

environ
    A map from names to values: texts, or False.
false_unsets
    Remove variables whose value is False rather than make them empty.
clear_all
    Treat all other variables as if they were given with the value False.
update_minion, permanent
    Not supported: the variables last as long as the job.`,
		Example: `salt '*' environ.setenv '{"foo": "bar", "baz": "quux"}'
salt '*' environ.setenv '{"a": "b", "c": False}' false_unsets=True`, Params: []modules.Param{
			{Name: "environ"}, {Name: "false_unsets", Default: false, Type: modules.Bool},
			{Name: "clear_all", Default: false, Type: modules.Bool},
			{Name: "update_minion", Default: false, Type: modules.Bool},
			{Name: "permanent", Default: false, Type: modules.Bool},
		}, Run: setenv},
	{Name: "setval", Doc: `Set an environment variable for the rest of the job. The answer is its value, or False if it cannot be set.

key
    Its name.
val
    Its value: a text, or False.
false_unsets
    Remove a variable whose value is False rather than make it empty.
permanent
    Not supported: the variable lasts as long as the job.`,
		Example: `salt '*' environ.setval foo bar
salt '*' environ.setval baz val=False false_unsets=True`, Params: []modules.Param{
			{Name: "key"}, {Name: "val"}, {Name: "false_unsets", Default: false, Type: modules.Bool},
			{Name: "permanent", Default: false, Type: modules.Bool},
		}, Run: setval},
}}
