package timezone

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "timezone".
var Module = &modules.Module{Name: "timezone", Doc: "The time zone of the host and of its hardware clock.", Available: available, Funcs: []modules.Def{
	{Name: "get_hwclock", Doc: "Return whether the hardware clock runs in UTC or localtime.", Example: "salt '*' timezone.get_hwclock", Run: getHwclock},
	{Name: "get_offset", Doc: "Return how far the local time is from UTC, as -0700.", Example: "salt '*' timezone.get_offset", Run: getOffset},
	{Name: "get_zone", Doc: "Return the name of the time zone, as America/Denver.", Example: "salt '*' timezone.get_zone", Run: getZone},
	{Name: "get_zonecode", Doc: "Return the letters of the time zone, as MST.", Example: "salt '*' timezone.get_zonecode", Run: getZonecode},
	{Name: "set_hwclock", Doc: "Let the hardware clock run in UTC or localtime.", Example: "salt '*' timezone.set_hwclock UTC", Params: []modules.Param{{Name: "clock"}}, Run: setHwclock},
	{Name: "set_zone", Doc: "Set the time zone. Programs that run already go on with the old one.", Example: "salt '*' timezone.set_zone 'America/Denver'", Params: []modules.Param{{Name: "timezone"}}, Run: setZone},
	{Name: "zone_compare", Doc: "Tell whether the host is in a time zone, by comparing files.", Example: "salt '*' timezone.zone_compare 'America/Denver'", Params: []modules.Param{{Name: "timezone"}}, Run: zoneCompare},
}}
