package mount

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "mount".
var Module = &modules.Module{Name: "mount", Doc: "Mounted file systems, swap, and the files that list them.", Available: available, Funcs: []modules.Def{
	{Name: "active", Doc: `Return what is mounted, by mount point.

extended : False
    Tell more of each: numbers, parents, labels.`,
		Example: "salt '*' mount.active", Params: []modules.Param{{Name: "extended", Default: false}}, Run: active},
	{Name: "automaster", Doc: "Return the mounts that the automounter's file lists.", Example: "salt '*' mount.automaster", Params: []modules.Param{{Name: "config", Default: "/etc/auto_salt"}}, Run: automaster},
	{Name: "delete_mount_cache", Doc: "Forget what was remembered of a mount.", Example: "salt '*' mount.delete_mount_cache /mnt/share", Params: []modules.Param{{Name: "real_name"}}, Run: deleteMountCache},
	{Name: "filesystems", Doc: "Return what /etc/filesystems lists. This is for AIX; elsewhere there is nothing.", Example: "salt '*' mount.filesystems", Params: []modules.Param{{Name: "config", Default: "/etc/filesystems"}}, Run: filesystems},
	{Name: "fstab", Doc: "Return what the fstab lists, by mount point.", Example: "salt '*' mount.fstab", Params: []modules.Param{{Name: "config", Default: "/etc/fstab"}}, Run: fstab},
	{Name: "get_device_from_path", Doc: "Return the device that holds a path.", Example: "salt '*' mount.get_device_from_path /", Params: []modules.Param{{Name: "path"}}, Run: deviceOf},
	{Name: "get_mount_from_path", Doc: "Return the mount point that a path is below.", Example: "salt '*' mount.get_mount_from_path /srv/deep/path", Params: []modules.Param{{Name: "path"}}, Run: mountOf},
	{Name: "is_fuse_exec", Doc: "Tell whether a program mounts file systems with FUSE.", Example: "salt '*' mount.is_fuse_exec sshfs", Params: []modules.Param{{Name: "cmd"}}, Run: isFuseExec},
	{Name: "is_mounted", Doc: "Tell whether something is mounted there.", Example: "salt '*' mount.is_mounted /mnt/share", Params: []modules.Param{{Name: "name"}}, Run: isMounted},
	{Name: "mount", Doc: `Mount a device. The result is True, or what mount complained of.

name
    The mount point.
device : False
    The device; False: as the fstab says.
mkmnt : False
    Make the mount point.
fstype, opts
    Type and options, the latter as a list or with commas.
user
    The user to do it as.
util : mount
    The program.`,
		Example: "salt '*' mount.mount /mnt/data /dev/sdz1 True", Params: []modules.Param{
			{Name: "name"}, {Name: "device", Default: false}, {Name: "mkmnt", Default: false}, {Name: "fstype", Default: ""},
			{Name: "opts", Default: "defaults"}, {Name: "user", Optional: true}, {Name: "util", Default: "mount"},
		}, Run: mount},
	{Name: "read_mount_cache", Doc: "Return what was remembered of a mount.", Example: "salt '*' mount.read_mount_cache /mnt/share", Params: []modules.Param{{Name: "name"}}, Run: readMountCache},
	{Name: "remount", Doc: "Mount anew with other options; mount it if it is not mounted.", Example: "salt '*' mount.remount /mnt/data /dev/sdz1 opts=noatime", Params: []modules.Param{
		{Name: "name"}, {Name: "device"}, {Name: "mkmnt", Default: false}, {Name: "fstype", Default: ""},
		{Name: "opts", Default: "defaults"}, {Name: "user", Optional: true},
	}, Run: remount},
	{Name: "rm_automaster", Doc: "Remove a mount from the automounter's file.", Example: "salt '*' mount.rm_automaster /mnt/data /dev/sdz1", Params: []modules.Param{{Name: "name"}, {Name: "device"}, {Name: "config", Default: "/etc/auto_salt"}}, Run: rmAutomaster},
	{Name: "rm_filesystems", Doc: "Remove a mount from /etc/filesystems. This is for AIX; elsewhere the result is False.", Example: "salt '*' mount.rm_filesystems /mnt/data /dev/sdz1", Params: []modules.Param{{Name: "name"}, {Name: "device"}, {Name: "config", Default: "/etc/filesystems"}}, Run: rmFilesystems},
	{Name: "rm_fstab", Doc: "Remove a mount from the fstab.", Example: "salt '*' mount.rm_fstab /mnt/data /dev/sdz1", Params: []modules.Param{{Name: "name"}, {Name: "device"}, {Name: "config", Default: "/etc/fstab"}}, Run: rmFstab},
	{Name: "rm_vfstab", Doc: "Remove a mount from a vfstab.", Example: "salt '*' mount.rm_vfstab /mnt/data /device/c0t0d0p0", Params: []modules.Param{{Name: "name"}, {Name: "device"}, {Name: "config", Default: "/etc/vfstab"}}, Run: rmFstab},
	{Name: "set_automaster", Doc: `Put a mount into the automounter's file, or change it: "new", "change" or "present".

test : False
    Only tell what would be done.
not_change : False
    Leave an entry that is there as it is.`,
		Example: "salt '*' mount.set_automaster /mnt/data /dev/sdz1 ext4", Params: []modules.Param{
			{Name: "name"}, {Name: "device"}, {Name: "fstype"}, {Name: "opts", Default: ""}, {Name: "config", Default: "/etc/auto_salt"},
			{Name: "test", Default: false}, {Name: "not_change", Default: false},
		}, Kwargs: "kwargs", Run: setAutomaster},
	{Name: "set_filesystems", Doc: "Put a mount into /etc/filesystems. This is for AIX; elsewhere nothing is done.", Example: "salt '*' mount.set_filesystems /mnt/data /dev/sdz1 jfs2", Params: []modules.Param{
		{Name: "name"}, {Name: "device"}, {Name: "vfstype"}, {Name: "opts", Default: "-"}, {Name: "mount", Default: "true"},
		{Name: "config", Default: "/etc/filesystems"}, {Name: "test", Default: false}, {Name: "match_on", Default: "auto"},
		{Name: "not_change", Default: false},
	}, Kwargs: "kwargs", Run: setFilesystems},
	{Name: "set_fstab", Doc: `Put a mount into the fstab, or change it: "new", "change" or "present".

match_on : auto
    The fields by which an entry is found: device, name, fstype, opts, dump, pass_num. auto is the device, or the name for
    file systems without one.
test : False
    Only tell what would be done.
not_change : False
    Leave an entry that is there as it is.`,
		Example: "salt '*' mount.set_fstab /mnt/data /dev/sdz1 ext4", Params: []modules.Param{
			{Name: "name"}, {Name: "device"}, {Name: "fstype"}, {Name: "opts", Default: "defaults"}, {Name: "dump", Default: int64(0)},
			{Name: "pass_num", Default: int64(0)}, {Name: "config", Default: "/etc/fstab"}, {Name: "test", Default: false},
			{Name: "match_on", Default: "auto"}, {Name: "not_change", Default: false},
		}, Kwargs: "kwargs", Run: setFstab},
	{Name: "set_vfstab", Doc: `Put a mount into a vfstab, or change it: "new", "change" or "present".`, Example: "salt '*' mount.set_vfstab /mnt/data /device/c0t0d0p0 ufs", Params: []modules.Param{
		{Name: "name"}, {Name: "device"}, {Name: "fstype"}, {Name: "opts", Default: "-"}, {Name: "device_fsck", Default: "-"},
		{Name: "pass_fsck", Default: "-"}, {Name: "mount_at_boot", Default: "yes"}, {Name: "config", Default: "/etc/vfstab"},
		{Name: "test", Default: false}, {Name: "match_on", Default: "auto"}, {Name: "not_change", Default: false},
	}, Kwargs: "kwargs", Run: setVfstab},
	{Name: "swapoff", Doc: "Stop using a swap device or file: None if it was not in use.", Example: "salt '*' mount.swapoff /swapfile", Params: []modules.Param{{Name: "name"}}, Run: swapoff},
	{Name: "swapon", Doc: "Use a swap device or file.", Example: "salt '*' mount.swapon /swapfile", Params: []modules.Param{{Name: "name"}, {Name: "priority", Optional: true}}, Run: swapon},
	{Name: "swaps", Doc: "Return the swap devices and files in use.", Example: "salt '*' mount.swaps", Run: swaps},
	{Name: "umount", Doc: `Unmount. The result is True, or what was in the way.

device
    The device to unmount, rather than what is at the mount point.
lazy : False
    Detach it now and clean up when it is not used any more.`,
		Example: "salt '*' mount.umount /mnt/data", Params: []modules.Param{
			{Name: "name"}, {Name: "device", Optional: true}, {Name: "user", Optional: true}, {Name: "util", Default: "mount"},
			{Name: "lazy", Default: false},
		}, Run: umount},
	{Name: "vfstab", Doc: "Return what a vfstab lists, by mount point.", Example: "salt '*' mount.vfstab", Params: []modules.Param{{Name: "config", Default: "/etc/vfstab"}}, Run: fstab},
	{Name: "write_mount_cache", Doc: "Remember how something was mounted.", Example: "salt '*' mount.write_mount_cache /mnt/share /dev/sda1 False ext4 defaults,nosuid", Params: []modules.Param{{Name: "real_name"}, {Name: "device"}, {Name: "mkmnt"}, {Name: "fstype"}, {Name: "mount_opts"}}, Run: writeMountCache},
}}
