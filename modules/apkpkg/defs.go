package apkpkg

import (
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

// Module is Salt's "pkg": packages of Alpine, through apk.
var Module = &modules.Module{Name: "apkpkg", Virtual: "pkg", Doc: `Packages of Alpine, through apk.`, Available: available, Funcs: []modules.Def{
	{Name: "file_dict", Doc: pkglist.FileDictDoc, Example: "salt '*' pkg.file_dict httpd postfix", Args: "packages", Kwargs: "kwargs", Run: fileDict},
	{Name: "file_list", Doc: "List the files of packages, by package.", Example: "salt '*' pkg.file_list httpd", Args: "packages", Kwargs: "kwargs", Run: fileDict},
	{Name: "install", Doc: `Install packages, and return what changed. Versions cannot be chosen.

name
    The name.
refresh
    Bring the indexes of the repositories up to date first.
pkgs
    Several packages: a list of names, or of maps from a name to a version.
sources
    Package files: a list of maps from a name to a path or URL.`,
		Example: `salt '*' pkg.install <package>
salt '*' pkg.install pkgs='[foo, bar]'`, Params: []modules.Param{
			{Name: "name", Optional: true},
			{Name: "refresh", Default: false, Type: modules.Bool},
			{Name: "pkgs", Optional: true},
			{Name: "sources", Optional: true},
		}, Kwargs: "kwargs", Run: install},
	{Name: "latest_version", Doc: "Return the version that an installation or upgrade of packages would bring, empty for those that are up to date or unknown.", Example: "salt '*' pkg.latest_version <package>", Args: "names", Kwargs: "kwargs", Run: latestVersion},
	{Name: "list_pkgs", Doc: `List installed packages with their versions.

versions_as_list
    Give the versions of each package as a list instead of text.`,
		Example: `salt '*' pkg.list_pkgs
salt '*' pkg.list_pkgs versions_as_list=True`, Params: []modules.Param{{Name: "versions_as_list", Default: false, Type: modules.Bool}}, Kwargs: "kwargs", Run: listPkgs},
	{Name: "list_upgrades", Doc: pkglist.ListUpgradesDoc, Example: "salt '*' pkg.list_upgrades", Params: []modules.Param{{Name: "refresh", Default: true, Type: modules.Bool}}, Kwargs: "kwargs", Run: listUpgrades},
	{Name: "owner", Doc: "Return the packages that files belong to.", Example: "salt '*' pkg.owner /usr/bin/apachectl", Args: "paths", Kwargs: "kwargs", Run: owner},
	{Name: "purge", Doc: pkglist.PurgeDoc,
		Example: `salt '*' pkg.purge <package>
salt '*' pkg.purge pkgs='[foo, bar]'`, Params: []modules.Param{{Name: "name", Optional: true}, {Name: "pkgs", Optional: true}}, Kwargs: "kwargs", Run: purge},
	{Name: "refresh_db", Doc: "Bring the indexes of the repositories up to date.", Example: "salt '*' pkg.refresh_db", Kwargs: "kwargs", Run: refreshDB},
	{Name: "remove", Doc: `Remove packages, and return what changed.

name
    The name.
pkgs
    Several packages: a list of names, or of maps from a name to a version.
purge
    Remove configuration files as well.`,
		Example: `salt '*' pkg.remove <package>
salt '*' pkg.remove pkgs='[foo, bar]'`, Params: []modules.Param{
			{Name: "name", Optional: true},
			{Name: "pkgs", Optional: true},
			{Name: "purge", Default: false, Type: modules.Bool},
		}, Kwargs: "kwargs", Run: remove},
	{Name: "upgrade", Doc: `Upgrade all packages or the named ones. The answer tells what changed and whether that worked.

name
    The name.
pkgs
    Several packages: a list of names, or of maps from a name to a version.
refresh
    Bring the indexes of the repositories up to date first.`,
		Example: "salt '*' pkg.upgrade", Params: []modules.Param{
			{Name: "name", Optional: true},
			{Name: "pkgs", Optional: true},
			{Name: "refresh", Default: true, Type: modules.Bool},
		}, Kwargs: "kwargs", Run: upgrade},
	{Name: "version", Doc: pkglist.VersionDoc,
		Example: `salt '*' pkg.version <package>
salt '*' pkg.version <package1> <package2>`, Args: "names", Kwargs: "kwargs", Run: pkglist.VersionOf},
}}
