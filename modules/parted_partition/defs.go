package parted_partition

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "partition".
var Module = &modules.Module{Name: "parted_partition", Virtual: "partition", Doc: "Partitions of disks with parted.", Available: available, Funcs: []modules.Def{
	{Name: "align_check", Doc: `Tell whether a partition is aligned, in the words of parted.

part_type
    minimal or optimal.`,
		Example: "salt '*' partition.align_check /dev/sda minimal 1", Params: []modules.Param{{Name: "device"}, {Name: "part_type"}, {Name: "partition"}}, Run: alignCheck},
	{Name: "check", Doc: "Have parted look for errors in the file system on a partition. Versions of parted from 3.0 on cannot do that.", Example: "salt '*' partition.check /dev/sda 1", Params: []modules.Param{{Name: "device"}, {Name: "minor"}}, Run: check},
	{Name: "cp", Doc: "Have parted copy the file system of a partition over another one. Versions of parted from 3.0 on cannot do that.", Example: "salt '*' partition.cp /dev/sda 2 3", Params: []modules.Param{{Name: "device"}, {Name: "from_minor"}, {Name: "to_minor"}}, Run: copyPartition},
	{Name: "disk_set", Doc: `Change a flag of a disk and return what parted said.

flag
    cylinder_alignment, pmbr_boot or implicit_partition_table.
state
    The text on or off; it needs quotes, since YAML takes it for a boolean.`,
		Example: `salt '*' partition.disk_set /dev/sda pmbr_boot '"on"'`, Params: []modules.Param{{Name: "device"}, {Name: "flag"}, {Name: "state"}}, Run: diskSet},
	{Name: "disk_toggle", Doc: `Turn a flag of a disk on if it is off, and off if it is on.

flag
    As in partition.disk_set.`,
		Example: "salt '*' partition.disk_toggle /dev/sda pmbr_boot", Params: []modules.Param{{Name: "device"}, {Name: "flag"}}, Run: diskToggle},
	{Name: "exists", Doc: "Tell whether a path is a block device.", Example: "salt '*' partition.exists /dev/sdb1", Params: []modules.Param{{Name: "device", Default: ""}}, Run: exists},
	{Name: "get_block_device", Doc: "Return the names of the disks.", Example: "salt '*' partition.get_block_device", Run: blockDevices},
	{Name: "get_id", Doc: "Return the type of a partition as sfdisk prints it, 83 for Linux.", Example: "salt '*' partition.get_id /dev/sda 1", Params: []modules.Param{{Name: "device"}, {Name: "minor"}}, Run: getID},
	{Name: "list", Python: "list_", Doc: `Return what is known of a disk and of its partitions.

unit
    The unit of sizes, such as s, kB, MiB or %.`,
		Example: "salt '*' partition.list /dev/sda unit=s", Params: []modules.Param{{Name: "device"}, {Name: "unit", Optional: true}}, Run: list},
	{Name: "mkfs", Doc: `Make a file system on a partition.

fs_type
    btrfs, ext2, ext3, ext4, fat, fat16, fat32, linux-swap, ntfs, xfs and so on.`,
		Example: "salt '*' partition.mkfs /dev/sda2 ext4", Params: []modules.Param{{Name: "device"}, {Name: "fs_type"}}, Run: mkfs},
	{Name: "mklabel", Doc: `Write an empty partition table.

label_type
    aix, amiga, bsd, dvh, gpt, loop, mac, msdos, pc98 or sun.`,
		Example: "salt '*' partition.mklabel /dev/sda gpt", Params: []modules.Param{{Name: "device"}, {Name: "label_type"}}, Run: mklabel},
	{Name: "mkpart", Doc: `Make a partition.

part_type
    primary, logical or extended.
fs_type
    What the partition is for, as in partition.mkfs.
start, end
    Where it begins and ends, in megabytes if there is no unit.`,
		Example: "salt '*' partition.mkpart /dev/sda primary fs_type=ext4 start=1MiB end=640MiB", Params: []modules.Param{{Name: "device"}, {Name: "part_type"}, {Name: "fs_type", Optional: true}, {Name: "start", Optional: true}, {Name: "end", Optional: true}}, Run: mkpart},
	{Name: "mkpartfs", Doc: "Make a partition: another name of partition.mkpart.", Example: "salt '*' partition.mkpartfs /dev/sda primary fs_type=ext4 start=1MiB end=640MiB", Params: []modules.Param{{Name: "device"}, {Name: "part_type"}, {Name: "fs_type", Optional: true}, {Name: "start", Optional: true}, {Name: "end", Optional: true}}, Run: mkpart},
	{Name: "name", Doc: "Give a partition a name, where the partition table has names.", Example: "salt '*' partition.name /dev/sda 1 'My Documents'", Params: []modules.Param{{Name: "device"}, {Name: "partition"}, {Name: "name"}}, Run: name},
	{Name: "probe", Doc: "Have the kernel read the partition tables of some devices anew, of all without arguments.", Example: "salt '*' partition.probe /dev/sda /dev/sdb", Args: "devices", Run: probe},
	{Name: "rescue", Doc: "Look for a lost partition between two places.", Example: "salt '*' partition.rescue /dev/sda 0 8056", Params: []modules.Param{{Name: "device"}, {Name: "start"}, {Name: "end"}}, Run: rescue},
	{Name: "resize", Doc: "Have parted move the ends of a partition. Versions of parted from 3.0 on cannot do that.", Example: "salt '*' partition.resize /dev/sda 3 200 850", Params: []modules.Param{{Name: "device"}, {Name: "minor"}, {Name: "start"}, {Name: "end"}}, Run: resize},
	{Name: "rm", Doc: "Take a partition out of the partition table.", Example: "salt '*' partition.rm /dev/sda 5", Params: []modules.Param{{Name: "device"}, {Name: "minor"}}, Run: remove},
	{Name: "set", Python: "set_", Doc: `Change a flag of a partition and return what parted said.

flag
    boot, root, swap, hidden, raid, lvm, lba, hp-service, palo, prep, msftres, bios_grub, atvrecv, diag, legacy_boot,
    msftdata, irst, esp or type.
state
    The text on or off; it needs quotes, since YAML takes it for a boolean.`,
		Example: `salt '*' partition.set /dev/sda 1 boot '"on"'`, Params: []modules.Param{{Name: "device"}, {Name: "minor"}, {Name: "flag"}, {Name: "state"}}, Run: set},
	{Name: "set_id", Doc: `Change the type of a partition and return what sfdisk said.

system_id
    One of partition.system_types, as text: 83 alone is a number and refused.`,
		Example: `salt '*' partition.set_id /dev/sda 1 '"83"'`, Params: []modules.Param{{Name: "device"}, {Name: "minor"}, {Name: "system_id"}}, Run: setID},
	{Name: "system_types", Doc: "Return the types of partitions that sfdisk knows.", Example: "salt '*' partition.system_types", Run: systemTypes},
	{Name: "toggle", Doc: `Turn a flag of a partition on if it is off, and off if it is on.

flag
    As in partition.set.`,
		Example: "salt '*' partition.toggle /dev/sda 1 boot", Params: []modules.Param{{Name: "device"}, {Name: "partition"}, {Name: "flag"}}, Run: toggle},
}}
