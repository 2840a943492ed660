package zypperpkg

import (
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/rpm"
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

// Module is Salt's "pkg": packages and repositories of SUSE's systems, through zypper.
var Module = &modules.Module{Name: "zypperpkg", Virtual: "pkg", Doc: `Packages and repositories of SUSE's systems, through zypper.`, Available: available, Funcs: []modules.Def{
	{Name: "available_version", Doc: pkglist.AvailableVersionDoc, Example: "salt '*' pkg.available_version <package>", Args: "names", Kwargs: "kwargs", Run: latestVersion},
	{Name: "clean_locks", Doc: `Remove locks that nothing needs, and tell how many there were.

` + rootDoc,
		Example: "salt '*' pkg.clean_locks", Params: []modules.Param{rootParam}, Run: cleanLocks},
	{Name: "del_repo", Doc: `Remove a repository.

repo
    The name of the repository.
` + rootDoc,
		Example: "salt '*' pkg.del_repo myrepo", Params: []modules.Param{{Name: "repo"}, rootParam}, Run: delRepo},
	{Name: "diff", Doc: "Return what differs between installed files and those in their packages.", Example: "salt '*' pkg.diff apache2 /etc/apache2/httpd.conf", Args: "paths", Kwargs: "kwargs", Run: diff},
	{Name: "download", Doc: "Download packages without installing them, and return where they are. Keywords: refresh, root.", Example: "salt '*' pkg.download httpd postfix", Args: "packages", Kwargs: "kwargs", Run: download},
	{Name: "file_dict", Doc: pkglist.FileDictDoc, Example: "salt '*' pkg.file_dict httpd postfix", Args: "packages", Kwargs: "kwargs", Run: rpm.FileDict},
	{Name: "file_list", Doc: pkglist.FileListDoc, Example: "salt '*' pkg.file_list httpd postfix", Args: "packages", Kwargs: "kwargs", Run: rpm.FileList},
	{Name: "get_repo", Doc: `Return what is known about a repository, or an empty map.

repo
    The name of the repository.
` + rootDoc,
		Example: "salt '*' pkg.get_repo myrepo", Params: []modules.Param{{Name: "repo"}, rootParam}, Kwargs: "kwargs", Run: getRepo},
	{Name: "hold", Doc: `Keep packages from being changed.

` + nameDoc + pkgsDoc + rootDoc,
		Example: "salt '*' pkg.hold pkgs='[foo, bar]'", Params: []modules.Param{nameParam, pkgsParam, rootParam}, Kwargs: "kwargs", Run: hold},
	{Name: "info_available", Doc: "Return what the repositories know about packages. Keywords: refresh, root.", Example: "salt '*' pkg.info_available <package>", Args: "names", Kwargs: "kwargs", Run: infoAvailable},
	{Name: "info_installed", Doc: pkglist.InfoInstalledDoc,
		Example: `salt '*' pkg.info_installed <package>
salt '*' pkg.info_installed <package1> <package2> failhard=False`, Args: "names", Kwargs: "kwargs", Run: rpm.InfoInstalled},
	{Name: "install", Doc: `Install packages, and return what changed.

Further keywords: advisory_ids, diff_attr, normalize, resolve_capabilities.

` + nameDoc + refreshDoc + `fromrepo
    The repositories to take packages from.
` + pkgsDoc + `sources
    Package files: a list of maps from a name to a path or URL.
downloadonly
    Only download.
skip_verify
    Do not check signatures.
version
    A version, a pattern or a comparison.
ignore_repo_failure
    Go on where a repository fails.
no_recommends
    Do not install recommended packages.
` + rootDoc,
		Example: "salt '*' pkg.install pkgs='[foo, {bar: 1.2.3-4}]'", Params: []modules.Param{
			nameParam, {Name: "refresh", Default: false, Type: modules.Bool}, {Name: "fromrepo", Optional: true}, pkgsParam,
			{Name: "sources", Optional: true}, {Name: "downloadonly", Optional: true},
			{Name: "skip_verify", Default: false, Type: modules.Bool}, {Name: "version", Optional: true},
			{Name: "ignore_repo_failure", Default: false, Type: modules.Bool}, {Name: "no_recommends", Default: false, Type: modules.Bool},
			rootParam,
		}, Kwargs: "kwargs", Run: install},
	{Name: "latest_version", Doc: `Return the version that an installation or upgrade of packages would bring, empty for those that are up to date or unknown.

Keywords: refresh, root.`,
		Example: "salt '*' pkg.latest_version <package1> <package2>", Args: "names", Kwargs: "kwargs", Run: latestVersion},
	{Name: "list_downloaded", Doc: `List the package files in zypper's cache.

` + rootDoc,
		Example: "salt '*' pkg.list_downloaded", Params: []modules.Param{rootParam}, Kwargs: "kwargs", Run: listDownloadedRun},
	{Name: "list_holds", Doc: `List installed packages that are locked.

pattern
    A regular expression for names of packages.
full
    Give versions as well.
` + rootDoc,
		Example: "salt '*' pkg.list_holds", Params: []modules.Param{
			{Name: "pattern", Optional: true}, {Name: "full", Default: true, Type: modules.Bool}, rootParam,
		}, Kwargs: "kwargs", Run: listHolds},
	{Name: "list_installed_patches", Doc: `List installed patches.

` + rootDoc,
		Example: "salt '*' pkg.list_installed_patches", Params: []modules.Param{rootParam}, Kwargs: "kwargs", Run: listInstalledPatches},
	{Name: "list_installed_patterns", Doc: `List installed patterns.

` + rootDoc,
		Example: "salt '*' pkg.list_installed_patterns", Params: []modules.Param{rootParam}, Run: listInstalledPatterns},
	{Name: "list_locks", Doc: `List the locks, by what they are on.

` + rootDoc,
		Example: "salt '*' pkg.list_locks", Params: []modules.Param{rootParam}, Run: listLocks},
	{Name: "list_patches", Doc: `List patches, and whether they are installed.

` + refreshDoc + rootDoc,
		Example: "salt '*' pkg.list_patches", Params: []modules.Param{{Name: "refresh", Default: false, Type: modules.Bool}, rootParam}, Kwargs: "kwargs", Run: listPatches},
	{Name: "list_patterns", Doc: `List patterns, and whether they are installed.

` + refreshDoc + rootDoc,
		Example: "salt '*' pkg.list_patterns", Params: []modules.Param{{Name: "refresh", Default: false, Type: modules.Bool}, rootParam}, Run: listPatterns},
	{Name: "list_pkgs", Doc: `List installed packages with their versions. The keyword attr asks for attributes instead.

versions_as_list
    Give the versions of each package as a list instead of text.
` + rootDoc + `includes
    Also list product, pattern or patch.`,
		Example: "salt '*' pkg.list_pkgs attr=version,arch", Params: []modules.Param{
			{Name: "versions_as_list", Default: false, Type: modules.Bool}, rootParam, {Name: "includes", Optional: true},
		}, Kwargs: "kwargs", Run: listPkgs},
	{Name: "list_products", Doc: `List products.

all
    Also those that are not installed.
` + refreshDoc + rootDoc,
		Example: "salt '*' pkg.list_products all=True", Params: []modules.Param{
			{Name: "all", Default: false, Type: modules.Bool}, {Name: "refresh", Default: false, Type: modules.Bool}, rootParam,
		}, Run: listProducts},
	{Name: "list_provides", Doc: `List what packages provide, each with the packages.

` + rootDoc,
		Example: "salt '*' pkg.list_provides", Params: []modules.Param{rootParam}, Kwargs: "kwargs", Run: listProvides},
	{Name: "list_repo_pkgs", Doc: `List the versions of packages that the repositories have; of all packages if none is named.

Keywords: byrepo, fromrepo, root.`,
		Example: "salt '*' pkg.list_repo_pkgs 'python2-*' byrepo=True", Args: "args", Kwargs: "kwargs", Run: listRepoPkgs},
	{Name: "list_repos", Doc: `List the repositories, by name.

` + rootDoc,
		Example: "salt '*' pkg.list_repos", Params: []modules.Param{rootParam}, Kwargs: "kwargs", Run: listRepos},
	{Name: "list_updates", Doc: `List packages that can be upgraded; the same as list_upgrades.

` + refreshDoc + rootDoc,
		Example: "salt '*' pkg.list_updates", Params: []modules.Param{{Name: "refresh", Default: true, Type: modules.Bool}, rootParam}, Kwargs: "kwargs", Run: listUpgrades},
	{Name: "list_upgrades", Doc: pkglist.ListUpgradesDoc, Example: "salt '*' pkg.list_upgrades", Params: []modules.Param{{Name: "refresh", Default: true, Type: modules.Bool}, rootParam}, Kwargs: "kwargs", Run: listUpgrades},
	{Name: "mod_repo", Doc: `Add a repository, or change one, and return what it is now.

Keywords: baseurl, mirrorlist or url, enabled, refresh, cache, gpgcheck, priority, name, humanname, gpgautoimport, root.

repo
    The name of the repository.`,
		Example: "salt '*' pkg.mod_repo myrepo baseurl=http://example.org/repo enabled=True", Params: []modules.Param{{Name: "repo"}}, Kwargs: "kwargs", Run: modRepo},
	{Name: "modified", Doc: "List files that were changed since their packages were installed.", Example: "salt '*' pkg.modified httpd", Args: "packages", Kwargs: "flags", Run: rpm.Modified},
	{Name: "normalize_name", Doc: pkglist.NormalizeNameDoc, Example: "salt '*' pkg.normalize_name zsh:amd64", Params: []modules.Param{{Name: "name"}}, Run: rpm.NormalizeName},
	{Name: "owner", Doc: pkglist.OwnerDoc,
		Example: `salt '*' pkg.owner /usr/bin/apachectl
salt '*' pkg.owner /usr/bin/apachectl /etc/passwd`, Args: "paths", Kwargs: "kwargs", Run: rpm.Owner},
	{Name: "parse_arch", Doc: pkglist.ParseArchDoc, Example: "salt '*' pkg.parse_arch zsh:amd64", Params: []modules.Param{{Name: "name"}}, Run: rpm.ParseArch},
	{Name: "purge", Doc: `Remove packages, and return what changed; the same as remove.

` + nameDoc + pkgsDoc + rootDoc,
		Example: "salt '*' pkg.purge pkgs='[foo, bar]'", Params: []modules.Param{nameParam, pkgsParam, rootParam}, Kwargs: "kwargs", Run: purge},
	{Name: "refresh_db", Doc: `Bring the indexes of the repositories up to date. For each one: True if it is new, False if it is as before. The keyword repos chooses some.

force
    Fetch indexes that are up to date as well; the default is zypper:refreshdb_force of the pillar, or True.
` + rootDoc + `gpgautoimport
    Trust new keys.`,
		Example: "salt '*' pkg.refresh_db force=False", Params: []modules.Param{
			{Name: "force", Optional: true}, rootParam, {Name: "gpgautoimport", Default: false, Type: modules.Bool},
		}, Kwargs: "kwargs", Run: refreshDB},
	{Name: "remove", Doc: `Remove packages, and return what changed.

` + nameDoc + pkgsDoc + rootDoc,
		Example: "salt '*' pkg.remove pkgs='[foo, bar]'", Params: []modules.Param{nameParam, pkgsParam, rootParam}, Kwargs: "kwargs", Run: remove},
	{Name: "resolve_capabilities", Doc: `Put packages in the place of the capabilities that only they provide. The keyword resolve_capabilities must be True for that.

` + pkgsDoc + refreshDoc + rootDoc,
		Example: "salt '*' pkg.resolve_capabilities resolve_capabilities=True w3m_ssl", Params: []modules.Param{{Name: "pkgs"}, {Name: "refresh", Default: false, Type: modules.Bool}, rootParam}, Kwargs: "kwargs", Run: resolveCapabilities},
	{Name: "search", Doc: `Search packages.

Keywords: match (words, exact or substrings), provides, recommends, requires, suggests, conflicts, obsoletes, file_list,
search_descriptions, case_sensitive, installed_only, not_installed_only, details, root.

criteria
    What to look for.
` + refreshDoc,
		Example: "salt '*' pkg.search <criteria> match=exact", Params: []modules.Param{{Name: "criteria"}, {Name: "refresh", Default: false, Type: modules.Bool}}, Kwargs: "kwargs", Run: searchRun},
	{Name: "services_need_restart", Doc: `List services that still use files of packages that were upgraded.

` + rootDoc,
		Example: "salt '*' pkg.services_need_restart", Params: []modules.Param{rootParam}, Kwargs: "kwargs", Run: servicesNeedRestart},
	{Name: "unhold", Doc: `Let packages be changed again.

` + nameDoc + pkgsDoc + rootDoc,
		Example: "salt '*' pkg.unhold pkgs='[foo, bar]'", Params: []modules.Param{nameParam, pkgsParam, rootParam}, Kwargs: "kwargs", Run: unhold},
	{Name: "upgrade", Doc: `Upgrade all packages or the named ones, and return what changed.

` + nameDoc + pkgsDoc + refreshDoc + `dryrun
    Only tell what would be done.
dist_upgrade
    Upgrade the distribution.
fromrepo
    The repositories to take packages from.
novendorchange
    Keep to the vendors of packages.
skip_verify
    Do not check signatures.
no_recommends
    Do not install recommended packages.
` + rootDoc + `diff_attr
    Attributes to compare: epoch, version, release, arch, install_date, install_date_time_t.`,
		Example: `salt '*' pkg.upgrade dist_upgrade=True fromrepo='["MyRepo"]'`, Params: []modules.Param{
			nameParam, pkgsParam, {Name: "refresh", Default: true, Type: modules.Bool},
			{Name: "dryrun", Default: false, Type: modules.Bool}, {Name: "dist_upgrade", Default: false, Type: modules.Bool},
			{Name: "fromrepo", Optional: true}, {Name: "novendorchange", Default: false, Type: modules.Bool},
			{Name: "skip_verify", Default: false, Type: modules.Bool}, {Name: "no_recommends", Default: false, Type: modules.Bool},
			rootParam, {Name: "diff_attr", Optional: true},
		}, Kwargs: "kwargs", Run: upgrade},
	{Name: "upgrade_available", Doc: pkglist.UpgradeAvailableDoc, Example: "salt '*' pkg.upgrade_available <package>", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: upgradeAvailable},
	{Name: "verify", Doc: `Return what differs between installed files and what their packages say about them.

The keyword ignore_types leaves kinds of files out.`,
		Example: "salt '*' pkg.verify httpd ignore_types=[config,doc]", Args: "names", Kwargs: "kwargs", Run: rpm.Verify},
	{Name: "version", Doc: pkglist.VersionDoc,
		Example: `salt '*' pkg.version <package>
salt '*' pkg.version <package1> <package2>`, Args: "names", Kwargs: "kwargs", Run: version},
	{Name: "version_cmp", Doc: `Compare two versions: -1 if the first is older, 0 if they are the same, 1 if it is newer, None if they cannot be compared.

ver1
    A version.
ver2
    Another version.
ignore_epoch
    Leave the epoch out of the comparison.`,
		Example: "salt '*' pkg.version_cmp '0.2-001' '0.2.0.1-002'", Params: []modules.Param{
			{Name: "ver1"},
			{Name: "ver2"},
			{Name: "ignore_epoch", Default: false, Type: modules.Bool},
		}, Kwargs: "kwargs", Run: versionCmp},
}}

// What the functions share: the documentation of parameters, and parameters that may be absent.
const (
	nameDoc = `name
    The name.
`
	pkgsDoc = `pkgs
    Several packages: a list of names, or of maps from a name to a version.
`
	refreshDoc = `refresh
    Bring the indexes of the repositories up to date first.
`
	rootDoc = `root
    Work in the system below this directory.
`
)

var (
	nameParam = modules.Param{Name: "name", Optional: true}
	pkgsParam = modules.Param{Name: "pkgs", Optional: true}
	rootParam = modules.Param{Name: "root", Optional: true}
)
