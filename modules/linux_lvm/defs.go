package linux_lvm

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "lvm".
var Module = &modules.Module{Name: "linux_lvm", Virtual: "lvm", Doc: "Physical volumes, volume groups and logical volumes of LVM.", Available: available, Funcs: []modules.Def{
	{Name: "fullversion", Doc: "Return all version numbers of LVM.", Example: "salt '*' lvm.fullversion", Run: fullVersion},
	{Name: "lvcreate", Doc: `Make a logical volume.

size, extents
    Its size, one of both.
snapshot
    The volume that it shall be a snapshot of.
pv
    The physical volume to put it on.
thinvolume, thinpool : False
    Make a thin volume, or a pool for such.

Further arguments are options of lvcreate.`,
		Example: "salt '*' lvm.lvcreate new_lv my_vg size=10G", Params: []modules.Param{{Name: "lvname"}, {Name: "vgname"}, {Name: "size", Optional: true}, {Name: "extents", Optional: true}, {Name: "snapshot", Optional: true}, {Name: "pv", Optional: true}, {Name: "thinvolume", Default: false}, {Name: "thinpool", Default: false}, {Name: "force", Default: false}}, Kwargs: "kwargs", Run: lvcreate},
	{Name: "lvdisplay", Doc: `Return the logical volumes, or one.

quiet : False
    A name that is none is no failure.`,
		Example: "salt '*' lvm.lvdisplay /dev/vg/lv", Params: []modules.Param{{Name: "lvname", Default: ""}, {Name: "quiet", Default: false}}, Run: lvdisplay},
	{Name: "lvextend", Doc: `Make a logical volume larger.

resizefs : False
    Change the file system on it, too.`,
		Example: "salt '*' lvm.lvextend +12M /dev/vg/lv", Params: []modules.Param{{Name: "size", Optional: true}, {Name: "lvpath", Optional: true}, {Name: "extents", Optional: true}, {Name: "force", Default: false}, {Name: "resizefs", Default: false}}, Run: lvextend},
	{Name: "lvremove", Doc: "Remove a logical volume.", Example: "salt '*' lvm.lvremove my_lv my_vg force=True", Params: []modules.Param{{Name: "lvname"}, {Name: "vgname"}, {Name: "force", Default: true}}, Run: lvremove},
	{Name: "lvresize", Doc: `Change the size of a logical volume.

resizefs : False
    Change the file system on it, too.`,
		Example: "salt '*' lvm.lvresize +12M /dev/vg/lv", Params: []modules.Param{{Name: "size", Optional: true}, {Name: "lvpath", Optional: true}, {Name: "extents", Optional: true}, {Name: "force", Default: false}, {Name: "resizefs", Default: false}}, Run: lvresize},
	{Name: "pvcreate", Doc: `Make physical volumes of devices. The result is True, or what is in the way.

override : True
    Pass over devices that are volumes already.
force : True
    Answer questions with yes.

Further arguments are options of pvcreate.`,
		Example: "salt '*' lvm.pvcreate /dev/sdb1,/dev/sdb2 dataalignmentoffset=7s", Params: []modules.Param{{Name: "devices"}, {Name: "override", Default: true}, {Name: "force", Default: true}}, Kwargs: "kwargs", Run: pvcreate},
	{Name: "pvdisplay", Doc: `Return the physical volumes, or one.

real : False
    Follow links of device names.
quiet : False
    A device that is none is no failure.`,
		Example: "salt '*' lvm.pvdisplay /dev/md0", Params: []modules.Param{{Name: "pvname", Default: ""}, {Name: "real", Default: false}, {Name: "quiet", Default: false}}, Run: pvdisplay},
	{Name: "pvremove", Doc: `Make devices no physical volumes any more.

override : True
    Pass over devices that are none.`,
		Example: "salt '*' lvm.pvremove /dev/sdb1,/dev/sdb2", Params: []modules.Param{{Name: "devices"}, {Name: "override", Default: true}, {Name: "force", Default: true}}, Run: pvremove},
	{Name: "pvresize", Doc: `Make physical volumes as large as their devices.

override : True
    Pass over devices that are none.`,
		Example: "salt '*' lvm.pvresize /dev/sdb1,/dev/sdb2", Params: []modules.Param{{Name: "devices"}, {Name: "override", Default: true}, {Name: "force", Default: true}}, Run: pvresize},
	{Name: "version", Doc: "Return the version of LVM.", Example: "salt '*' lvm.version", Run: version},
	{Name: "vgcreate", Doc: "Make a volume group of physical volumes. Further arguments are options of vgcreate.", Example: "salt '*' lvm.vgcreate my_vg /dev/sdb1,/dev/sdb2", Params: []modules.Param{{Name: "vgname"}, {Name: "devices"}, {Name: "force", Default: false}}, Kwargs: "kwargs", Run: vgcreate},
	{Name: "vgdisplay", Doc: `Return the volume groups, or one.

quiet : False
    A name that is none is no failure.`,
		Example: "salt '*' lvm.vgdisplay nova-volumes", Params: []modules.Param{{Name: "vgname", Default: ""}, {Name: "quiet", Default: false}}, Run: vgdisplay},
	{Name: "vgextend", Doc: "Add physical volumes to a volume group.", Example: "salt '*' lvm.vgextend my_vg /dev/sdb1", Params: []modules.Param{{Name: "vgname"}, {Name: "devices"}, {Name: "force", Default: false}}, Run: vgextend},
	{Name: "vgremove", Doc: "Remove a volume group.", Example: "salt '*' lvm.vgremove my_vg", Params: []modules.Param{{Name: "vgname"}, {Name: "force", Default: true}}, Run: vgremove},
}}
