package zypperpkg

import (
	_ "embed"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/rpm"
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "pkg": packages and repositories of SUSE's systems, through zypper.
var Module = &modules.Module{Name: "zypperpkg", Virtual: "pkg", Doc: `Packages and repositories of SUSE's systems, through zypper.`, Docs: &docs, Available: available, Funcs: []modules.Def{
	{Name: "available_version", Doc: pkglist.AvailableVersionDoc, Example: "salt '*' pkg.available_version <package>", Args: "names", Kwargs: "kwargs", Run: latestVersion},
	{Name: "clean_locks", Params: []modules.Param{rootParam}, Run: cleanLocks},
	{Name: "del_repo", Params: []modules.Param{{Name: "repo"}, rootParam}, Run: delRepo},
	{Name: "diff", Args: "paths", Kwargs: "kwargs", Run: diff},
	{Name: "download", Args: "packages", Kwargs: "kwargs", Run: download},
	{Name: "file_dict", Doc: pkglist.FileDictDoc, Example: "salt '*' pkg.file_dict httpd postfix", Args: "packages", Kwargs: "kwargs", Run: rpm.FileDict},
	{Name: "file_list", Doc: pkglist.FileListDoc, Example: "salt '*' pkg.file_list httpd postfix", Args: "packages", Kwargs: "kwargs", Run: rpm.FileList},
	{Name: "get_repo", Params: []modules.Param{{Name: "repo"}, rootParam}, Kwargs: "kwargs", Run: getRepo},
	{Name: "hold", Params: []modules.Param{nameParam, pkgsParam, rootParam}, Kwargs: "kwargs", Run: hold},
	{Name: "info_available", Args: "names", Kwargs: "kwargs", Run: infoAvailable},
	{Name: "info_installed", Doc: pkglist.InfoInstalledDoc,
		Example: `salt '*' pkg.info_installed <package>
salt '*' pkg.info_installed <package1> <package2> failhard=False`, Args: "names", Kwargs: "kwargs", Run: rpm.InfoInstalled},
	{Name: "install", Params: []modules.Param{
		nameParam, {Name: "refresh", Default: false, Type: modules.Bool}, {Name: "fromrepo", Optional: true}, pkgsParam,
		{Name: "sources", Optional: true}, {Name: "downloadonly", Optional: true},
		{Name: "skip_verify", Default: false, Type: modules.Bool}, {Name: "version", Optional: true},
		{Name: "ignore_repo_failure", Default: false, Type: modules.Bool}, {Name: "no_recommends", Default: false, Type: modules.Bool},
		rootParam,
	}, Kwargs: "kwargs", Run: install},
	{Name: "latest_version", Args: "names", Kwargs: "kwargs", Run: latestVersion},
	{Name: "list_downloaded", Params: []modules.Param{rootParam}, Kwargs: "kwargs", Run: listDownloadedRun},
	{Name: "list_holds", Params: []modules.Param{
		{Name: "pattern", Optional: true}, {Name: "full", Default: true, Type: modules.Bool}, rootParam,
	}, Kwargs: "kwargs", Run: listHolds},
	{Name: "list_installed_patches", Params: []modules.Param{rootParam}, Kwargs: "kwargs", Run: listInstalledPatches},
	{Name: "list_installed_patterns", Params: []modules.Param{rootParam}, Run: listInstalledPatterns},
	{Name: "list_locks", Params: []modules.Param{rootParam}, Run: listLocks},
	{Name: "list_patches",
		Params: []modules.Param{{Name: "refresh", Default: false, Type: modules.Bool}, rootParam}, Kwargs: "kwargs", Run: listPatches},
	{Name: "list_patterns",
		Params: []modules.Param{{Name: "refresh", Default: false, Type: modules.Bool}, rootParam}, Run: listPatterns},
	{Name: "list_pkgs", Params: []modules.Param{
		{Name: "versions_as_list", Default: false, Type: modules.Bool}, rootParam, {Name: "includes", Optional: true},
	}, Kwargs: "kwargs", Run: listPkgs},
	{Name: "list_products", Params: []modules.Param{
		{Name: "all", Default: false, Type: modules.Bool}, {Name: "refresh", Default: false, Type: modules.Bool}, rootParam,
	}, Run: listProducts},
	{Name: "list_provides", Params: []modules.Param{rootParam}, Kwargs: "kwargs", Run: listProvides},
	{Name: "list_repo_pkgs", Args: "args", Kwargs: "kwargs", Run: listRepoPkgs},
	{Name: "list_repos", Params: []modules.Param{rootParam}, Kwargs: "kwargs", Run: listRepos},
	{Name: "list_updates",
		Params: []modules.Param{{Name: "refresh", Default: true, Type: modules.Bool}, rootParam}, Kwargs: "kwargs", Run: listUpgrades},
	{Name: "list_upgrades", Doc: pkglist.ListUpgradesDoc, Example: "salt '*' pkg.list_upgrades", Params: []modules.Param{{Name: "refresh", Default: true, Type: modules.Bool}, rootParam}, Kwargs: "kwargs", Run: listUpgrades},
	{Name: "mod_repo", Params: []modules.Param{{Name: "repo"}}, Kwargs: "kwargs", Run: modRepo},
	{Name: "modified", Args: "packages", Kwargs: "flags", Run: rpm.Modified},
	{Name: "normalize_name", Doc: pkglist.NormalizeNameDoc, Example: "salt '*' pkg.normalize_name zsh:amd64", Params: []modules.Param{{Name: "name"}}, Run: rpm.NormalizeName},
	{Name: "owner", Doc: pkglist.OwnerDoc,
		Example: `salt '*' pkg.owner /usr/bin/apachectl
salt '*' pkg.owner /usr/bin/apachectl /etc/passwd`, Args: "paths", Kwargs: "kwargs", Run: rpm.Owner},
	{Name: "parse_arch", Doc: pkglist.ParseArchDoc, Example: "salt '*' pkg.parse_arch zsh:amd64", Params: []modules.Param{{Name: "name"}}, Run: rpm.ParseArch},
	{Name: "purge", Params: []modules.Param{nameParam, pkgsParam, rootParam}, Kwargs: "kwargs", Run: purge},
	{Name: "refresh_db", Params: []modules.Param{
		{Name: "force", Optional: true}, rootParam, {Name: "gpgautoimport", Default: false, Type: modules.Bool},
	}, Kwargs: "kwargs", Run: refreshDB},
	{Name: "remove", Params: []modules.Param{nameParam, pkgsParam, rootParam}, Kwargs: "kwargs", Run: remove},
	{Name: "resolve_capabilities",
		Params: []modules.Param{{Name: "pkgs"}, {Name: "refresh", Default: false, Type: modules.Bool}, rootParam}, Kwargs: "kwargs", Run: resolveCapabilities},
	{Name: "search",
		Params: []modules.Param{{Name: "criteria"}, {Name: "refresh", Default: false, Type: modules.Bool}}, Kwargs: "kwargs", Run: searchRun},
	{Name: "services_need_restart", Params: []modules.Param{rootParam}, Kwargs: "kwargs", Run: servicesNeedRestart},
	{Name: "unhold", Params: []modules.Param{nameParam, pkgsParam, rootParam}, Kwargs: "kwargs", Run: unhold},
	{Name: "upgrade", Params: []modules.Param{
		nameParam, pkgsParam, {Name: "refresh", Default: true, Type: modules.Bool},
		{Name: "dryrun", Default: false, Type: modules.Bool}, {Name: "dist_upgrade", Default: false, Type: modules.Bool},
		{Name: "fromrepo", Optional: true}, {Name: "novendorchange", Default: false, Type: modules.Bool},
		{Name: "skip_verify", Default: false, Type: modules.Bool}, {Name: "no_recommends", Default: false, Type: modules.Bool},
		rootParam, {Name: "diff_attr", Optional: true},
	}, Kwargs: "kwargs", Run: upgrade},
	{Name: "upgrade_available", Doc: pkglist.UpgradeAvailableDoc, Example: "salt '*' pkg.upgrade_available <package>", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: upgradeAvailable},
	{Name: "verify", Args: "names", Kwargs: "kwargs", Run: rpm.Verify},
	{Name: "version", Doc: pkglist.VersionDoc,
		Example: `salt '*' pkg.version <package>
salt '*' pkg.version <package1> <package2>`, Args: "names", Kwargs: "kwargs", Run: version},
	{Name: "version_cmp", Params: []modules.Param{
		{Name: "ver1"},
		{Name: "ver2"},
		{Name: "ignore_epoch", Default: false, Type: modules.Bool},
	}, Kwargs: "kwargs", Run: versionCmp},
}}

var (
	nameParam = modules.Param{Name: "name", Optional: true}
	pkgsParam = modules.Param{Name: "pkgs", Optional: true}
	rootParam = modules.Param{Name: "root", Optional: true}
)
