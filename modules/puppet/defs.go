package puppet

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "puppet": runs of the Puppet agent of this host.
var Module = &modules.Module{Name: "puppet", Doc: `Runs of Puppet on this host.`, Available: available, Funcs: []modules.Def{
	{Name: "disable", Doc: `Disable the Puppet agent. Returns False if it is disabled already.

message
    Why; Puppet shows it.`,
		Example: `salt '*' puppet.disable
salt '*' puppet.disable 'Disabled, contact XYZ before enabling'`, Params: []modules.Param{{Name: "message", Optional: true}}, Run: disable},
	{Name: "enable", Doc: "Enable the Puppet agent. Returns False if it is not disabled.", Example: "salt '*' puppet.enable", Run: enable},
	{Name: "fact", Doc: `Return the value of a fact.

name
    The fact.
puppet
    Load the facts of Puppet as well.`,
		Example: "salt '*' puppet.fact kernel", Params: []modules.Param{{Name: "name"}, puppetParam}, Run: fact},
	{Name: "facts", Doc: `Return what facter prints, by the names of the facts.

puppet
    Load the facts of Puppet as well.`,
		Example: "salt '*' puppet.facts", Params: []modules.Param{puppetParam}, Run: facts},
	{Name: "noop", Doc: "Run Puppet without changing anything. The arguments are those of puppet.run.",
		Example: `salt '*' puppet.noop
salt '*' puppet.noop tags=basefiles::edit,apache::server
salt '*' puppet.noop apply /a/b/manifest.pp modulepath=/a/b/modules`, Args: "args", Kwargs: "kwargs", Run: noop},
	{Name: "plugin_sync", Doc: "Fetch the plugins of the Puppet server, and return what Puppet printed.", Example: "salt '*' puppet.plugin_sync", Run: pluginSync},
	{Name: "run", Doc: `Run Puppet and return its output and exit status, as cmd.run_all does. The exit status is 0 if nothing
failed, with or without changes, and 1 if the run failed.

The first argument may be agent (the default) or apply, which needs a manifest as the next argument. Further arguments
are options without a value, keyword arguments are options with one.`,
		Example: `salt '*' puppet.run
salt '*' puppet.run tags=basefiles::edit,apache::server
salt '*' puppet.run agent onetime no-daemonize no-usecacheonfailure no-splay ignorecache
salt '*' puppet.run debug
salt '*' puppet.run apply /a/b/manifest.pp modulepath=/a/b/modules tags=basefiles::edit,apache::server`, Args: "args", Kwargs: "kwargs", Run: run},
	{Name: "status", Doc: `Return what the Puppet agent does: "Administratively disabled", "Applying a catalog", "Idle daemon",
"Stopped", "Stale lockfile" or "Stale pidfile".`,
		Example: "salt '*' puppet.status", Run: status},
	{Name: "summary", Doc: `Return a summary of the last run of the Puppet agent: when it ran, how long it took, and how many
resources it looked at, changed and could not change.`,
		Example: "salt '*' puppet.summary", Run: summary},
}}

var puppetParam = modules.Param{Name: "puppet", Default: false, Type: modules.Bool}
