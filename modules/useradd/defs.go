package useradd

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "user" where users are made with useradd.
var Module = &modules.Module{Name: "useradd", Virtual: "user", Doc: "Users, made and changed with useradd and its like.", Docs: &docs, Available: available, Funcs: []modules.Def{
	{Name: "add", Params: []modules.Param{
		{Name: "name"}, {Name: "uid", Optional: true}, {Name: "gid", Optional: true}, {Name: "groups", Optional: true},
		{Name: "home", Optional: true}, {Name: "shell", Optional: true}, {Name: "unique", Default: true}, {Name: "system", Default: false},
		{Name: "fullname", Default: ""}, {Name: "roomnumber", Default: ""}, {Name: "workphone", Default: ""},
		{Name: "homephone", Default: ""}, {Name: "other", Default: ""}, {Name: "createhome", Default: true},
		{Name: "loginclass", Optional: true}, {Name: "nologinit", Default: false}, {Name: "root", Optional: true},
		{Name: "usergroup", Optional: true}, {Name: "local", Default: false}, {Name: "selinux_user", Optional: true},
	}, Run: add},
	{Name: "chfullname", Params: []modules.Param{{Name: "name"}, {Name: "fullname"}, {Name: "root", Optional: true}}, Run: chfullname},
	{Name: "chgid", Params: []modules.Param{{Name: "name"}, {Name: "gid"}, {Name: "root", Optional: true}}, Run: chgid},
	{Name: "chgroups",
		Params: []modules.Param{{Name: "name"}, {Name: "groups"}, {Name: "append", Default: false}, {Name: "root", Optional: true}}, Run: chgroups},
	{Name: "chhome",
		Params: []modules.Param{{Name: "name"}, {Name: "home"}, {Name: "persist", Default: false}, {Name: "root", Optional: true}}, Run: chhome},
	{Name: "chhomephone", Params: []modules.Param{{Name: "name"}, {Name: "homephone"}, {Name: "root", Optional: true}}, Run: chhomephone},
	{Name: "chloginclass", Params: []modules.Param{{Name: "name"}, {Name: "loginclass"}, {Name: "root", Optional: true}}, Run: chloginclass},
	{Name: "chother", Params: []modules.Param{{Name: "name"}, {Name: "other"}, {Name: "root", Optional: true}}, Run: chother},
	{Name: "chroomnumber", Params: []modules.Param{{Name: "name"}, {Name: "roomnumber"}, {Name: "root", Optional: true}}, Run: chroomnumber},
	{Name: "chshell", Params: []modules.Param{{Name: "name"}, {Name: "shell"}, {Name: "root", Optional: true}}, Run: chshell},
	{Name: "chuid", Params: []modules.Param{{Name: "name"}, {Name: "uid"}, {Name: "root", Optional: true}}, Run: chuid},
	{Name: "chworkphone", Params: []modules.Param{{Name: "name"}, {Name: "workphone"}, {Name: "root", Optional: true}}, Run: chworkphone},
	{Name: "delete", Params: []modules.Param{
		{Name: "name"}, {Name: "remove", Default: false}, {Name: "force", Default: false}, {Name: "root", Optional: true},
		{Name: "local", Default: false},
	}, Run: deleteUser},
	{Name: "get_loginclass", Params: []modules.Param{{Name: "name"}}, Run: getLoginclass},
	{Name: "getent",
		Params: []modules.Param{{Name: "refresh", Default: false}, {Name: "root", Optional: true}}, Run: getent},
	{Name: "info", Params: []modules.Param{{Name: "name"}, {Name: "root", Optional: true}}, Run: info},
	{Name: "list_groups", Params: []modules.Param{{Name: "name"}}, Run: listGroups},
	{Name: "list_users", Params: []modules.Param{{Name: "root", Optional: true}}, Run: listUsers},
	{Name: "primary_group", Params: []modules.Param{{Name: "name"}}, Run: primaryGroup},
	{Name: "rename", Params: []modules.Param{{Name: "name"}, {Name: "new_name"}, {Name: "root", Optional: true}}, Run: rename},
}}
