package system

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "system".
var Module = &modules.Module{Name: "system", Doc: "Stopping the host, its clock and its name.", Available: available, Funcs: []modules.Def{
	{Name: "get_computer_desc", Doc: "Return the host's descriptive name, False if it has none.", Example: "salt '*' system.get_computer_desc", Run: getDesc},
	{Name: "get_computer_name", Doc: "Return the host's name.", Example: "salt '*' system.get_computer_name", Run: getName},
	{Name: "get_system_date", Doc: `Return the date.

utc_offset
    Where the date is wanted, as +0600; the local time if there is none.`,
		Example: "salt '*' system.get_system_date", Params: []modules.Param{{Name: "utc_offset", Optional: true}}, Run: getDate},
	{Name: "get_system_date_time", Doc: `Return the date and the time.

utc_offset
    Where they are wanted, as +0600; the local time if there is none.`,
		Example: `salt '*' system.get_system_date_time "'-0500'"`, Params: []modules.Param{{Name: "utc_offset", Optional: true}}, Run: getDateTime},
	{Name: "get_system_time", Doc: `Return the time.

utc_offset
    Where it is wanted, as +0600; the local time if there is none.`,
		Example: "salt '*' system.get_system_time", Params: []modules.Param{{Name: "utc_offset", Optional: true}}, Run: getTime},
	{Name: "halt", Doc: "Halt the host.", Example: "salt '*' system.halt", Run: halt},
	{Name: "has_settable_hwclock", Doc: "Tell whether the host has a hardware clock that can be set.", Example: "salt '*' system.has_settable_hwclock", Run: settable},
	{Name: "init", Python: "init", Doc: "Change the runlevel of the host.", Example: "salt '*' system.init 3", Params: []modules.Param{{Name: "runlevel"}}, Run: runlevel},
	{Name: "poweroff", Doc: "Power the host off.", Example: "salt '*' system.poweroff", Run: poweroff},
	{Name: "reboot", Doc: `Reboot the host.

at_time
    When, as shutdown(8) takes it; now if not given.`,
		Example: "salt '*' system.reboot", Params: []modules.Param{{Name: "at_time", Optional: true}}, Run: reboot},
	{Name: "set_computer_desc", Doc: "Set the host's descriptive name.", Example: `salt '*' system.set_computer_desc "Anna's laptop"`, Params: []modules.Param{{Name: "desc"}}, Run: setDesc},
	{Name: "set_computer_name", Doc: "Set the host's name.", Example: "salt '*' system.set_computer_name web.example.org", Params: []modules.Param{{Name: "hostname"}}, Run: setName},
	{Name: "set_system_date", Doc: "Set the date, as 2015-05-12, 05-12-2015, 05-12-15, or with slashes.", Example: "salt '*' system.set_system_date '03-28-13'", Params: []modules.Param{{Name: "newdate"}, {Name: "utc_offset", Optional: true}}, Run: setDate},
	{Name: "set_system_date_time", Doc: `Set the date and the time; what is not given stays.

utc_offset
    Where they hold, as +0600; the local time if there is none.`,
		Example: `salt '*' system.set_system_date_time 2015 5 12 11 37 53 "'-0500'"`, Params: []modules.Param{
			{Name: "years", Optional: true}, {Name: "months", Optional: true}, {Name: "days", Optional: true}, {Name: "hours", Optional: true},
			{Name: "minutes", Optional: true}, {Name: "seconds", Optional: true}, {Name: "utc_offset", Optional: true},
		}, Run: setDateTime},
	{Name: "set_system_time", Doc: "Set the time, as 11:37:53 PM or 23:37, with or without seconds.", Example: `salt '*' system.set_system_time "'11:20'"`, Params: []modules.Param{{Name: "newtime"}, {Name: "utc_offset", Optional: true}}, Run: setTime},
	{Name: "shutdown", Doc: `Shut the host down.

at_time
    When, as shutdown(8) takes it; now if not given.`,
		Example: "salt '*' system.shutdown 5", Params: []modules.Param{{Name: "at_time", Optional: true}}, Run: shutdown},
}}
