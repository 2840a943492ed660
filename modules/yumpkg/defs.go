package yumpkg

import (
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/rpm"
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

// Module is Salt's "pkg": packages and repositories of Red Hat's systems and their relatives, through dnf or yum.
var Module = &modules.Module{Name: "yumpkg", Virtual: "pkg", Doc: `Packages and repositories of Red Hat's systems and their relatives, through dnf or yum.`, Available: available, Funcs: []modules.Def{
	{Name: "available_version", Doc: pkglist.AvailableVersionDoc, Example: "salt '*' pkg.available_version <package>", Args: "names", Kwargs: "kwargs", Run: latestVersion},
	{Name: "clean_metadata", Doc: "Fetch the indexes of the repositories again; the same as refresh_db.", Example: "salt '*' pkg.clean_metadata", Kwargs: "kwargs", Run: refreshDB},
	{Name: "del_repo", Doc: `Remove a repository, and its file if there is no other one in it.

repo
    The name of the repository.
` + basedirDoc,
		Example: "salt '*' pkg.del_repo myrepo", Params: []modules.Param{{Name: "repo"}, basedirParam}, Kwargs: "kwargs", Run: delRepo},
	{Name: "diff", Doc: "Return what differs between installed files and those in their packages.", Example: "salt '*' pkg.diff apache2 /etc/apache2/httpd.conf", Args: "paths", Kwargs: "kwargs", Run: diff},
	{Name: "download", Doc: "Download packages without installing them, and return the paths.", Example: "salt '*' pkg.download httpd postfix", Args: "packages", Kwargs: "kwargs", Run: download},
	{Name: "file_dict", Doc: pkglist.FileDictDoc, Example: "salt '*' pkg.file_dict httpd postfix", Args: "packages", Kwargs: "kwargs", Run: rpm.FileDict},
	{Name: "file_list", Doc: pkglist.FileListDoc, Example: "salt '*' pkg.file_list httpd postfix", Args: "packages", Kwargs: "kwargs", Run: rpm.FileList},
	{Name: "get_locked_packages", Doc: `List packages that are kept from being changed; the same as list_holds.

pattern
    A regular expression for names of packages.
full
    Give locks as they stand in the list rather than names.`,
		Example: "salt '*' pkg.get_locked_packages", Params: []modules.Param{
			{Name: "pattern", Default: "[\\w+]+(?:[.-][^-]+)*", Type: modules.String},
			{Name: "full", Default: true, Type: modules.Bool},
		}, Run: listHolds},
	{Name: "get_repo", Doc: `Return what is known about a repository, or an empty map.

repo
    The name of the repository.
` + basedirDoc,
		Example: "salt '*' pkg.get_repo myrepo", Params: []modules.Param{{Name: "repo"}, basedirParam}, Kwargs: "kwargs", Run: getRepo},
	{Name: "group_diff", Doc: `Return which packages of a group are installed and which are not.

` + nameDoc,
		Example: "salt '*' pkg.group_diff 'Perl Support'", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: groupDiff},
	{Name: "group_info", Doc: `Return the packages of a group.

` + nameDoc + `expand
    Also the members of groups in the group.
ignore_groups
    Groups that are not expanded.`,
		Example: "salt '*' pkg.group_info 'Perl Support'", Params: []modules.Param{
			{Name: "name"},
			{Name: "expand", Default: false, Type: modules.Bool},
			{Name: "ignore_groups", Optional: true},
		}, Kwargs: "kwargs", Run: groupInfo},
	{Name: "group_install", Doc: `Install the packages of groups that are not optional, and return what changed.

` + nameDoc + `skip
    Packages to leave out.
include
    Packages to add.`,
		Example: `salt '*' pkg.group_install 'Group 1'
salt '*' pkg.group_install 'Group 1' skip=foo,bar include=baz`, Params: []modules.Param{
			{Name: "name"},
			{Name: "skip", Default: []any{}, Type: modules.List},
			{Name: "include", Default: []any{}, Type: modules.List},
		}, Kwargs: "kwargs", Run: groupInstall},
	{Name: "group_list", Doc: "List the groups of packages.", Example: "salt '*' pkg.group_list", Run: groupList},
	{Name: "groupinstall", Doc: `Install the packages of groups that are not optional; the same as group_install.

` + nameDoc + `skip
    Packages to leave out.
include
    Packages to add.`,
		Example: "salt '*' pkg.groupinstall 'Group 1'", Params: []modules.Param{
			{Name: "name"},
			{Name: "skip", Default: []any{}, Type: modules.List},
			{Name: "include", Default: []any{}, Type: modules.List},
		}, Kwargs: "kwargs", Run: groupInstall},
	{Name: "hold", Doc: `Keep packages from being changed.

` + nameDoc + pkgsDoc + `sources
    Package files: a list of maps from a name to a path or URL.
` + normalizeDoc,
		Example: `salt '*' pkg.hold <package>
salt '*' pkg.hold pkgs='[foo, bar]'`, Params: []modules.Param{
			nameParam, pkgsParam, {Name: "sources", Optional: true}, {Name: "normalize", Default: true, Type: modules.Bool},
		}, Kwargs: "kwargs", Run: hold},
	{Name: "info_installed", Doc: pkglist.InfoInstalledDoc,
		Example: `salt '*' pkg.info_installed <package>
salt '*' pkg.info_installed <package1> <package2> failhard=False`, Args: "names", Kwargs: "kwargs", Run: rpm.InfoInstalled},
	{Name: "install", Doc: `Install packages, and return what changed.

A version may be exact, a pattern, or a comparison such as '>=1.2'. Further keywords: version, fromrepo, enablerepo, disablerepo,
disableexcludes, branch, setopt, diff_attr, advisory_ids, split_arch.

` + nameDoc + refreshDoc + `skip_verify
    Do not check signatures.
` + pkgsDoc + `sources
    Package files: a list of maps from a name to a path or URL.
downloadonly
    Only download.
reinstall
    Install packages again that are installed in that version.
` + normalizeDoc + `update_holds
    Also change packages that are on hold.
saltenv
    The environment of the file server.
ignore_epoch
    Leave the epoch out of the comparison.`,
		Example: `salt '*' pkg.install <package>
salt '*' pkg.install pkgs='[foo, {bar: 1.2.3-4.el9}]'
salt '*' pkg.install sources='[{foo: salt://foo.rpm}]'`, Params: []modules.Param{
			nameParam, {Name: "refresh", Default: false, Type: modules.Bool}, {Name: "skip_verify", Default: false, Type: modules.Bool},
			pkgsParam, {Name: "sources", Optional: true}, {Name: "downloadonly", Default: false, Type: modules.Bool},
			{Name: "reinstall", Default: false, Type: modules.Bool}, {Name: "normalize", Default: true, Type: modules.Bool},
			{Name: "update_holds", Default: false, Type: modules.Bool}, {Name: "saltenv", Default: "base", Type: modules.String},
			{Name: "ignore_epoch", Default: false, Type: modules.Bool},
		}, Kwargs: "kwargs", Run: install},
	{Name: "latest_version", Doc: `Return the version that an installation or upgrade of packages would bring, empty for those that are up to date or unknown.

Keywords: refresh, fromrepo, enablerepo, disablerepo, disableexcludes, setopt.`,
		Example: `salt '*' pkg.latest_version <package>
salt '*' pkg.latest_version <package1> <package2> fromrepo=epel-testing`, Args: "names", Kwargs: "kwargs", Run: latestVersion},
	{Name: "list_downloaded", Doc: "List the package files in the cache of the manager.", Example: "salt '*' pkg.list_downloaded", Kwargs: "kwargs", Run: listDownloadedRun},
	{Name: "list_holds", Doc: `List packages that are kept from being changed.

pattern
    A regular expression for names of packages.
full
    Give locks as they stand in the list rather than names.`,
		Example: `salt '*' pkg.list_holds
salt '*' pkg.list_holds full=False`, Params: []modules.Param{
			{Name: "pattern", Default: "[\\w+]+(?:[.-][^-]+)*", Type: modules.String},
			{Name: "full", Default: true, Type: modules.Bool},
		}, Run: listHolds},
	{Name: "list_installed_patches", Doc: "List the installed advisories, with their packages.", Example: "salt '*' pkg.list_installed_patches", Kwargs: "kwargs", Run: listInstalledPatches},
	{Name: "list_patches", Doc: `List the advisories, with their packages.

` + refreshDoc,
		Example: "salt '*' pkg.list_patches", Params: []modules.Param{{Name: "refresh", Default: false, Type: modules.Bool}}, Kwargs: "kwargs", Run: listPatches},
	{Name: "list_pkgs", Doc: `List installed packages with their versions. The keyword attr asks for attributes instead.

versions_as_list
    Give the versions of each package as a list instead of text.`,
		Example: `salt '*' pkg.list_pkgs
salt '*' pkg.list_pkgs attr=version,arch
salt '*' pkg.list_pkgs attr=all`, Params: []modules.Param{{Name: "versions_as_list", Default: false, Type: modules.Bool}}, Kwargs: "kwargs", Run: listPkgs},
	{Name: "list_repo_pkgs", Doc: `List the versions of packages that the repositories have.

Keywords: byrepo, cacheonly, fromrepo, enablerepo, disablerepo, setopt.`,
		Example: `salt '*' pkg.list_repo_pkgs
salt '*' pkg.list_repo_pkgs foo bar
salt '*' pkg.list_repo_pkgs 'samba4*' fromrepo=base`, Args: "args", Kwargs: "kwargs", Run: listRepoPkgs},
	{Name: "list_repos", Doc: `List the repositories, by name.

` + basedirDoc,
		Example: "salt '*' pkg.list_repos", Params: []modules.Param{basedirParam}, Kwargs: "kwargs", Run: listRepos},
	{Name: "list_updates", Doc: `List packages that can be upgraded, with the new versions; the same as list_upgrades.

` + refreshDoc,
		Example: "salt '*' pkg.list_updates", Params: []modules.Param{{Name: "refresh", Default: true, Type: modules.Bool}}, Kwargs: "kwargs", Run: listUpgrades},
	{Name: "list_upgrades", Doc: pkglist.ListUpgradesDoc, Example: "salt '*' pkg.list_upgrades", Params: []modules.Param{{Name: "refresh", Default: true, Type: modules.Bool}}, Kwargs: "kwargs", Run: listUpgrades},
	{Name: "mod_repo", Doc: `Add a repository, or change one: each keyword is an option, an empty one removes it. The answer is what the file says then.

repo
    The name of the repository.
` + basedirDoc,
		Example: `salt '*' pkg.mod_repo reponame enabled=1 gpgcheck=1
salt '*' pkg.mod_repo reponame basedir=/path/to/dir enabled=1`, Params: []modules.Param{{Name: "repo"}, basedirParam}, Kwargs: "kwargs", Run: modRepo},
	{Name: "modified", Doc: "List files that are not as they were installed, with what differs.",
		Example: `salt '*' pkg.modified httpd
salt '*' pkg.modified httpd mode=True`, Args: "packages", Kwargs: "flags", Run: rpm.Modified},
	{Name: "normalize_name", Doc: pkglist.NormalizeNameDoc, Example: "salt '*' pkg.normalize_name zsh:amd64", Params: []modules.Param{{Name: "name"}}, Run: rpm.NormalizeName},
	{Name: "owner", Doc: pkglist.OwnerDoc,
		Example: `salt '*' pkg.owner /usr/bin/apachectl
salt '*' pkg.owner /usr/bin/apachectl /etc/passwd`, Args: "paths", Kwargs: "kwargs", Run: rpm.Owner},
	{Name: "parse_arch", Doc: pkglist.ParseArchDoc, Example: "salt '*' pkg.parse_arch zsh:amd64", Params: []modules.Param{{Name: "name"}}, Run: rpm.ParseArch},
	{Name: "purge", Doc: pkglist.PurgeDoc,
		Example: `salt '*' pkg.purge <package>
salt '*' pkg.purge pkgs='[foo, bar]'`, Params: []modules.Param{nameParam, pkgsParam}, Kwargs: "kwargs", Run: purge},
	{Name: "refresh_db", Doc: "Fetch the indexes of the repositories again. True if there are updates, None if there are none, False if that failed.",
		Example: `salt '*' pkg.refresh_db
salt '*' pkg.refresh_db enablerepo=epel check_update=False`, Kwargs: "kwargs", Run: refreshDB},
	{Name: "remove", Doc: pkglist.RemoveDoc,
		Example: `salt '*' pkg.remove <package>
salt '*' pkg.remove pkgs='[foo, bar]'`, Params: []modules.Param{nameParam, pkgsParam}, Kwargs: "kwargs", Run: remove},
	{Name: "services_need_restart", Doc: "List services that still use files of packages that were upgraded.", Example: "salt '*' pkg.services_need_restart", Kwargs: "kwargs", Run: servicesNeedRestart},
	{Name: "unhold", Doc: pkglist.UnholdDoc,
		Example: `salt '*' pkg.unhold <package>
salt '*' pkg.unhold pkgs='[foo, bar]'`, Params: []modules.Param{nameParam, pkgsParam, {Name: "sources", Optional: true}}, Kwargs: "kwargs", Run: unhold},
	{Name: "update", Doc: `Upgrade all packages or the named ones, leaving obsolete ones in place; the same as upgrade with obsoletes=False.

` + nameDoc + pkgsDoc + refreshDoc + `skip_verify
    Do not check signatures.
` + normalizeDoc + `minimal
    Only upgrades that fix something.
obsoletes
    Also replace packages that are obsolete.`,
		Example: "salt '*' pkg.update", Params: []modules.Param{
			nameParam, pkgsParam, {Name: "refresh", Default: true, Type: modules.Bool},
			{Name: "skip_verify", Default: false, Type: modules.Bool}, {Name: "normalize", Default: true, Type: modules.Bool},
			{Name: "minimal", Default: false, Type: modules.Bool}, {Name: "obsoletes", Default: false, Type: modules.Bool},
		}, Kwargs: "kwargs", Run: update},
	{Name: "upgrade", Doc: `Upgrade all packages or the named ones, and return what changed.

Keywords: fromrepo, enablerepo, disablerepo, disableexcludes, branch, setopt; others are options of the manager.

` + nameDoc + pkgsDoc + refreshDoc + `skip_verify
    Do not check signatures.
` + normalizeDoc + `minimal
    Only upgrades that fix something.
obsoletes
    Also replace packages that are obsolete.
diff_attr
    Attributes to compare: epoch, version, release, arch, install_date, install_date_time_t.`,
		Example: `salt '*' pkg.upgrade
salt '*' pkg.upgrade name=openssl`, Params: []modules.Param{
			nameParam, pkgsParam, {Name: "refresh", Default: true, Type: modules.Bool},
			{Name: "skip_verify", Default: false, Type: modules.Bool}, {Name: "normalize", Default: true, Type: modules.Bool},
			{Name: "minimal", Default: false, Type: modules.Bool}, {Name: "obsoletes", Default: true, Type: modules.Bool},
			{Name: "diff_attr", Optional: true},
		}, Kwargs: "kwargs", Run: upgrade},
	{Name: "upgrade_available", Doc: pkglist.UpgradeAvailableDoc, Example: "salt '*' pkg.upgrade_available <package>", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: upgradeAvailable},
	{Name: "verify", Doc: "Return what differs from what was installed, by file.",
		Example: `salt '*' pkg.verify httpd
salt '*' pkg.verify httpd ignore_types=config`, Args: "names", Kwargs: "kwargs", Run: rpm.Verify},
	{Name: "version", Doc: pkglist.VersionDoc,
		Example: `salt '*' pkg.version <package>
salt '*' pkg.version <package1> <package2>`, Args: "names", Kwargs: "kwargs", Run: pkglist.VersionOf},
	{Name: "version_cmp", Doc: pkglist.VersionCmpDoc, Example: "salt '*' pkg.version_cmp '0.2.4-0ubuntu1' '0.2.4.1-0ubuntu1'", Params: []modules.Param{{Name: "pkg1"}, {Name: "pkg2"}, {Name: "ignore_epoch", Default: false, Type: modules.Bool}}, Kwargs: "kwargs", Run: versionCmp},
}}

// What the functions share: the documentation of parameters, and parameters that may be absent.
const (
	basedirDoc = `basedir
    The directories of repositories.
`
	nameDoc = `name
    The name.
`
	normalizeDoc = `normalize
    Leave out the architecture of names where the manager does not need it.
`
	pkgsDoc = `pkgs
    Several packages: a list of names, or of maps from a name to a version.
`
	refreshDoc = `refresh
    Bring the indexes of the repositories up to date first.
`
)

var (
	basedirParam = modules.Param{Name: "basedir", Optional: true}
	nameParam    = modules.Param{Name: "name", Optional: true}
	pkgsParam    = modules.Param{Name: "pkgs", Optional: true}
)
