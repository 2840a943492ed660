package npm

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "npm": packages of Node.js.
var Module = &modules.Module{Name: "npm", Doc: `Packages of Node.js.`, Available: available, Funcs: []modules.Def{
	{Name: "cache_clean", Doc: `Clean the cache of npm. True if that worked.

path
    What of the cache.
runas
    The user to run the program as.
env
    Environment variables for npm.
force
    Clean the cache even if npm would not.`,
		Example: "salt '*' npm.cache_clean force=True", Params: []modules.Param{
			{Name: "path", Optional: true},
			{Name: "runas", Optional: true},
			{Name: "env", Optional: true},
			{Name: "force", Default: false, Type: modules.Bool},
		}, Run: cacheClean},
	{Name: "cache_list", Doc: `List the cache of npm.

path
    What of the cache.
runas
    The user to run the program as.
env
    Environment variables for npm.`,
		Example: "salt '*' npm.cache_list", Params: []modules.Param{
			{Name: "path", Optional: true},
			{Name: "runas", Optional: true},
			{Name: "env", Optional: true},
		}, Run: cacheList},
	{Name: "cache_path", Doc: `Return the directory of the cache.

runas
    The user to run the program as.
env
    Environment variables for npm.`,
		Example: "salt '*' npm.cache_path", Params: []modules.Param{{Name: "runas", Optional: true}, {Name: "env", Optional: true}}, Run: cachePath},
	{Name: "install", Doc: `Install packages, and return what npm said.

pkg
    A package.
pkgs
    Several packages.
dir
    The directory of a project; otherwise packages are for the whole host.
runas
    The user to run the program as.
registry
    The registry to take packages from.
env
    Environment variables for npm.
dry_run
    Only tell what would be done.
silent
    Let npm say little.`,
		Example: `salt '*' npm.install coffee-script
salt '*' npm.install coffee-script@1.0.1`, Params: []modules.Param{
			{Name: "pkg", Optional: true},
			{Name: "pkgs", Optional: true},
			{Name: "dir", Optional: true},
			{Name: "runas", Optional: true},
			{Name: "registry", Optional: true},
			{Name: "env", Optional: true},
			{Name: "dry_run", Default: false, Type: modules.Bool},
			{Name: "silent", Default: true, Type: modules.Bool},
		}, Run: install},
	{Name: "list", Python: "list_", Doc: `List installed packages.

pkg
    A package.
dir
    The directory of a project; otherwise packages are for the whole host.
runas
    The user to run the program as.
env
    Environment variables for npm.
depth
    How deep to list what packages need.`,
		Example: `salt '*' npm.list
salt '*' npm.list depth=0`, Params: []modules.Param{
			{Name: "pkg", Optional: true},
			{Name: "dir", Optional: true},
			{Name: "runas", Optional: true},
			{Name: "env", Optional: true},
			{Name: "depth", Optional: true},
		}, Run: list},
	{Name: "uninstall", Doc: `Remove a package. True if that worked.

pkg
    A package.
dir
    The directory of a project; otherwise packages are for the whole host.
runas
    The user to run the program as.
env
    Environment variables for npm.`,
		Example: "salt '*' npm.uninstall coffee-script", Params: []modules.Param{
			{Name: "pkg"},
			{Name: "dir", Optional: true},
			{Name: "runas", Optional: true},
			{Name: "env", Optional: true},
		}, Run: uninstall},
}}
