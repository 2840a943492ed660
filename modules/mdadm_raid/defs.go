package mdadm_raid

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "raid".
var Module = &modules.Module{Name: "mdadm_raid", Virtual: "raid", Doc: "Software RAID with mdadm.", Available: available, Funcs: []modules.Def{
	{Name: "add", Doc: "Add a device to an array and tell whether that worked.", Example: "salt '*' raid.add /dev/md0 /dev/sda1", Params: []modules.Param{{Name: "name"}, {Name: "device"}}, Run: add},
	{Name: "assemble", Doc: `Assemble an array of devices that belong to it. Further arguments are options of mdadm.

test_mode : False
    Only return the command.`,
		Example: "salt '*' raid.assemble /dev/md0 '/dev/xvdd,/dev/xvde'", Params: []modules.Param{{Name: "name"}, {Name: "devices"}, {Name: "test_mode", Default: false}}, Kwargs: "kwargs", Run: assemble},
	{Name: "create", Doc: `Make an array. Further arguments are options of mdadm.

devices
    A list of devices.
metadata : default
    The version of the superblock.
test_mode : False
    Only return the command.`,
		Example: "salt '*' raid.create /dev/md0 level=1 devices=['/dev/xvdd','/dev/xvde'] spare-devices=1", Params: []modules.Param{{Name: "name"}, {Name: "level"}, {Name: "devices"}, {Name: "metadata", Default: "default"}, {Name: "test_mode", Default: false}}, Kwargs: "kwargs", Run: create},
	{Name: "destroy", Doc: "Stop an array, clear its devices and take it out of the configuration: True if it is gone.", Example: "salt '*' raid.destroy /dev/md0", Params: []modules.Param{{Name: "device"}}, Run: destroy},
	{Name: "detail", Doc: "Return what is known of an array.", Example: "salt '*' raid.detail /dev/md0", Params: []modules.Param{{Name: "device", Default: "/dev/md0"}}, Run: detail},
	{Name: "examine", Doc: `Return what is known of a device of an array.

quiet : False
    A device that is none is no failure.`,
		Example: "salt '*' raid.examine /dev/sda1", Params: []modules.Param{{Name: "device"}, {Name: "quiet", Default: false}}, Run: examine},
	{Name: "list", Python: "list_", Doc: "Return all arrays.", Example: "salt '*' raid.list", Run: list},
	{Name: "save_config", Doc: "Write the arrays into the configuration of mdadm.", Example: "salt '*' raid.save_config", Run: saveConfig},
	{Name: "stop", Doc: "Stop all arrays: True if that did not work, as in Salt.", Example: "salt '*' raid.stop", Run: stop},
}}
