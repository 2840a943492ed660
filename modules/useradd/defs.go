package useradd

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "user" where users are made with useradd.
var Module = &modules.Module{Name: "useradd", Virtual: "user", Doc: "Users, made and changed with useradd and its like.", Available: available, Funcs: []modules.Def{
	{Name: "add", Doc: `Add a user. The result tells whether that worked.

name
    The login name.
uid, gid
    The user's number, and the name or number of the primary group.
groups
    The other groups the user shall be in.
home, shell
    The home directory and the login shell.
unique : True
    False allows a uid that another user has.
system : False
    Make a system account.
fullname, roomnumber, workphone, homephone, other
    The parts of the comment field.
createhome : True
    Make the home directory.
loginclass
    The login class (OpenBSD).
nologinit : False
    Do not add the user to the lastlog and faillog databases.
root
    The directory of another system to do this in.
usergroup
    Make a group of the same name as the primary one; False: make none; None: as the system does by default.
local : False
    Use luseradd, which leaves network directories alone.
selinux_user
    The SELinux user to map the login to (useradd -Z). Not in Salt.`,
		Example: "salt '*' user.add anna 1200 users", Params: []modules.Param{
			{Name: "name"}, {Name: "uid", Optional: true}, {Name: "gid", Optional: true}, {Name: "groups", Optional: true},
			{Name: "home", Optional: true}, {Name: "shell", Optional: true}, {Name: "unique", Default: true}, {Name: "system", Default: false},
			{Name: "fullname", Default: ""}, {Name: "roomnumber", Default: ""}, {Name: "workphone", Default: ""},
			{Name: "homephone", Default: ""}, {Name: "other", Default: ""}, {Name: "createhome", Default: true},
			{Name: "loginclass", Optional: true}, {Name: "nologinit", Default: false}, {Name: "root", Optional: true},
			{Name: "usergroup", Optional: true}, {Name: "local", Default: false}, {Name: "selinux_user", Optional: true},
		}, Run: add},
	{Name: "chfullname", Doc: "Change the user's full name.", Example: "salt '*' user.chfullname anna 'Anna Blume'", Params: []modules.Param{{Name: "name"}, {Name: "fullname"}, {Name: "root", Optional: true}}, Run: chfullname},
	{Name: "chgid", Doc: "Change the user's primary group to the one with that number.", Example: "salt '*' user.chgid anna 1300", Params: []modules.Param{{Name: "name"}, {Name: "gid"}, {Name: "root", Optional: true}}, Run: chgid},
	{Name: "chgroups", Doc: `Change the groups the user is in.

groups
    A list of names, or names with commas between them.
append : False
    Keep the groups the user is in already.`,
		Example: "salt '*' user.chgroups anna audio,video append=True", Params: []modules.Param{{Name: "name"}, {Name: "groups"}, {Name: "append", Default: false}, {Name: "root", Optional: true}}, Run: chgroups},
	{Name: "chhome", Doc: `Change the user's home directory.

persist : False
    Move what is in the old one.`,
		Example: "salt '*' user.chhome anna /srv/anna True", Params: []modules.Param{{Name: "name"}, {Name: "home"}, {Name: "persist", Default: false}, {Name: "root", Optional: true}}, Run: chhome},
	{Name: "chhomephone", Doc: "Change the user's phone number at home.", Example: "salt '*' user.chhomephone anna 5551234", Params: []modules.Param{{Name: "name"}, {Name: "homephone"}, {Name: "root", Optional: true}}, Run: chhomephone},
	{Name: "chloginclass", Doc: "Change the user's login class. This is for OpenBSD; elsewhere the result is False.", Example: "salt '*' user.chloginclass anna staff", Params: []modules.Param{{Name: "name"}, {Name: "loginclass"}, {Name: "root", Optional: true}}, Run: chloginclass},
	{Name: "chother", Doc: "Change the last part of the user's comment field.", Example: "salt '*' user.chother anna 'on leave'", Params: []modules.Param{{Name: "name"}, {Name: "other"}, {Name: "root", Optional: true}}, Run: chother},
	{Name: "chroomnumber", Doc: "Change the user's room number.", Example: "salt '*' user.chroomnumber anna 123", Params: []modules.Param{{Name: "name"}, {Name: "roomnumber"}, {Name: "root", Optional: true}}, Run: chroomnumber},
	{Name: "chshell", Doc: "Change the user's login shell.", Example: "salt '*' user.chshell anna /bin/zsh", Params: []modules.Param{{Name: "name"}, {Name: "shell"}, {Name: "root", Optional: true}}, Run: chshell},
	{Name: "chuid", Doc: "Change the user's number.", Example: "salt '*' user.chuid anna 1201", Params: []modules.Param{{Name: "name"}, {Name: "uid"}, {Name: "root", Optional: true}}, Run: chuid},
	{Name: "chworkphone", Doc: "Change the user's phone number at work.", Example: "salt '*' user.chworkphone anna 5550123", Params: []modules.Param{{Name: "name"}, {Name: "workphone"}, {Name: "root", Optional: true}}, Run: chworkphone},
	{Name: "delete", Doc: `Remove a user. The result tells whether that worked.

remove : False
    Remove the home directory and the mail spool too.
force : False
    Do it even for a user who is logged in.
root
    The directory of another system to do this in.
local : False
    Use luserdel, which leaves network directories alone.`,
		Example: "salt '*' user.delete anna remove=True force=True", Params: []modules.Param{
			{Name: "name"}, {Name: "remove", Default: false}, {Name: "force", Default: false}, {Name: "root", Optional: true},
			{Name: "local", Default: false},
		}, Run: deleteUser},
	{Name: "get_loginclass", Doc: "Return the user's login class. This is for OpenBSD; elsewhere the result is False.", Example: "salt '*' user.get_loginclass anna", Params: []modules.Param{{Name: "name"}}, Run: getLoginclass},
	{Name: "getent", Doc: `Return what user.info tells, for all users.

refresh : False
    Ask anew, even if the job has asked before.`,
		Example: "salt '*' user.getent", Params: []modules.Param{{Name: "refresh", Default: false}, {Name: "root", Optional: true}}, Run: getent},
	{Name: "info", Doc: `Return what is known of a user, nothing if there is none of that name.

root
    The directory of another system to look in.`,
		Example: "salt '*' user.info root", Params: []modules.Param{{Name: "name"}, {Name: "root", Optional: true}}, Run: info},
	{Name: "list_groups", Doc: "Return the groups the user is in.", Example: "salt '*' user.list_groups anna", Params: []modules.Param{{Name: "name"}}, Run: listGroups},
	{Name: "list_users", Doc: "Return the names of all users.", Example: "salt '*' user.list_users", Params: []modules.Param{{Name: "root", Optional: true}}, Run: listUsers},
	{Name: "primary_group", Doc: "Return the name of the user's primary group.", Example: "salt '*' user.primary_group anna", Params: []modules.Param{{Name: "name"}}, Run: primaryGroup},
	{Name: "rename", Doc: "Change the user's login name.", Example: "salt '*' user.rename anna anne", Params: []modules.Param{{Name: "name"}, {Name: "new_name"}, {Name: "root", Optional: true}}, Run: rename},
}}
