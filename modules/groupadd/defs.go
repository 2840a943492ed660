package groupadd

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "group" where groups are made with groupadd.
var Module = &modules.Module{Name: "groupadd", Virtual: "group", Doc: "Groups, made and changed with groupadd and its like.", Available: available, Funcs: []modules.Def{
	{Name: "add", Doc: `Add a group. The result tells whether that worked.

gid
    The group's number.
system : False
    Make a system group.
root
    The directory of another system to do this in.
non_unique : False
    Allow a gid that another group has.
local : False
    Use lgroupadd, which leaves network directories alone.`,
		Example: "salt '*' group.add web 3456", Params: []modules.Param{
			{Name: "name"}, {Name: "gid", Optional: true}, {Name: "system", Default: false}, {Name: "root", Optional: true},
			{Name: "non_unique", Default: false}, {Name: "local", Default: false},
		}, Run: add},
	{Name: "adduser", Doc: "Make a user a member of the group.", Example: "salt '*' group.adduser web anna", Params: []modules.Param{{Name: "name"}, {Name: "username"}, {Name: "root", Optional: true}}, Run: adduser},
	{Name: "chgid", Doc: `Change the group's number.

non_unique : False
    Allow a gid that another group has.`,
		Example: "salt '*' group.chgid web 4376", Params: []modules.Param{{Name: "name"}, {Name: "gid"}, {Name: "root", Optional: true}, {Name: "non_unique", Default: false}}, Run: chgid},
	{Name: "delete", Doc: `Remove a group. The result tells whether that worked.

local : False
    Use lgroupdel, which leaves network directories alone.`,
		Example: "salt '*' group.delete web", Params: []modules.Param{{Name: "name"}, {Name: "root", Optional: true}, {Name: "local", Default: false}}, Run: deleteGroup},
	{Name: "deluser", Doc: "Take a user out of the group. It is fine if the user is not in it, or if there is no such group.", Example: "salt '*' group.deluser web anna", Params: []modules.Param{{Name: "name"}, {Name: "username"}, {Name: "root", Optional: true}}, Run: deluser},
	{Name: "getent", Doc: `Return what group.info tells, for all groups.

refresh : False
    Ask anew, even if the job has asked before.`,
		Example: "salt '*' group.getent", Params: []modules.Param{{Name: "refresh", Default: false}, {Name: "root", Optional: true}}, Run: getent},
	{Name: "info", Doc: "Return what is known of a group, nothing if there is none of that name.", Example: "salt '*' group.info web", Params: []modules.Param{{Name: "name"}, {Name: "root", Optional: true}}, Run: info},
	{Name: "members", Doc: "Make the users of a list, with commas between the names, the members of the group, and no others.", Example: "salt '*' group.members web 'anna,bert'", Params: []modules.Param{{Name: "name"}, {Name: "members_list"}, {Name: "root", Optional: true}}, Run: members},
}}
