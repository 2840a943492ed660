package linux_acl

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "acl".
var Module = &modules.Module{Name: "linux_acl", Virtual: "acl", Doc: "Access control lists of files.", Available: available, Funcs: []modules.Def{
	{Name: "delfacl", Doc: `Remove an entry from the access control lists of files.

recursive : False
    Also of everything below.`,
		Example: "salt '*' acl.delfacl user anna /srv/data", Params: []modules.Param{{Name: "acl_type"}, {Name: "acl_name", Default: ""}}, Args: "args", Kwargs: "kwargs", Run: delfacl},
	{Name: "getfacl", Doc: `Return the access control lists of files.

recursive : False
    Also of everything below.`,
		Example: "salt '*' acl.getfacl /srv/data", Args: "args", Kwargs: "kwargs", Run: getfacl},
	{Name: "modfacl", Doc: `Add an entry to the access control lists of files, or change it.

acl_type
    user, group, mask, other, or one of them with "default:" before it.
recursive : False
    Also of everything below.
raise_err : False
    Fail if setfacl does.`,
		Example: "salt '*' acl.modfacl user anna rwx /srv/data", Params: []modules.Param{{Name: "acl_type"}, {Name: "acl_name", Default: ""}, {Name: "perms", Default: ""}}, Args: "args", Kwargs: "kwargs", Run: modfacl},
	{Name: "version", Doc: "Return the version of getfacl.", Example: "salt '*' acl.version", Run: version},
	{Name: "wipefacls", Doc: `Remove the access control lists of files.

recursive : False
    Also of everything below.`,
		Example: "salt '*' acl.wipefacls /srv/data", Args: "args", Kwargs: "kwargs", Run: wipefacls},
}}
