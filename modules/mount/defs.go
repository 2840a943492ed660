package mount

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "mount".
var Module = &modules.Module{Name: "mount", Doc: "Mounted file systems, swap, and the files that list them.", Docs: &docs, Available: available, Funcs: []modules.Def{
	{Name: "active", Params: []modules.Param{{Name: "extended", Default: false}}, Run: active},
	{Name: "automaster", Params: []modules.Param{{Name: "config", Default: "/etc/auto_salt"}}, Run: automaster},
	{Name: "delete_mount_cache", Params: []modules.Param{{Name: "real_name"}}, Run: deleteMountCache},
	{Name: "filesystems", Params: []modules.Param{{Name: "config", Default: "/etc/filesystems"}}, Run: filesystems},
	{Name: "fstab", Params: []modules.Param{{Name: "config", Default: "/etc/fstab"}}, Run: fstab},
	{Name: "get_device_from_path", Params: []modules.Param{{Name: "path"}}, Run: deviceOf},
	{Name: "get_mount_from_path", Params: []modules.Param{{Name: "path"}}, Run: mountOf},
	{Name: "is_fuse_exec", Params: []modules.Param{{Name: "cmd"}}, Run: isFuseExec},
	{Name: "is_mounted", Params: []modules.Param{{Name: "name"}}, Run: isMounted},
	{Name: "mount", Params: []modules.Param{
		{Name: "name"}, {Name: "device", Default: false}, {Name: "mkmnt", Default: false}, {Name: "fstype", Default: ""},
		{Name: "opts", Default: "defaults"}, {Name: "user", Optional: true}, {Name: "util", Default: "mount"},
	}, Run: mount},
	{Name: "read_mount_cache", Params: []modules.Param{{Name: "name"}}, Run: readMountCache},
	{Name: "remount", Params: []modules.Param{
		{Name: "name"}, {Name: "device"}, {Name: "mkmnt", Default: false}, {Name: "fstype", Default: ""},
		{Name: "opts", Default: "defaults"}, {Name: "user", Optional: true},
	}, Run: remount},
	{Name: "rm_automaster", Params: []modules.Param{{Name: "name"}, {Name: "device"}, {Name: "config", Default: "/etc/auto_salt"}}, Run: rmAutomaster},
	{Name: "rm_filesystems", Params: []modules.Param{{Name: "name"}, {Name: "device"}, {Name: "config", Default: "/etc/filesystems"}}, Run: rmFilesystems},
	{Name: "rm_fstab", Params: []modules.Param{{Name: "name"}, {Name: "device"}, {Name: "config", Default: "/etc/fstab"}}, Run: rmFstab},
	{Name: "rm_vfstab", Params: []modules.Param{{Name: "name"}, {Name: "device"}, {Name: "config", Default: "/etc/vfstab"}}, Run: rmFstab},
	{Name: "set_automaster", Params: []modules.Param{
		{Name: "name"}, {Name: "device"}, {Name: "fstype"}, {Name: "opts", Default: ""}, {Name: "config", Default: "/etc/auto_salt"},
		{Name: "test", Default: false}, {Name: "not_change", Default: false},
	}, Kwargs: "kwargs", Run: setAutomaster},
	{Name: "set_filesystems", Params: []modules.Param{
		{Name: "name"}, {Name: "device"}, {Name: "vfstype"}, {Name: "opts", Default: "-"}, {Name: "mount", Default: "true"},
		{Name: "config", Default: "/etc/filesystems"}, {Name: "test", Default: false}, {Name: "match_on", Default: "auto"},
		{Name: "not_change", Default: false},
	}, Kwargs: "kwargs", Run: setFilesystems},
	{Name: "set_fstab", Params: []modules.Param{
		{Name: "name"}, {Name: "device"}, {Name: "fstype"}, {Name: "opts", Default: "defaults"}, {Name: "dump", Default: int64(0)},
		{Name: "pass_num", Default: int64(0)}, {Name: "config", Default: "/etc/fstab"}, {Name: "test", Default: false},
		{Name: "match_on", Default: "auto"}, {Name: "not_change", Default: false},
	}, Kwargs: "kwargs", Run: setFstab},
	{Name: "set_vfstab", Params: []modules.Param{
		{Name: "name"}, {Name: "device"}, {Name: "fstype"}, {Name: "opts", Default: "-"}, {Name: "device_fsck", Default: "-"},
		{Name: "pass_fsck", Default: "-"}, {Name: "mount_at_boot", Default: "yes"}, {Name: "config", Default: "/etc/vfstab"},
		{Name: "test", Default: false}, {Name: "match_on", Default: "auto"}, {Name: "not_change", Default: false},
	}, Kwargs: "kwargs", Run: setVfstab},
	{Name: "swapoff", Params: []modules.Param{{Name: "name"}}, Run: swapoff},
	{Name: "swapon", Params: []modules.Param{{Name: "name"}, {Name: "priority", Optional: true}}, Run: swapon},
	{Name: "swaps", Run: swaps},
	{Name: "umount", Params: []modules.Param{
		{Name: "name"}, {Name: "device", Optional: true}, {Name: "user", Optional: true}, {Name: "util", Default: "mount"},
		{Name: "lazy", Default: false},
	}, Run: umount},
	{Name: "vfstab", Params: []modules.Param{{Name: "config", Default: "/etc/vfstab"}}, Run: fstab},
	{Name: "write_mount_cache", Params: []modules.Param{{Name: "real_name"}, {Name: "device"}, {Name: "mkmnt"}, {Name: "fstype"}, {Name: "mount_opts"}}, Run: writeMountCache},
}}
