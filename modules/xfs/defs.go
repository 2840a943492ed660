package xfs

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "xfs".
var Module = &modules.Module{Name: "xfs", Doc: "XFS file systems.", Available: available, Funcs: []modules.Def{
	{Name: "defragment", Doc: "Defragment a mounted file system and return the log.", Example: "salt '*' xfs.defragment /dev/sda1", Params: []modules.Param{{Name: "device"}}, Run: defragment},
	{Name: "devices", Doc: "Return the devices with an XFS file system, with what is known of each.", Example: "salt '*' xfs.devices", Run: devices},
	{Name: "dump", Doc: `Dump a file system with xfsdump.

destination
    The file or the tape to dump to.
level : 0
    The level of the dump, 0 to 9.
label
    The label of the dump, by default one with device and time.
noerase
    Do not erase the tape before.`,
		Example: "salt '*' xfs.dump /dev/sda1 /srv/backup/sda1 label='Books of the company'", Params: []modules.Param{{Name: "device"}, {Name: "destination"}, {Name: "level", Default: int64(0)}, {Name: "label", Optional: true}, {Name: "noerase", Optional: true}}, Run: dump},
	{Name: "estimate", Doc: "Return how much room directories would take in an XFS file system.", Example: "salt '*' xfs.estimate /srv/data", Params: []modules.Param{{Name: "path"}}, Run: estimate},
	{Name: "growfs", Doc: "Extend a mounted file system to the size of its device and return its geometry.", Example: "salt '*' xfs.growfs /srv/data", Params: []modules.Param{{Name: "mount_point"}}, Run: growfs},
	{Name: "info", Doc: "Return the geometry of a file system.", Example: "salt '*' xfs.info /dev/sda1", Params: []modules.Param{{Name: "device"}}, Run: info},
	{Name: "inventory", Doc: "Return the dumps that xfsdump has made.", Example: "salt '*' xfs.inventory", Run: inventory},
	{Name: "mkfs", Doc: `Make a file system and return its geometry.

label
    The label of the file system.
ssize
    The size of a sector.
noforce
    Do not write over a file system that is there.
bso, gmo, ino, lso, rso, nmo, dso
    Options for blocks, metadata, inodes, the log, the realtime section, names and data, such as size=512.`,
		Example: "salt '*' xfs.mkfs /dev/sda1 dso='su=32k,sw=6' noforce=True", Params: []modules.Param{
			{Name: "device"}, {Name: "label", Optional: true}, {Name: "ssize", Optional: true}, {Name: "noforce", Optional: true},
			{Name: "bso", Optional: true}, {Name: "gmo", Optional: true}, {Name: "ino", Optional: true}, {Name: "lso", Optional: true},
			{Name: "rso", Optional: true}, {Name: "nmo", Optional: true}, {Name: "dso", Optional: true},
		}, Run: mkfs},
	{Name: "modify", Doc: `Change a file system and return what is known of it afterwards.

label
    A new label.
lazy_counting
    Whether counters of the superblock are kept lazily.
uuid
    True for a new UUID, False for none.`,
		Example: "salt '*' xfs.modify /dev/sda1 label=backup lazy_counting=False", Params: []modules.Param{{Name: "device"}, {Name: "label", Optional: true}, {Name: "lazy_counting", Optional: true}, {Name: "uuid", Optional: true}}, Run: modify},
	{Name: "prune_dump", Doc: `Take a dump out of the inventory and return what was known of it.

sessionid
    The id of the dump, as in xfs.inventory.`,
		Example: "salt '*' xfs.prune_dump b74a3586-e52e-4a4a-8775-c3334fa8ea2c", Params: []modules.Param{{Name: "sessionid"}}, Run: pruneDump},
}}
