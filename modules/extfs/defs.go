package extfs

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "extfs".
var Module = &modules.Module{Name: "extfs", Doc: "File systems of the ext family.", Available: available, Funcs: []modules.Def{
	{Name: "attributes", Doc: `Return the attributes that dumpe2fs tells.

args
    Flags for dumpe2fs.`,
		Example: "salt '*' extfs.attributes /dev/sda1", Params: []modules.Param{{Name: "device"}, {Name: "args", Optional: true}}, Run: attributes},
	{Name: "blocks", Doc: `Return the groups of blocks that dumpe2fs tells.

args
    Flags for dumpe2fs.`,
		Example: "salt '*' extfs.blocks /dev/sda1", Params: []modules.Param{{Name: "device"}, {Name: "args", Optional: true}}, Run: blocks},
	{Name: "dump", Doc: `Return what dumpe2fs tells.

args
    Flags for dumpe2fs.`,
		Example: "salt '*' extfs.dump /dev/sda1", Params: []modules.Param{{Name: "device"}, {Name: "args", Optional: true}}, Run: dump},
	{Name: "mkfs", Doc: `Make a file system and return what mke2fs said.

full_return : False
    Return it as cmd.run_all does.

Further arguments are options of mke2fs by name: label, block_size, inode_size, uuid and so on.`,
		Example: "salt '*' extfs.mkfs /dev/sda1 fs_type=ext4 label=data", Params: []modules.Param{{Name: "device"}, {Name: "fs_type"}, {Name: "full_return", Default: false}}, Kwargs: "kwargs", Run: mkfs},
	{Name: "tune", Doc: `Change a file system and return what tune2fs said.

full_return : False
    Return it as cmd.run_all does.

Further arguments are options of tune2fs by name: label, reserved, max, interval and so on.`,
		Example: "salt '*' extfs.tune /dev/sda1 label=root", Params: []modules.Param{{Name: "device"}, {Name: "full_return", Default: false}}, Kwargs: "kwargs", Run: tune},
}}
