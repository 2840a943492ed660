//go:build unix

// Package hosts is Salt's execution module "hosts": the file of host names, /etc/hosts. Salt's source: salt/modules/hosts.py.
package hosts

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "hosts".
var Module = &modules.Module{Name: "hosts", Doc: "The file of host names.", Funcs: []modules.Def{
	{Name: "add_host", Doc: `Add a name to those of an address. What the file says is kept, in Salt's layout.

ip
    The address.
alias
    The name.`,
		Example: "salt '*' hosts.add_host <ip> <alias>", Params: []modules.Param{{Name: "ip"}, {Name: "alias"}}, Run: addHost},
	{Name: "get_alias", Doc: "Return the names of an address.", Example: "salt '*' hosts.get_alias <ip addr>", Params: []modules.Param{{Name: "ip"}}, Run: getAlias},
	{Name: "get_ip", Doc: "Return the address of a name, an empty text if it has none.", Example: "salt '*' hosts.get_ip <hostname>", Params: []modules.Param{{Name: "host"}}, Run: getIP},
	{Name: "has_pair", Doc: "Tell whether an address has a name, or all names of a list.", Example: "salt '*' hosts.has_pair <ip> <alias>", Params: []modules.Param{{Name: "ip"}, {Name: "alias"}}, Run: hasPair},
	{Name: "list_hosts", Doc: "Return the addresses with their names and comments, and the comment lines as comment-0 and so on.", Example: "salt '*' hosts.list_hosts", Run: listHosts},
	{Name: "rm_host", Doc: "Remove a name of an address, and the address with its last name.", Example: "salt '*' hosts.rm_host <ip> <alias>", Params: []modules.Param{{Name: "ip"}, {Name: "alias"}}, Run: rmHost},
	{Name: "set_comment", Doc: "Set the comment behind an address. The result tells whether the file has the address.", Example: "salt '*' hosts.set_comment <ip> <comment>", Params: []modules.Param{{Name: "ip"}, {Name: "comment"}}, Run: setComment},
	{Name: "set_host", Doc: `Make an address have these names and no others. Without names the address is removed.

ip
    The address.
alias
    The names, with blanks between them.
comment
    The comment behind them.`,
		Example: "salt '*' hosts.set_host <ip> <alias>", Params: []modules.Param{{Name: "ip"}, {Name: "alias"}, {Name: "comment", Optional: true}}, Run: setHost},
}}
