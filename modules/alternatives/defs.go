package alternatives

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "alternatives": programs of which the host has several.
var Module = &modules.Module{Name: "alternatives", Doc: `Programs of which the host has several.`, Available: available, Funcs: []modules.Def{
	{Name: "auto", Doc: `Let the program with the highest priority be the one.

name
    The group of programs.`,
		Example: "salt '*' alternatives.auto <name>", Params: []modules.Param{{Name: "name"}}, Run: auto},
	{Name: "check_exists", Doc: `Tell whether a program is among those of a group.

name
    The group of programs.
path
    The program.`,
		Example: "salt '*' alternatives.check_exists name path", Params: []modules.Param{{Name: "name"}, {Name: "path"}}, Run: checkExists},
	{Name: "check_installed", Doc: `Tell whether a program is the one that is used.

name
    The group of programs.
path
    The program.`,
		Example: "salt '*' alternatives.check_installed name path", Params: []modules.Param{{Name: "name"}, {Name: "path"}}, Run: checkInstalled},
	{Name: "display", Out: "txt", Doc: `Return what is known about a group.

name
    The group of programs.`,
		Example: "salt '*' alternatives.display editor", Params: []modules.Param{{Name: "name"}}, Run: display},
	{Name: "install", Out: "txt", Doc: `Add a program to a group.

name
    The group of programs.
link
    The name that stands for the program.
path
    The program.
priority
    Its priority.`,
		Example: "salt '*' alternatives.install editor /usr/bin/editor /usr/bin/emacs23 50", Params: []modules.Param{{Name: "name"}, {Name: "link"}, {Name: "path"}, {Name: "priority"}}, Run: install},
	{Name: "remove", Out: "txt", Doc: `Remove a program from a group.

name
    The group of programs.
path
    The program.`,
		Example: "salt '*' alternatives.remove name path", Params: []modules.Param{{Name: "name"}, {Name: "path"}}, Run: remove},
	{Name: "set", Python: "set_", Doc: `Choose the program.

name
    The group of programs.
path
    The program.`,
		Example: "salt '*' alternatives.set name path", Params: []modules.Param{{Name: "name"}, {Name: "path"}}, Run: set},
	{Name: "show_current", Doc: `Return the program that is used, False if there is none.

name
    The group of programs.`,
		Example: "salt '*' alternatives.show_current editor", Params: []modules.Param{{Name: "name"}}, Run: showCurrent},
	{Name: "show_link", Doc: `Return the name that stands for the program, False if there is none.

name
    The group of programs.`,
		Example: "salt '*' alternatives.show_link editor", Params: []modules.Param{{Name: "name"}}, Run: showLink},
}}
