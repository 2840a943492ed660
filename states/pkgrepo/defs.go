package pkgrepo

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "pkgrepo".
var Module = &states.Module{
	Name: "pkgrepo", Doc: "Repositories of packages.", Needs: "pkg.mod_repo",
	Funcs: []states.Def{
		{Name: "absent", Doc: absentDoc, Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: absent},
		{Name: "managed", Doc: managedDoc, Params: []modules.Param{{Name: "name"}, {Name: "ppa", Optional: true}, {Name: "copr", Optional: true},
			{Name: "aptkey", Default: true}}, Kwargs: "kwargs", Run: managed},
	},
}

const (
	managedDoc = `Have a repository known to the package manager.

name
    the repository: a line as apt has it, or the name of a section for dnf and zypper
ppa
    instead of the name: a personal archive of Ubuntu, owner/name
copr
    instead of the name: a project of Fedora, owner/name
aptkey
    let apt-key handle keys, where it is installed
enabled, disabled
    whether the repository is used; one of them
file
    the file it stands in
clean_file
    empty that file first
comps, architectures, signedby, comments
    parts of apt's line
keyid, keyserver, key_url, key_text
    where the key comes from with which the packages are signed
allow_insecure_key
    the address of the key may be one of http
consolidate
    bring the other lines of apt's files in order
refresh
    bring the indexes up to date afterwards
humanname, baseurl, mirrorlist, gpgcheck, gpgkey and others
    what the section of dnf or zypper has`
	absentDoc = `Have a repository not known to the package manager.

name
    the repository: a line as apt has it, or the name of a section for dnf and zypper
ppa
    instead of the name: a personal archive of Ubuntu, owner/name
copr
    instead of the name: a project of Fedora, owner/name
keyid
    remove this key as well
keyid_ppa
    remove the key of the personal archive as well`
)
