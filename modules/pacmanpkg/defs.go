package pacmanpkg

import (
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

// Module is Salt's "pkg": packages of Arch and its relatives, through pacman.
var Module = &modules.Module{Name: "pacmanpkg", Virtual: "pkg", Doc: `Packages of Arch and its relatives, through pacman.`, Available: available, Funcs: []modules.Def{
	{Name: "available_version", Doc: pkglist.AvailableVersionDoc, Example: "salt '*' pkg.available_version <package>", Args: "names", Kwargs: "kwargs", Run: latestVersion},
	{Name: "file_dict", Doc: pkglist.FileDictDoc, Example: "salt '*' pkg.file_dict httpd postfix", Args: "packages", Kwargs: "kwargs", Run: fileDict},
	{Name: "file_list", Doc: pkglist.FileListDoc, Example: "salt '*' pkg.file_list httpd postfix", Args: "packages", Kwargs: "kwargs", Run: fileList},
	{Name: "group_diff", Doc: `Return which packages of a group are installed and which are not.

name
    The name.`,
		Example: "salt '*' pkg.group_diff xorg", Params: []modules.Param{{Name: "name"}}, Run: groupDiff},
	{Name: "group_info", Doc: `Return the packages of a group.

name
    The name.`,
		Example: "salt '*' pkg.group_info xorg", Params: []modules.Param{{Name: "name"}}, Run: groupInfo},
	{Name: "group_list", Doc: "List the groups of packages: those of which all, some or no packages are installed.", Example: "salt '*' pkg.group_list", Run: groupList},
	{Name: "install", Doc: `Install packages, and return what changed.

A version may be exact, a pattern, or a comparison such as '>=1.2'. Further keywords: version, root.

name
    The name.
refresh
    Bring the indexes of the repositories up to date first.
sysupgrade
    Upgrade all other packages as well.
pkgs
    Several packages: a list of names, or of maps from a name to a version.
sources
    Package files: a list of maps from a name to a path or URL.`,
		Example: `salt '*' pkg.install <package>
salt '*' pkg.install pkgs='[foo, {bar: 1.2.3-4}]'
salt '*' pkg.install sources='[{foo: salt://foo.pkg.tar.zst}]'`, Params: []modules.Param{
			{Name: "name", Optional: true},
			{Name: "refresh", Default: false, Type: modules.Bool},
			{Name: "sysupgrade", Optional: true},
			{Name: "pkgs", Optional: true},
			{Name: "sources", Optional: true},
		}, Kwargs: "kwargs", Run: install},
	{Name: "latest_version", Doc: `Return the version that an installation or upgrade of packages would bring, empty for those that are up to date or unknown.

Keywords: refresh, root.`,
		Example: `salt '*' pkg.latest_version <package>
salt '*' pkg.latest_version <package1> <package2>`, Args: "names", Kwargs: "kwargs", Run: latestVersion},
	{Name: "list_pkgs", Doc: `List installed packages with their versions.

versions_as_list
    Give the versions of each package as a list instead of text.`,
		Example: `salt '*' pkg.list_pkgs
salt '*' pkg.list_pkgs versions_as_list=True`, Params: []modules.Param{{Name: "versions_as_list", Default: false, Type: modules.Bool}}, Kwargs: "kwargs", Run: listPkgs},
	{Name: "list_repo_pkgs", Doc: `List the versions of packages that the repositories have; of all packages if none is named.

Keywords: byrepo, fromrepo, refresh.`,
		Example: `salt '*' pkg.list_repo_pkgs
salt '*' pkg.list_repo_pkgs foo bar
salt '*' pkg.list_repo_pkgs 'samba4*' fromrepo=extra`, Args: "args", Kwargs: "kwargs", Run: listRepoPkgs},
	{Name: "list_upgrades", Doc: pkglist.ListUpgradesDoc, Example: "salt '*' pkg.list_upgrades", Params: []modules.Param{
		{Name: "refresh", Default: false, Type: modules.Bool},
		{Name: "root", Optional: true},
	}, Kwargs: "kwargs", Run: listUpgrades},
	{Name: "owner", Doc: pkglist.OwnerDoc,
		Example: `salt '*' pkg.owner /usr/bin/apachectl
salt '*' pkg.owner /usr/bin/apachectl /etc/passwd`, Args: "paths", Kwargs: "kwargs", Run: owner},
	{Name: "purge", Doc: `Remove packages with all that only they need and all that needs them, and return what changed.

name
    The name.
pkgs
    Several packages: a list of names, or of maps from a name to a version.`,
		Example: `salt '*' pkg.purge <package>
salt '*' pkg.purge pkgs='[foo, bar]'`, Params: []modules.Param{{Name: "name", Optional: true}, {Name: "pkgs", Optional: true}}, Kwargs: "kwargs", Run: purge},
	{Name: "refresh_db", Doc: `Bring the indexes of the repositories up to date. For each one: True if it is new, False if it is as before.

root
    Work in the system below this directory.`,
		Example: "salt '*' pkg.refresh_db", Params: []modules.Param{{Name: "root", Optional: true}}, Kwargs: "kwargs", Run: refreshDB},
	{Name: "remove", Doc: pkglist.RemoveDoc,
		Example: `salt '*' pkg.remove <package>
salt '*' pkg.remove pkgs='[foo, bar]'`, Params: []modules.Param{{Name: "name", Optional: true}, {Name: "pkgs", Optional: true}}, Kwargs: "kwargs", Run: remove},
	{Name: "upgrade", Doc: `Upgrade all packages, and return what changed.

refresh
    Bring the indexes of the repositories up to date first.
root
    Work in the system below this directory.`,
		Example: "salt '*' pkg.upgrade", Params: []modules.Param{
			{Name: "refresh", Default: false, Type: modules.Bool},
			{Name: "root", Optional: true},
		}, Kwargs: "kwargs", Run: upgrade},
	{Name: "upgrade_available", Doc: pkglist.UpgradeAvailableDoc, Example: "salt '*' pkg.upgrade_available <package>", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: upgradeAvailable},
	{Name: "version", Doc: pkglist.VersionDoc,
		Example: `salt '*' pkg.version <package>
salt '*' pkg.version <package1> <package2>`, Args: "names", Kwargs: "kwargs", Run: pkglist.VersionOf},
}}
