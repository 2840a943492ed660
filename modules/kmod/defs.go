package kmod

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "kmod".
var Module = &modules.Module{Name: "kmod", Doc: "Modules of the Linux kernel.", Available: available, Funcs: []modules.Def{
	{Name: "available", Doc: "Return the names of all modules that the kernel could load or has built in.", Example: "salt '*' kmod.available", Run: listAvailable},
	{Name: "check_available", Doc: "Tell whether there is such a module.", Example: "salt '*' kmod.check_available kvm", Params: []modules.Param{{Name: "mod"}}, Run: checkAvailable},
	{Name: "is_loaded", Doc: "Tell whether a module is loaded.", Example: "salt '*' kmod.is_loaded kvm", Params: []modules.Param{{Name: "mod"}}, Run: isLoaded},
	{Name: "load", Doc: `Load a module and return the names of those that were loaded.

persist : False
    Load it at every boot, too.`,
		Example: "salt '*' kmod.load kvm", Params: []modules.Param{{Name: "mod"}, {Name: "persist", Default: false}}, Run: load},
	{Name: "lsmod", Doc: "Return what is known of the loaded modules.", Example: "salt '*' kmod.lsmod", Run: lsmod},
	{Name: "mod_list", Doc: `Return the names of the loaded modules.

only_persist : False
    Return those that are loaded at every boot.`,
		Example: "salt '*' kmod.mod_list", Params: []modules.Param{{Name: "only_persist", Default: false}}, Run: modList},
	{Name: "remove", Doc: `Remove a module and return the names of those that were removed.

persist : False
    Do not load it at boot any more, too.
comment : True
    Then leave it in the file as a comment.`,
		Example: "salt '*' kmod.remove kvm", Params: []modules.Param{{Name: "mod"}, {Name: "persist", Default: false}, {Name: "comment", Default: true}}, Run: remove},
}}
