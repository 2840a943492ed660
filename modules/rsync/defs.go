package rsync

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "rsync".
var Module = &modules.Module{Name: "rsync", Doc: "Copying files with rsync.", Available: available, Funcs: []modules.Def{
	{Name: "config", Doc: "Return the text of the configuration of the rsync daemon.", Example: "salt '*' rsync.config", Params: []modules.Param{{Name: "conf_path", Default: "/etc/rsyncd.conf"}}, Run: config},
	{Name: "rsync", Doc: `Copy files. The result is as of cmd.run_all. What is not given is taken from the options rsync.src, rsync.dst and so on.

src, dst
    From where (also salt://), to where.
delete, force, update, dryrun : False
    The options of rsync.
passwordfile, exclude, excludefrom, rsh
    The options of rsync; exclude can be a list.
additional_opts
    A list of further options.
saltenv : base
    The environment for salt://.`,
		Example: "salt '*' rsync.rsync /srv/data/ web:/srv/data/", Params: []modules.Param{{Name: "src"}, {Name: "dst"}, {Name: "delete", Default: false}, {Name: "force", Default: false}, {Name: "update", Default: false}, {Name: "passwordfile", Optional: true, Secret: true}, {Name: "exclude", Optional: true}, {Name: "excludefrom", Optional: true}, {Name: "dryrun", Default: false}, {Name: "rsh", Optional: true}, {Name: "additional_opts", Optional: true}, {Name: "saltenv", Default: "base"}}, Run: rsync},
	{Name: "version", Doc: "Return the version of rsync.", Example: "salt '*' rsync.version", Run: version},
}}
