package aliases

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "aliases".
var Module = &modules.Module{Name: "aliases", Doc: "The file of mail aliases, which the option aliases.file names.", Funcs: []modules.Def{
	{Name: "get_target", Doc: "Return where an alias leads, an empty text if there is none.", Example: "salt '*' aliases.get_target postmaster", Params: []modules.Param{{Name: "alias"}}, Out: "txt", Run: getTarget},
	{Name: "has_target", Doc: "Tell whether an alias leads to a target, which can be a list.", Example: "salt '*' aliases.has_target postmaster root", Params: []modules.Param{{Name: "alias"}, {Name: "target"}}, Out: "txt", Run: hasTarget},
	{Name: "list_aliases", Doc: "Return all aliases and where they lead.", Example: "salt '*' aliases.list_aliases", Out: "yaml", Run: listAliases},
	{Name: "rm_alias", Doc: "Remove an alias.", Example: "salt '*' aliases.rm_alias postmaster", Params: []modules.Param{{Name: "alias"}}, Out: "txt", Run: rmAlias},
	{Name: "set_target", Doc: "Make an alias lead to a target, which can be a list.", Example: "salt '*' aliases.set_target postmaster root", Params: []modules.Param{{Name: "alias"}, {Name: "target"}}, Out: "txt", Run: setTarget},
}}
