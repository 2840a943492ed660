package gem

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "gem": packages of Ruby.
var Module = &modules.Module{Name: "gem", Doc: `Packages of Ruby.`, Funcs: []modules.Def{
	{Name: "install", Doc: `Install gems, and return what gem said.

gems
    The gems: a list, or text with blanks between them.
` + rubyDoc + gemBinDoc + runasDoc + `version
    The version.
rdoc
    Also make the documentation.
ri
    Also make the documentation for ri.
pre_releases
    Also take releases that are not final.
proxy
    A proxy.
source
    The address of the source.`,
		Example: "salt '*' gem.install vagrant", Params: []modules.Param{
			{Name: "gems"}, rubyParam, gemBinParam, runasParam, {Name: "version", Optional: true},
			{Name: "rdoc", Default: false, Type: modules.Bool}, {Name: "ri", Default: false, Type: modules.Bool},
			{Name: "pre_releases", Default: false, Type: modules.Bool}, {Name: "proxy", Optional: true}, {Name: "source", Optional: true},
		}, Run: install},
	{Name: "list", Python: "list_", Doc: `List installed gems with their versions.

prefix
    Only gems whose name begins with this.
` + rubyDoc + runasDoc + gemBinDoc,
		Example: "salt '*' gem.list", Params: []modules.Param{
			{Name: "prefix", Default: "", Type: modules.String}, rubyParam, runasParam, gemBinParam,
		}, Run: list},
	{Name: "list_upgrades", Doc: `List gems that can be upgraded, with the new versions.

` + rubyDoc + runasDoc + gemBinDoc,
		Example: "salt '*' gem.list_upgrades", Params: []modules.Param{rubyParam, runasParam, gemBinParam}, Run: listUpgrades},
	{Name: "sources_add", Doc: `Add a source of gems.

source_uri
    The address of the source.
` + rubyDoc + runasDoc + gemBinDoc,
		Example: "salt '*' gem.sources_add http://rubygems.org/", Params: []modules.Param{{Name: "source_uri"}, rubyParam, runasParam, gemBinParam}, Run: sourcesAdd},
	{Name: "sources_list", Doc: `List the sources of gems.

` + rubyDoc + runasDoc + gemBinDoc,
		Example: "salt '*' gem.sources_list", Params: []modules.Param{rubyParam, runasParam, gemBinParam}, Run: sourcesList},
	{Name: "sources_remove", Doc: `Remove a source of gems.

source_uri
    The address of the source.
` + rubyDoc + runasDoc + gemBinDoc,
		Example: "salt '*' gem.sources_remove http://rubygems.org/", Params: []modules.Param{{Name: "source_uri"}, rubyParam, runasParam, gemBinParam}, Run: sourcesRemove},
	{Name: "uninstall", Doc: `Remove gems, and return what gem said.

gems
    The gems: a list, or text with blanks between them.
` + rubyDoc + runasDoc + gemBinDoc,
		Example: "salt '*' gem.uninstall vagrant", Params: []modules.Param{{Name: "gems"}, rubyParam, runasParam, gemBinParam}, Run: uninstall},
	{Name: "update", Doc: `Upgrade gems, and return what gem said.

gems
    The gems: a list, or text with blanks between them.
` + rubyDoc + runasDoc + gemBinDoc,
		Example: "salt '*' gem.update vagrant", Params: []modules.Param{{Name: "gems"}, rubyParam, runasParam, gemBinParam}, Run: update},
	{Name: "update_system", Doc: `Upgrade gem itself.

version
    The version.
` + rubyDoc + runasDoc + gemBinDoc,
		Example: "salt '*' gem.update_system", Params: []modules.Param{
			{Name: "version", Default: "", Type: modules.String}, rubyParam, runasParam, gemBinParam,
		}, Run: updateSystem},
	{Name: "version", Doc: `Return the version of gem.

` + rubyDoc + runasDoc + gemBinDoc,
		Example: "salt '*' gem.version", Params: []modules.Param{rubyParam, runasParam, gemBinParam}, Run: versionRun},
}}

// What the functions share: the documentation of parameters, and parameters that may be absent.
const (
	gemBinDoc = `gem_bin
    The program gem.
`
	rubyDoc = `ruby
    The ruby of rvm or rbenv.
`
	runasDoc = `runas
    The user to run the program as.
`
)

var (
	gemBinParam = modules.Param{Name: "gem_bin", Optional: true}
	rubyParam   = modules.Param{Name: "ruby", Optional: true}
	runasParam  = modules.Param{Name: "runas", Optional: true}
)
