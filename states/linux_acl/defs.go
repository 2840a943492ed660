// Package linux_acl is Salt's state module "acl": access control lists of files (salt/states/linux_acl.py).
package linux_acl

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "acl".
var Module = &states.Module{Name: "linux_acl", Virtual: "acl", Doc: "Access control lists of files.", Available: available, Funcs: []states.Def{
	{Name: "absent", Doc: absentDoc, Params: []modules.Param{{Name: "name"}, {Name: "acl_type"}, {Name: "acl_name", Default: ""}, {Name: "perms", Default: ""},
		{Name: "recurse", Default: false}}, Run: absent},
	{Name: "list_absent", Doc: listAbsentDoc, Params: []modules.Param{{Name: "name"}, {Name: "acl_type"}, {Name: "acl_names", Optional: true},
		{Name: "recurse", Default: false}}, Run: listAbsent},
	{Name: "list_present", Doc: listPresentDoc, Params: []modules.Param{{Name: "name"}, {Name: "acl_type"}, {Name: "acl_names", Optional: true},
		{Name: "perms", Default: ""}, {Name: "recurse", Default: false}, {Name: "force", Default: false}}, Run: listPresent},
	{Name: "present", Doc: presentDoc, Params: []modules.Param{{Name: "name"}, {Name: "acl_type"}, {Name: "acl_name", Default: ""}, {Name: "perms", Default: ""},
		{Name: "recurse", Default: false}, {Name: "force", Default: false}}, Run: present},
}}

const (
	where = `

name
    the file or directory
acl_type
    user, group, mask or other, with "default:" before it for what new files below a directory get`
	recurse = `
recurse
    with everything below`
	force = `
force
    take all other entries away first`
	presentDoc = `Have an entry in the access control list of a file.` + where + `
acl_name
    the user or group
perms
    what it may do, such as rwx` + recurse + force
	absentDoc = `Have no such entry in the access control list of a file.` + where + `
acl_name
    the user or group
perms
    taken for compatibility` + recurse
	listPresentDoc = `Have entries for several users or groups in the access control list of a file.` + where + `
acl_names
    the users or groups
perms
    what they may do, such as rwx` + recurse + force
	listAbsentDoc = `Have no entries for these users or groups in the access control list of a file.` + where + `
acl_names
    the users or groups` + recurse
)

func available(e *modules.Env) (bool, string) {
	return e.Which("getfacl") != "" && e.Which("setfacl") != "", "The linux_acl state cannot be loaded: the getfacl or setfacl binary is not in the path."
}
