package augeas_cfg

import "github.com/brine-salt/brine/modules"

// Compatibility.
//
// augeas.execute differs: a path whose brackets do not match has another error text. An empty value is text, where Python's
// library gives bytes.
// augeas.tree differs: it works with Augeas 1.14, which does not take the path that stock asks for.

func init() { modules.Register(Module) }

const loadPathDoc = `load_path
    Further directories of lenses, with colons between them.
`

// loadPath is the last parameter of most functions.
var loadPath = modules.Param{Name: "load_path", Optional: true}

// Module is Salt's "augeas".
var Module = &modules.Module{Name: "augeas_cfg", Virtual: "augeas", Doc: "Configuration files as trees, by augtool.", Available: available, Funcs: []modules.Def{
	{Name: "execute", Doc: `Change trees by commands: set, setm, mv or move, ins or insert, rm or remove. Nothing is saved if one of them fails.

context
    The path that stands before those of the commands.
lens
    The lens to read the file of the context with; no other file is read then.
commands
    The commands.
` + loadPathDoc,
		Example: `salt '*' augeas.execute /files/etc/redis/redis.conf commands='["set bind 0.0.0.0", "set maxmemory 1G"]'`, Params: []modules.Param{{Name: "context", Optional: true}, {Name: "lens", Optional: true}, {Name: "commands", Default: []any{}}, loadPath}, Run: execute},
	{Name: "get", Doc: `Return the value of a node.

value
    A path below the node.
` + loadPathDoc,
		Example: "salt '*' augeas.get /files/etc/hosts/1/ ipaddr", Params: []modules.Param{{Name: "path"}, {Name: "value", Default: ""}, loadPath}, Run: get},
	{Name: "ls", Doc: `Return the children of a node. Those that have children themselves end in a slash.

` + loadPathDoc,
		Example: "salt '*' augeas.ls /files/etc/passwd", Params: []modules.Param{{Name: "path"}, loadPath}, Run: list},
	{Name: "match", Doc: `Return the nodes that a path expression matches.

value
    The value that they must have.
` + loadPathDoc,
		Example: "salt '*' augeas.match /files/etc/services/service-name ssh", Params: []modules.Param{{Name: "path"}, {Name: "value", Default: ""}, loadPath}, Run: match},
	{Name: "remove", Doc: `Remove nodes and what is below them.

` + loadPathDoc,
		Example: "salt '*' augeas.remove /files/etc/sysctl.conf/net.ipv4.conf.all.log_martians", Params: []modules.Param{{Name: "path"}, loadPath}, Run: remove},
	{Name: "setvalue", Args: "args", Doc: `Set the values of nodes: paths and values by turns.

prefix=PATH among them stands before all paths; load_path=DIRECTORIES are further directories of lenses.`,
		Example: "salt '*' augeas.setvalue /files/etc/hosts/1/canonical localhost", Run: setValue},
	{Name: "tree", Doc: `Return the values of a node and of all nodes below it.

` + loadPathDoc,
		Example: "salt '*' augeas.tree /files/etc/hosts", Params: []modules.Param{{Name: "path"}, loadPath}, Run: tree},
}}
