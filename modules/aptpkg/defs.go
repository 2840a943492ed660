package aptpkg

import (
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

// Module is Salt's "pkg": packages and repositories of Debian and its relatives, through apt and dpkg.
var Module = &modules.Module{Name: "aptpkg", Virtual: "pkg", Doc: `Packages and repositories of Debian and its relatives, through apt and dpkg.`, Available: available, Funcs: []modules.Def{
	{Name: "add_repo_key", Doc: `Make a key trusted for repositories. True if that worked.

path
    A file of the file server.
text
    The key itself.
keyserver
    A key server.
keyid
    The id of the key.
saltenv
    The environment of the file server.
aptkey
    Use apt-key, where it is there.
keydir
    The directory of keys that apt does not trust in general.
keyfile
    The name of the file of the key.`,
		Example: `salt '*' pkg.add_repo_key salt://apt/sources/test.key
salt '*' pkg.add_repo_key keyserver=pgp.mit.edu keyid='$KEY_ID'`, Params: []modules.Param{
			{Name: "path", Optional: true},
			{Name: "text", Optional: true},
			{Name: "keyserver", Optional: true},
			{Name: "keyid", Optional: true},
			{Name: "saltenv", Default: "base", Type: modules.String},
			{Name: "aptkey", Default: true, Type: modules.Bool},
			{Name: "keydir", Optional: true},
			{Name: "keyfile", Optional: true},
		}, Run: addRepoKey},
	{Name: "autoremove", Doc: `Remove packages that others needed once and no one needs now, or list them.

list_only
    Only list the packages.
purge
    Remove configuration files as well.`,
		Example: `salt '*' pkg.autoremove
salt '*' pkg.autoremove list_only=True`, Params: []modules.Param{
			{Name: "list_only", Default: false, Type: modules.Bool},
			{Name: "purge", Default: false, Type: modules.Bool},
		}, Run: autoremove},
	{Name: "available_version", Doc: pkglist.AvailableVersionDoc, Example: "salt '*' pkg.available_version <package>", Args: "names", Kwargs: "kwargs", Run: latestVersion},
	{Name: "del_repo", Doc: `Remove a repository from the files of apt and bring the indexes up to date.

repo
    The repository, as a line of sources.list.`,
		Example: `salt '*' pkg.del_repo "deb http://archive.example.org/debian stable main"`, Params: []modules.Param{{Name: "repo"}}, Kwargs: "kwargs", Run: delRepo},
	{Name: "del_repo_key", Doc: `Remove a key that repositories are signed with. The keyword keyid says which.

name
    The name.
aptkey
    Use apt-key, where it is there.
keydir
    The directory of keys that apt does not trust in general.`,
		Example: "salt '*' pkg.del_repo_key keyid=0123ABCD", Params: []modules.Param{
			{Name: "name", Optional: true},
			{Name: "aptkey", Default: true, Type: modules.Bool},
			{Name: "keydir", Optional: true},
		}, Kwargs: "kwargs", Run: delRepoKey},
	{Name: "file_dict", Doc: pkglist.FileDictDoc, Example: "salt '*' pkg.file_dict httpd postfix", Args: "packages", Kwargs: "kwargs", Run: fileDict},
	{Name: "file_list", Doc: pkglist.FileListDoc, Example: "salt '*' pkg.file_list httpd postfix", Args: "packages", Kwargs: "kwargs", Run: fileList},
	{Name: "get_repo", Doc: `Return what is known about a repository, or an empty map.

repo
    The repository, as a line of sources.list.`,
		Example: `salt '*' pkg.get_repo "deb http://archive.example.org/debian stable main"`, Params: []modules.Param{{Name: "repo"}}, Kwargs: "kwargs", Run: getRepo},
	{Name: "get_repo_keys", Doc: `Return the keys that repositories are signed with.

aptkey
    Use apt-key, where it is there.
keydir
    The directory of keys that apt does not trust in general.`,
		Example: "salt '*' pkg.get_repo_keys", Params: []modules.Param{{Name: "aptkey", Default: true, Type: modules.Bool}, {Name: "keydir", Optional: true}}, Run: getRepoKeys},
	{Name: "get_selections", Doc: `Return what dpkg is to do with packages: a map from states to lists of packages.

pattern
    A name, in which * stands for anything.
state
    Only packages of that state: install, hold, deinstall, purge.`,
		Example: `salt '*' pkg.get_selections 'python-*'
salt '*' pkg.get_selections state=hold`, Params: []modules.Param{{Name: "pattern", Optional: true}, {Name: "state", Optional: true}}, Run: getSelections},
	{Name: "hold", Doc: `Keep packages from being changed.

name
    The name.
pkgs
    Several packages: a list of names, or of maps from a name to a version.
sources
    Package files: a list of maps from a name to a path or URL.`,
		Example: `salt '*' pkg.hold <package>
salt '*' pkg.hold pkgs='[foo, bar]'`, Params: []modules.Param{
			{Name: "name", Optional: true},
			{Name: "pkgs", Optional: true},
			{Name: "sources", Optional: true},
		}, Kwargs: "kwargs", Run: hold},
	{Name: "info_installed", Doc: pkglist.InfoInstalledDoc,
		Example: `salt '*' pkg.info_installed <package>
salt '*' pkg.info_installed <package1> <package2> failhard=False`, Args: "names", Kwargs: "kwargs", Run: infoInstalled},
	{Name: "install", Doc: `Install packages, and return what changed.

A version may be exact or a comparison such as '>=1.2'. Further keywords: version, force_yes, force_conf_new, install_recommends,
only_upgrade, cache_valid_time, split_arch, env.

name
    The name.
refresh
    Bring the indexes of the repositories up to date first.
fromrepo
    The repository or release to take packages from.
skip_verify
    Do not check signatures.
debconf
    A file with answers for debconf, given to it before the installation.
pkgs
    Several packages: a list of names, or of maps from a name to a version.
sources
    Package files: a list of maps from a name to a path or URL.
reinstall
    Install packages again that are installed in that version.
downloadonly
    Only download.
ignore_epoch
    Leave the epoch out of the comparison.
normalize
    Leave out the architecture of names where the manager does not need it.`,
		Example: `salt '*' pkg.install <package>
salt '*' pkg.install pkgs='[foo, {bar: 1.2.3-0ubuntu0}]'
salt '*' pkg.install sources='[{foo: salt://foo.deb}]'`, Params: []modules.Param{
			{Name: "name", Optional: true},
			{Name: "refresh", Default: false, Type: modules.Bool},
			{Name: "fromrepo", Optional: true},
			{Name: "skip_verify", Default: false, Type: modules.Bool},
			{Name: "debconf", Optional: true},
			{Name: "pkgs", Optional: true},
			{Name: "sources", Optional: true},
			{Name: "reinstall", Default: false, Type: modules.Bool},
			{Name: "downloadonly", Default: false, Type: modules.Bool},
			{Name: "ignore_epoch", Default: false, Type: modules.Bool},
			{Name: "normalize", Default: true, Type: modules.Bool},
		}, Kwargs: "kwargs", Run: install},
	{Name: "latest_version", Doc: `Return the version that an installation or upgrade of packages would bring, empty for those that are up to date or unknown.

Keywords: refresh, fromrepo, show_installed, cache_valid_time.`,
		Example: `salt '*' pkg.latest_version <package>
salt '*' pkg.latest_version <package1> <package2> fromrepo=unstable`, Args: "names", Kwargs: "kwargs", Run: latestVersion},
	{Name: "list_downloaded", Doc: `List the package files in apt's cache.

root
    Work in the system below this directory.`,
		Example: "salt '*' pkg.list_downloaded", Params: []modules.Param{{Name: "root", Optional: true}}, Kwargs: "kwargs", Run: listDownloaded},
	{Name: "list_pkgs", Doc: `List installed packages with their versions.

versions_as_list
    Give the versions of each package as a list instead of text.
removed
    List packages that are removed but have configuration files left.
purge_desired
    List packages that are installed but marked for purging.`,
		Example: `salt '*' pkg.list_pkgs
salt '*' pkg.list_pkgs versions_as_list=True`, Params: []modules.Param{
			{Name: "versions_as_list", Default: false, Type: modules.Bool},
			{Name: "removed", Default: false, Type: modules.Bool},
			{Name: "purge_desired", Default: false, Type: modules.Bool},
		}, Kwargs: "kwargs", Run: listPkgs},
	{Name: "list_repo_pkgs", Doc: "List the versions of packages that the repositories have; of all packages if none is named.",
		Example: `salt '*' pkg.list_repo_pkgs
salt '*' pkg.list_repo_pkgs foo bar`, Args: "args", Kwargs: "kwargs", Run: listRepoPkgs},
	{Name: "list_repos", Doc: "List the repositories, by address.", Example: "salt '*' pkg.list_repos", Kwargs: "kwargs", Run: listRepos},
	{Name: "list_upgrades", Doc: `List packages that can be upgraded, with the new versions.

refresh
    Bring the indexes of the repositories up to date first.
dist_upgrade
    Also remove packages or install new ones where an upgrade needs that.`,
		Example: "salt '*' pkg.list_upgrades", Params: []modules.Param{
			{Name: "refresh", Default: true, Type: modules.Bool},
			{Name: "dist_upgrade", Default: true, Type: modules.Bool},
		}, Kwargs: "kwargs", Run: listUpgrades},
	{Name: "mod_repo", Doc: `Add a repository, or change one, and return what it is now.

Keywords: refresh, comps, architectures, disabled, enabled, file, dist, comments, consolidate, and for its key key_url, key_text or
keyid with keyserver.

repo
    The repository, as a line of sources.list.
saltenv
    The environment of the file server.
aptkey
    Use apt-key, where it is there.`,
		Example: `salt '*' pkg.mod_repo 'deb http://archive.example.org/debian stable main' file=/etc/apt/sources.list.d/example.list
salt '*' pkg.mod_repo 'deb http://archive.example.org/debian stable main' disabled=True`, Params: []modules.Param{
			{Name: "repo"},
			{Name: "saltenv", Default: "base", Type: modules.String},
			{Name: "aptkey", Default: true, Type: modules.Bool},
		}, Kwargs: "kwargs", Run: modRepo},
	{Name: "normalize_name", Doc: pkglist.NormalizeNameDoc, Example: "salt '*' pkg.normalize_name zsh:amd64", Params: []modules.Param{{Name: "name"}}, Run: normalizeName},
	{Name: "owner", Doc: pkglist.OwnerDoc,
		Example: `salt '*' pkg.owner /usr/bin/apachectl
salt '*' pkg.owner /usr/bin/apachectl /etc/passwd`, Args: "paths", Kwargs: "kwargs", Run: owner},
	{Name: "parse_arch", Doc: pkglist.ParseArchDoc, Example: "salt '*' pkg.parse_arch zsh:amd64", Params: []modules.Param{{Name: "name"}}, Run: parseArch},
	{Name: "purge", Doc: pkglist.PurgeDoc,
		Example: `salt '*' pkg.purge <package>
salt '*' pkg.purge pkgs='[foo, bar]'`, Params: []modules.Param{{Name: "name", Optional: true}, {Name: "pkgs", Optional: true}}, Kwargs: "kwargs", Run: purge},
	{Name: "refresh_db", Doc: `Bring the indexes of the repositories up to date. For each one: True if it is new, None if it is as before, False if it cannot be had.

cache_valid_time
    Do nothing if the indexes are younger than so many seconds.
failhard
    Fail if an index cannot be had.`,
		Example: `salt '*' pkg.refresh_db
salt '*' pkg.refresh_db cache_valid_time=3600`, Params: []modules.Param{
			{Name: "cache_valid_time", Default: int64(0), Type: modules.Int},
			{Name: "failhard", Default: false, Type: modules.Bool},
		}, Kwargs: "kwargs", Run: refreshDB},
	{Name: "remove", Doc: pkglist.RemoveDoc,
		Example: `salt '*' pkg.remove <package>
salt '*' pkg.remove pkgs='[foo, bar]'`, Params: []modules.Param{{Name: "name", Optional: true}, {Name: "pkgs", Optional: true}}, Kwargs: "kwargs", Run: remove},
	{Name: "services_need_restart", Doc: "List services that still use files of packages that were upgraded. It needs checkrestart.", Example: "salt '*' pkg.services_need_restart", Kwargs: "kwargs", Run: servicesNeedRestart},
	{Name: "set_selections", Doc: `Tell dpkg what to do with packages, and return what changed.

path
    A file of the file server.
selection
    A map from states to lists of packages.
clear
    Set all other packages to deinstall.
saltenv
    The environment of the file server.`,
		Example: `salt '*' pkg.set_selections selection='{"install": ["netcat"]}'
salt '*' pkg.set_selections path=salt://file.txt`, Params: []modules.Param{
			{Name: "path", Optional: true},
			{Name: "selection", Optional: true},
			{Name: "clear", Default: false, Type: modules.Bool},
			{Name: "saltenv", Default: "base", Type: modules.String},
		}, Run: setSelections},
	{Name: "show", Doc: "Return what the repositories say about packages, by version. The keyword filter takes the wanted fields.",
		Example: `salt '*' pkg.show gawk
salt '*' pkg.show 'nginx-*' filter=description,provides`, Args: "names", Kwargs: "kwargs", Run: show},
	{Name: "unhold", Doc: pkglist.UnholdDoc,
		Example: `salt '*' pkg.unhold <package>
salt '*' pkg.unhold pkgs='[foo, bar]'`, Params: []modules.Param{
			{Name: "name", Optional: true},
			{Name: "pkgs", Optional: true},
			{Name: "sources", Optional: true},
		}, Kwargs: "kwargs", Run: unhold},
	{Name: "upgrade", Doc: `Upgrade all packages, and return what changed.

Keywords: cache_valid_time, force_yes, force_conf_new, skip_verify, download_only, allow_downgrades.

refresh
    Bring the indexes of the repositories up to date first.
dist_upgrade
    Also remove packages or install new ones where an upgrade needs that.`,
		Example: `salt '*' pkg.upgrade
salt '*' pkg.upgrade dist_upgrade=True`, Params: []modules.Param{
			{Name: "refresh", Default: true, Type: modules.Bool},
			{Name: "dist_upgrade", Default: false, Type: modules.Bool},
		}, Kwargs: "kwargs", Run: upgrade},
	{Name: "upgrade_available", Doc: pkglist.UpgradeAvailableDoc, Example: "salt '*' pkg.upgrade_available <package>", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: upgradeAvailable},
	{Name: "version", Doc: pkglist.VersionDoc,
		Example: `salt '*' pkg.version <package>
salt '*' pkg.version <package1> <package2>`, Args: "names", Kwargs: "kwargs", Run: pkglist.VersionOf},
	{Name: "version_cmp", Doc: pkglist.VersionCmpDoc, Example: "salt '*' pkg.version_cmp '0.2.4-0ubuntu1' '0.2.4.1-0ubuntu1'", Params: []modules.Param{{Name: "pkg1"}, {Name: "pkg2"}, {Name: "ignore_epoch", Default: false, Type: modules.Bool}}, Kwargs: "kwargs", Run: versionCmp},
	{Name: "which", Doc: `Return the package that a file belongs to, None if it belongs to none, False if there is no such file.

path
    The path of the file.`,
		Example: "salt '*' pkg.which /usr/sbin/apachectl", Params: []modules.Param{{Name: "path"}}, Run: which},
}}
