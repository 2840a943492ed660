package linux_shadow

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "shadow" on Linux.
var Module = &modules.Module{Name: "linux_shadow", Virtual: "shadow", Doc: "The shadow file: passwords and how long they last.", Available: available, Funcs: []modules.Def{
	{Name: "default_hash", Doc: "Return what stands for a password that was never set.", Example: "salt '*' shadow.default_hash", Run: defaultHash},
	{Name: "del_password", Doc: "Remove the user's password, so that none is asked for.", Example: "salt '*' shadow.del_password anna", Params: []modules.Param{{Name: "name"}, {Name: "root", Optional: true}}, Run: delPassword},
	{Name: "gen_password", Doc: `Return the hash of a password, as shadow.set_password takes it.

password
    The password in clear text.
crypt_salt
    The salt; a random one if there is none.
algorithm : sha512
    sha512, sha256 or md5.`,
		Example: "salt '*' shadow.gen_password 'a secret' algorithm=sha256", Params: []modules.Param{{Name: "password", Secret: true}, {Name: "crypt_salt", Optional: true}, {Name: "algorithm", Default: "sha512"}}, Run: genPassword},
	{Name: "info", Doc: `Return the user's entry; empty texts if there is none.

root
    The directory of another system to look in.`,
		Example: "salt '*' shadow.info root", Params: []modules.Param{{Name: "name"}, {Name: "root", Optional: true}}, Run: info},
	{Name: "list_users", Doc: "Return the names of all users in the shadow file.", Example: "salt '*' shadow.list_users", Params: []modules.Param{{Name: "root", Optional: true}}, Run: listUsers},
	{Name: "lock_password", Doc: "Lock the user's password.", Example: "salt '*' shadow.lock_password anna", Params: []modules.Param{{Name: "name"}, {Name: "root", Optional: true}}, Run: lockPassword},
	{Name: "set_date", Doc: "Set the day on which the password was last changed, in days since 1970, or a date.", Example: "salt '*' shadow.set_date anna 0", Params: []modules.Param{{Name: "name"}, {Name: "date"}, {Name: "root", Optional: true}}, Run: setdate},
	{Name: "set_expire", Doc: "Set the day on which the account expires, in days since 1970, or a date. -1 takes it away.", Example: "salt '*' shadow.set_expire anna -1", Params: []modules.Param{{Name: "name"}, {Name: "expire"}, {Name: "root", Optional: true}}, Run: setexpire},
	{Name: "set_inactdays", Doc: "Set for how many days after its end a password can still be changed.", Example: "salt '*' shadow.set_inactdays anna 7", Params: []modules.Param{{Name: "name"}, {Name: "inactdays"}, {Name: "root", Optional: true}}, Run: setinactdays},
	{Name: "set_maxdays", Doc: "Set for how many days a password lasts.", Example: "salt '*' shadow.set_maxdays anna 90", Params: []modules.Param{{Name: "name"}, {Name: "maxdays"}, {Name: "root", Optional: true}}, Run: setmaxdays},
	{Name: "set_mindays", Doc: "Set after how many days a password can be changed again.", Example: "salt '*' shadow.set_mindays anna 7", Params: []modules.Param{{Name: "name"}, {Name: "mindays"}, {Name: "root", Optional: true}}, Run: setmindays},
	{Name: "set_password", Doc: `Set the user's password to a hash, which shadow.gen_password makes.

use_usermod : False
    Let usermod do it rather than editing the file.
root
    The directory of another system to do this in.`,
		Example: "salt '*' shadow.set_password root '$1$UYCIxa628.9qXjpQCjM4a..'", Params: []modules.Param{
			{Name: "name"}, {Name: "password", Secret: true}, {Name: "use_usermod", Default: false}, {Name: "root", Optional: true},
		}, Run: setPassword},
	{Name: "set_warndays", Doc: "Set how many days before its end the user is warned of a password.", Example: "salt '*' shadow.set_warndays anna 7", Params: []modules.Param{{Name: "name"}, {Name: "warndays"}, {Name: "root", Optional: true}}, Run: setwarndays},
	{Name: "unlock_password", Doc: "Unlock the user's password.", Example: "salt '*' shadow.unlock_password anna", Params: []modules.Param{{Name: "name"}, {Name: "root", Optional: true}}, Run: unlockPassword},
}}
