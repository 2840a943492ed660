// Package ini_manage is Salt's execution module "ini": options in ini files, with their comments and order. Salt's source:
// salt/modules/ini_manage.py.
package ini_manage

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "ini".
var Module = &modules.Module{Name: "ini_manage", Virtual: "ini", Doc: "Options in ini files.", Funcs: []modules.Def{
	{Name: "get_ini", Doc: `Return the sections and options of a file.

file_name
    The file.
separator
    What is between an option and its value.
encoding
    The encoding of the file.`,
		Example: "salt '*' ini.get_ini /path/to/ini", Params: []modules.Param{
			{Name: "file_name"}, {Name: "separator", Default: "=", Type: modules.String}, {Name: "encoding", Optional: true},
		}, Ordered: true, Run: getINI},
	{Name: "get_option", Doc: `Return the value of an option, None if there is none.

file_name, separator, encoding
    As with ini.get_ini.
section
    The section; an empty one is the part before the first.
option
    The option.`,
		Example: "salt '*' ini.get_option /path/to/ini section_name option_name", Params: []modules.Param{
			{Name: "file_name"}, {Name: "section"}, {Name: "option"}, {Name: "separator", Default: "=", Type: modules.String},
			{Name: "encoding", Optional: true},
		}, Ordered: true, Run: getOption},
	{Name: "get_section", Doc: `Return the options of a section.

file_name, separator, encoding
    As with ini.get_ini.
section
    The section.`,
		Example: "salt '*' ini.get_section /path/to/ini section_name", Params: []modules.Param{
			{Name: "file_name"}, {Name: "section"}, {Name: "separator", Default: "=", Type: modules.String}, {Name: "encoding", Optional: true},
		}, Ordered: true, Run: getSection},
	{Name: "remove_option", Doc: `Remove an option, and return the value it had.

file_name, separator, encoding
    As with ini.get_ini.
section, option
    The section and the option.`,
		Example: "salt '*' ini.remove_option /path/to/ini section_name option_name", Params: []modules.Param{
			{Name: "file_name"}, {Name: "section"}, {Name: "option"}, {Name: "separator", Default: "=", Type: modules.String},
			{Name: "encoding", Optional: true},
		}, Ordered: true, Run: removeOption},
	{Name: "remove_section", Doc: `Remove a section, and return the options it had.

file_name, separator, encoding
    As with ini.get_ini.
section
    The section.`,
		Example: "salt '*' ini.remove_section /path/to/ini section_name", Params: []modules.Param{
			{Name: "file_name"}, {Name: "section"}, {Name: "separator", Default: "=", Type: modules.String}, {Name: "encoding", Optional: true},
		}, Ordered: true, Run: removeSection},
	{Name: "set_option", Doc: `Set options, and return what changed. An option that is commented out takes the place of the comment; the file is made if
there is none.

file_name, separator, encoding
    As with ini.get_ini.
sections
    A map of sections to maps of options to values. Options outside of a section are keys themselves.
no_spaces
    Put no blanks around the separator.`,
		Example: `salt '*' ini.set_option /path/to/ini '{"section_foo": {"key": "value"}}'`, Params: []modules.Param{
			{Name: "file_name"}, {Name: "sections", Optional: true}, {Name: "separator", Default: "=", Type: modules.String},
			{Name: "encoding", Optional: true}, {Name: "no_spaces", Default: false, Type: modules.Bool},
		}, Ordered: true, Run: setOption},
}}
