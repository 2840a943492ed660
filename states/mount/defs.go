package mount

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// mount.mounted, mount.swap, mount.unmounted, mount.fstab_present, mount.fstab_absent differ: files of macOS and AIX (/etc/auto_salt, /etc/filesystems) are not chosen by themselves.

// Module is "mount".
var Module = &states.Module{Name: "mount", Doc: "Mounted file systems, swap and the fstab.", Funcs: []states.Def{
	{Name: "fstab_absent", Doc: fstabAbsentDoc, Params: []modules.Param{{Name: "name"}, {Name: "fs_file"}, {Name: "mount_by", Optional: true}, config}, Run: fstabAbsent},
	{Name: "fstab_present", Doc: fstabPresentDoc, Params: []modules.Param{{Name: "name"}, {Name: "fs_file"}, {Name: "fs_vfstype"},
		{Name: "fs_mntops", Default: "defaults"}, {Name: "fs_freq", Default: int64(0)}, {Name: "fs_passno", Default: int64(0)},
		{Name: "mount_by", Optional: true}, config, {Name: "mount", Default: true}, {Name: "match_on", Default: "auto"},
		{Name: "not_change", Default: false}, {Name: "fs_mount", Default: true}}, Run: fstabPresent},
	{Name: "mod_watch", Doc: watchDoc, Params: []modules.Param{{Name: "name"}, {Name: "user", Optional: true}}, Kwargs: "kwargs", Run: modWatch},
	{Name: "mounted", Doc: mountedDoc, Params: []modules.Param{{Name: "name"}, {Name: "device"}, {Name: "fstype"}, {Name: "mkmnt", Default: false},
		{Name: "opts", Default: "defaults"}, {Name: "dump", Default: int64(0)}, {Name: "pass_num", Default: int64(0)}, config,
		{Name: "persist", Default: true}, {Name: "mount", Default: true}, {Name: "user", Optional: true}, {Name: "match_on", Default: "auto"},
		{Name: "device_name_regex", Optional: true}, {Name: "extra_mount_invisible_options", Optional: true},
		{Name: "extra_mount_invisible_keys", Optional: true}, {Name: "extra_mount_ignore_fs_keys", Optional: true},
		{Name: "extra_mount_translate_options", Optional: true}, {Name: "hidden_opts", Optional: true},
		{Name: "bind_mount_copy_active_opts", Default: true}}, Kwargs: "kwargs", Run: mounted},
	{Name: "swap", Doc: swapDoc, Params: []modules.Param{{Name: "name"}, {Name: "persist", Default: true}, config}, Run: swap},
	{Name: "unmounted", Doc: unmountedDoc, Params: []modules.Param{{Name: "name"}, {Name: "device", Optional: true}, config, {Name: "persist", Default: false},
		{Name: "user", Optional: true}}, Kwargs: "kwargs", Run: unmounted},
}}

var config = modules.Param{Name: "config", Default: "/etc/fstab"}

const (
	mountedDoc = `Have a device mounted, with certain options, now and after the next start.

name
    the mount point
device
    the device: a path, UUID=…, LABEL=…, or what the file system takes
fstype
    the type of the file system
mkmnt
    make the mount point
opts
    the options: a list, or a text with commas
dump, pass_num
    the last two fields of the fstab
config
    the fstab
persist
    have it in the fstab
mount
    have it mounted now
user
    who mounts it
match_on
    by which fields an entry of the fstab is found: auto, or a list
device_name_regex
    other devices that are as good: regular expressions
extra_mount_invisible_options, extra_mount_invisible_keys, hidden_opts
    options that do not show after mounting, and those with a value
extra_mount_ignore_fs_keys
    by file system, options that bring no remount
extra_mount_translate_options
    options that show as others after mounting
bind_mount_copy_active_opts
    a bind mount has the options of what it shows`
	unmountedDoc = `Have nothing mounted at a mount point.

name
    the mount point
device
    the device, if only this one is meant
config
    the fstab
persist
    take it out of the fstab as well
user
    who unmounts it`
	swapDoc = `Have a device or a file used for swap.

name
    the device or file
persist
    have it in the fstab
config
    the fstab`
	fstabPresentDoc = `Have an entry in the fstab.

name
    the device: a path, UUID=…, LABEL=…, or what the file system takes
fs_file, fs_vfstype, fs_mntops, fs_freq, fs_passno
    the fields of the entry
mount_by
    write the device as device, label, uuid, partlabel or partuuid
config
    the fstab
mount
    mount a new entry
match_on
    by which fields an entry of the fstab is found: auto, or a list
not_change
    leave an entry with other fields as it is
fs_mount
    the field mount of /etc/filesystems`
	fstabAbsentDoc = `Have no entry in the fstab.

name
    the device
fs_file
    the mount point
mount_by
    the entry has the device as device, label, uuid, partlabel or partuuid
config
    the fstab`
	watchDoc = `Mount anew when a watched state changes.

name
    the mount point
user
    who mounts it`
)
