package parted_partition

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "partition".
var Module = &modules.Module{Name: "parted_partition", Virtual: "partition", Doc: "Partitions of disks with parted.", Docs: &docs, Available: available, Funcs: []modules.Def{
	{Name: "align_check",
		Params: []modules.Param{{Name: "device"}, {Name: "part_type"}, {Name: "partition"}}, Run: alignCheck},
	{Name: "check", Params: []modules.Param{{Name: "device"}, {Name: "minor"}}, Run: check},
	{Name: "cp", Params: []modules.Param{{Name: "device"}, {Name: "from_minor"}, {Name: "to_minor"}}, Run: copyPartition},
	{Name: "disk_set", Params: []modules.Param{{Name: "device"}, {Name: "flag"}, {Name: "state"}}, Run: diskSet},
	{Name: "disk_toggle", Params: []modules.Param{{Name: "device"}, {Name: "flag"}}, Run: diskToggle},
	{Name: "exists", Params: []modules.Param{{Name: "device", Default: ""}}, Run: exists},
	{Name: "get_block_device", Run: blockDevices},
	{Name: "get_id", Params: []modules.Param{{Name: "device"}, {Name: "minor"}}, Run: getID},
	{Name: "list", Python: "list_",
		Params: []modules.Param{{Name: "device"}, {Name: "unit", Optional: true}}, Run: list},
	{Name: "mkfs", Params: []modules.Param{{Name: "device"}, {Name: "fs_type"}}, Run: mkfs},
	{Name: "mklabel", Params: []modules.Param{{Name: "device"}, {Name: "label_type"}}, Run: mklabel},
	{Name: "mkpart",
		Params: []modules.Param{{Name: "device"}, {Name: "part_type"}, {Name: "fs_type", Optional: true}, {Name: "start", Optional: true}, {Name: "end", Optional: true}}, Run: mkpart},
	{Name: "mkpartfs", Params: []modules.Param{{Name: "device"}, {Name: "part_type"}, {Name: "fs_type", Optional: true}, {Name: "start", Optional: true}, {Name: "end", Optional: true}}, Run: mkpart},
	{Name: "name", Params: []modules.Param{{Name: "device"}, {Name: "partition"}, {Name: "name"}}, Run: name},
	{Name: "probe", Args: "devices", Run: probe},
	{Name: "rescue", Params: []modules.Param{{Name: "device"}, {Name: "start"}, {Name: "end"}}, Run: rescue},
	{Name: "resize", Params: []modules.Param{{Name: "device"}, {Name: "minor"}, {Name: "start"}, {Name: "end"}}, Run: resize},
	{Name: "rm", Params: []modules.Param{{Name: "device"}, {Name: "minor"}}, Run: remove},
	{Name: "set", Python: "set_",
		Params: []modules.Param{{Name: "device"}, {Name: "minor"}, {Name: "flag"}, {Name: "state"}}, Run: set},
	{Name: "set_id", Params: []modules.Param{{Name: "device"}, {Name: "minor"}, {Name: "system_id"}}, Run: setID},
	{Name: "system_types", Run: systemTypes},
	{Name: "toggle", Params: []modules.Param{{Name: "device"}, {Name: "partition"}, {Name: "flag"}}, Run: toggle},
}}
