package sysfs

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

const keyDoc = `key
    The attribute, from /sys on.
`

// Module is Salt's "sysfs".
var Module = &modules.Module{Name: "sysfs", Doc: "Attributes of the Linux kernel below /sys.", Available: available, Funcs: []modules.Def{
	{Name: "attr", Doc: "Return an attribute, or set it if a value is given. For a directory its path is returned.\n\n" + keyDoc + `value
    The new value.`,
		Example: "salt '*' sysfs.attr block/sda/queue/logical_block_size", Params: []modules.Param{{Name: "key"}, {Name: "value", Optional: true}}, Run: attr},
	{Name: "interfaces", Doc: `Return the attributes in a directory: those that can be read (r), written (w), or both (rw).

root
    The directory, from /sys on.`,
		Example: "salt '*' sysfs.interfaces block/sda/queue", Params: []modules.Param{{Name: "root"}}, Run: interfaces},
	{Name: "read", Doc: "Return an attribute, or all in a directory; false if there is none.\n\n" + keyDoc + `    A list of them gives a map.
root
    What is put before the attributes.`,
		Example: "salt '*' sysfs.read class/net/em1/statistics", Params: []modules.Param{{Name: "key"}, {Name: "root", Default: ""}}, Run: read},
	{Name: "target", Doc: "Return the path that an attribute leads to, false if there is none.\n\n" + keyDoc + `full : True
    The whole path, not only its last part.`,
		Example: "salt '*' sysfs.target class/net/lo", Params: []modules.Param{{Name: "key"}, {Name: "full", Default: true}}, Run: target},
	{Name: "write", Doc: "Set an attribute: true if that worked.\n\n" + keyDoc + `value
    The new value.`,
		Example: "salt '*' sysfs.write devices/system/cpu/cpu0/cpufreq/scaling_governor performance", Params: []modules.Param{{Name: "key"}, {Name: "value"}}, Run: write},
}}
