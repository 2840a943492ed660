package keyboard

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "keyboard".
var Module = &modules.Module{Name: "keyboard", Doc: "The layouts of the keyboard.", Available: available, Funcs: []modules.Def{
	{Name: "get_sys", Doc: "Return the layout of the console.", Example: "salt '*' keyboard.get_sys", Run: getSys},
	{Name: "get_x", Doc: "Return the layout of X.", Example: "salt '*' keyboard.get_x", Run: getX},
	{Name: "set_sys", Doc: "Set the layout of the console.", Example: "salt '*' keyboard.set_sys dvorak", Params: []modules.Param{{Name: "layout"}}, Run: setSys},
	{Name: "set_x", Doc: "Set the layout of X.", Example: "salt '*' keyboard.set_x dvorak", Params: []modules.Param{{Name: "layout"}}, Run: setX},
}}
