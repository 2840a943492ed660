package disk

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "disk".
var Module = &modules.Module{Name: "disk", Doc: "Disks and the file systems on them.", Available: available, Funcs: []modules.Def{
	{Name: "blkid", Doc: `Return what blkid knows of block devices: UUID, LABEL, TYPE and so on.

device
    Only this device.
token
    Only devices with such an attribute.`,
		Example: `salt '*' disk.blkid
salt '*' disk.blkid token='TYPE=ext4'`, Params: []modules.Param{{Name: "device", Optional: true}, {Name: "token", Optional: true}}, Run: blkid},
	{Name: "dump", Doc: `Return what blockdev tells of a device, False if it fails.

args
    The attributes that are wanted.`,
		Example: "salt '*' disk.dump /dev/sda1", Params: []modules.Param{{Name: "device"}, {Name: "args", Optional: true}}, Run: dump},
	{Name: "format", Python: "format_", Doc: `Make a file system on a device and tell whether that worked.

fs_type : ext4
    Its type.
inode_size
    The size of inodes (ext and xfs).
lazy_itable_init
    Initialize the inode table later (ext).
fat
    The size of a FAT: 12, 16 or 32.
force : False
    Do it even if the device does not look like one (ext and xfs).`,
		Example: "salt '*' disk.format /dev/sdx1", Params: []modules.Param{
			{Name: "device"}, {Name: "fs_type", Default: "ext4"}, {Name: "inode_size", Optional: true},
			{Name: "lazy_itable_init", Optional: true}, {Name: "fat", Optional: true}, {Name: "force", Default: false},
		}, Run: format},
	{Name: "fstype", Doc: "Return the type of the file system on a device.", Example: "salt '*' disk.fstype /dev/sdx1", Params: []modules.Param{{Name: "device"}}, Run: fstype},
	{Name: "get_fstype_from_path", Doc: "Return the type of the file system that holds a path.", Example: "salt '*' disk.get_fstype_from_path /root", Params: []modules.Param{{Name: "path"}}, Run: fstypeOfPath},
	{Name: "hdparms", Doc: `Return what hdparm tells of disks.

disks
    One disk or several.
args
    The flags of hdparm to ask with.`,
		Example: "salt '*' disk.hdparms /dev/sda", Params: []modules.Param{{Name: "disks"}, {Name: "args", Default: "aAbBcCdgHiJkMmNnQrRuW"}}, Run: hdparms},
	{Name: "hpa", Doc: `Return the protected areas of disks, or set their size. Setting it can destroy data.

size
    The number of sectors to hide, or a percentage.`,
		Example: `salt '*' disk.hpa /dev/sda
salt '*' disk.hpa /dev/sda 5%`, Params: []modules.Param{{Name: "disks"}, {Name: "size", Optional: true}}, Run: hpa},
	{Name: "inodeusage", Doc: `Return how many inodes of each file system are used.

args
    Flags for df.`,
		Example: "salt '*' disk.inodeusage", Params: []modules.Param{{Name: "args", Optional: true}}, Run: inodeusage},
	{Name: "iostat", Doc: `Return the averages of what iostat measures.

interval : 1
    Seconds between two measurements.
count : 5
    How many measurements.
disks
    One disk or several; all if there is none.`,
		Example: "salt '*' disk.iostat 1 5 disks=sda", Params: []modules.Param{{Name: "interval", Default: int64(1)}, {Name: "count", Default: int64(5)}, {Name: "disks", Optional: true}}, Run: iostat},
	{Name: "percent", Doc: "Return how full the file systems are, or the one mounted at a place.", Example: "salt '*' disk.percent /var", Params: []modules.Param{{Name: "args", Optional: true}}, Run: percent},
	{Name: "resize2fs", Doc: "Make an ext file system fill its device: True if that worked.", Example: "salt '*' disk.resize2fs /dev/sda1", Params: []modules.Param{{Name: "device"}}, Run: resize2fs},
	{Name: "smart_attributes", Doc: `Return the SMART attributes of a disk.

attributes
    The numbers of those that are wanted.
values
    The values of each that are wanted.`,
		Example: "salt '*' disk.smart_attributes /dev/sda attributes=[5,187,188]", Params: []modules.Param{{Name: "dev"}, {Name: "attributes", Optional: true}, {Name: "values", Optional: true}}, Run: smartAttributes},
	{Name: "tune", Doc: "Set attributes of a device: read-ahead, filesystem-read-ahead, read-only and read-write, the last two to True.", Example: "salt '*' disk.tune /dev/sda1 read-ahead=1024 read-write=True", Params: []modules.Param{{Name: "device"}}, Kwargs: "kwargs", Run: tune},
	{Name: "usage", Doc: `Return how much of each file system is used.

args
    Flags for df.`,
		Example: "salt '*' disk.usage", Params: []modules.Param{{Name: "args", Optional: true}}, Run: usage},
	{Name: "wipe", Doc: "Remove the signatures of file systems from a device and tell whether that worked.", Example: "salt '*' disk.wipe /dev/sda1", Params: []modules.Param{{Name: "device"}}, Run: wipe},
}}
