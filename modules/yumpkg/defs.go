package yumpkg

import (
	_ "embed"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/rpm"
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "pkg": packages and repositories of Red Hat's systems and their relatives, through dnf or yum.
var Module = &modules.Module{Name: "yumpkg", Virtual: "pkg", Doc: `Packages and repositories of Red Hat's systems and their relatives, through dnf or yum.`, Docs: &docs, Available: available, Funcs: []modules.Def{
	{Name: "available_version", Doc: pkglist.AvailableVersionDoc, Example: "salt '*' pkg.available_version <package>", Args: "names", Kwargs: "kwargs", Run: latestVersion},
	{Name: "clean_metadata", Kwargs: "kwargs", Run: refreshDB},
	{Name: "del_repo", Params: []modules.Param{{Name: "repo"}, basedirParam}, Kwargs: "kwargs", Run: delRepo},
	{Name: "diff", Args: "paths", Kwargs: "kwargs", Run: diff},
	{Name: "download", Args: "packages", Kwargs: "kwargs", Run: download},
	{Name: "file_dict", Doc: pkglist.FileDictDoc, Example: "salt '*' pkg.file_dict httpd postfix", Args: "packages", Kwargs: "kwargs", Run: rpm.FileDict},
	{Name: "file_list", Doc: pkglist.FileListDoc, Example: "salt '*' pkg.file_list httpd postfix", Args: "packages", Kwargs: "kwargs", Run: rpm.FileList},
	{Name: "get_locked_packages", Params: []modules.Param{
		{Name: "pattern", Default: "[\\w+]+(?:[.-][^-]+)*", Type: modules.String},
		{Name: "full", Default: true, Type: modules.Bool},
	}, Run: listHolds},
	{Name: "get_repo", Params: []modules.Param{{Name: "repo"}, basedirParam}, Kwargs: "kwargs", Run: getRepo},
	{Name: "group_diff", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: groupDiff},
	{Name: "group_info", Params: []modules.Param{
		{Name: "name"},
		{Name: "expand", Default: false, Type: modules.Bool},
		{Name: "ignore_groups", Optional: true},
	}, Kwargs: "kwargs", Run: groupInfo},
	{Name: "group_install", Params: []modules.Param{
		{Name: "name"},
		{Name: "skip", Default: []any{}, Type: modules.List},
		{Name: "include", Default: []any{}, Type: modules.List},
	}, Kwargs: "kwargs", Run: groupInstall},
	{Name: "group_list", Run: groupList},
	{Name: "groupinstall", Params: []modules.Param{
		{Name: "name"},
		{Name: "skip", Default: []any{}, Type: modules.List},
		{Name: "include", Default: []any{}, Type: modules.List},
	}, Kwargs: "kwargs", Run: groupInstall},
	{Name: "hold", Params: []modules.Param{
		nameParam, pkgsParam, {Name: "sources", Optional: true}, {Name: "normalize", Default: true, Type: modules.Bool},
	}, Kwargs: "kwargs", Run: hold},
	{Name: "info_installed", Doc: pkglist.InfoInstalledDoc,
		Example: `salt '*' pkg.info_installed <package>
salt '*' pkg.info_installed <package1> <package2> failhard=False`, Args: "names", Kwargs: "kwargs", Run: rpm.InfoInstalled},
	{Name: "install", Params: []modules.Param{
		nameParam, {Name: "refresh", Default: false, Type: modules.Bool}, {Name: "skip_verify", Default: false, Type: modules.Bool},
		pkgsParam, {Name: "sources", Optional: true}, {Name: "downloadonly", Default: false, Type: modules.Bool},
		{Name: "reinstall", Default: false, Type: modules.Bool}, {Name: "normalize", Default: true, Type: modules.Bool},
		{Name: "update_holds", Default: false, Type: modules.Bool}, {Name: "saltenv", Default: "base", Type: modules.String},
		{Name: "ignore_epoch", Default: false, Type: modules.Bool},
	}, Kwargs: "kwargs", Run: install},
	{Name: "latest_version", Args: "names", Kwargs: "kwargs", Run: latestVersion},
	{Name: "list_downloaded", Kwargs: "kwargs", Run: listDownloadedRun},
	{Name: "list_holds", Params: []modules.Param{
		{Name: "pattern", Default: "[\\w+]+(?:[.-][^-]+)*", Type: modules.String},
		{Name: "full", Default: true, Type: modules.Bool},
	}, Run: listHolds},
	{Name: "list_installed_patches", Kwargs: "kwargs", Run: listInstalledPatches},
	{Name: "list_patches",
		Params: []modules.Param{{Name: "refresh", Default: false, Type: modules.Bool}}, Kwargs: "kwargs", Run: listPatches},
	{Name: "list_pkgs",
		Params: []modules.Param{{Name: "versions_as_list", Default: false, Type: modules.Bool}}, Kwargs: "kwargs", Run: listPkgs},
	{Name: "list_repo_pkgs", Args: "args", Kwargs: "kwargs", Run: listRepoPkgs},
	{Name: "list_repos", Params: []modules.Param{basedirParam}, Kwargs: "kwargs", Run: listRepos},
	{Name: "list_updates",
		Params: []modules.Param{{Name: "refresh", Default: true, Type: modules.Bool}}, Kwargs: "kwargs", Run: listUpgrades},
	{Name: "list_upgrades", Doc: pkglist.ListUpgradesDoc, Example: "salt '*' pkg.list_upgrades", Params: []modules.Param{{Name: "refresh", Default: true, Type: modules.Bool}}, Kwargs: "kwargs", Run: listUpgrades},
	{Name: "mod_repo", Params: []modules.Param{{Name: "repo"}, basedirParam}, Kwargs: "kwargs", Run: modRepo},
	{Name: "modified", Args: "packages", Kwargs: "flags", Run: rpm.Modified},
	{Name: "normalize_name", Doc: pkglist.NormalizeNameDoc, Example: "salt '*' pkg.normalize_name zsh:amd64", Params: []modules.Param{{Name: "name"}}, Run: rpm.NormalizeName},
	{Name: "owner", Doc: pkglist.OwnerDoc,
		Example: `salt '*' pkg.owner /usr/bin/apachectl
salt '*' pkg.owner /usr/bin/apachectl /etc/passwd`, Args: "paths", Kwargs: "kwargs", Run: rpm.Owner},
	{Name: "parse_arch", Doc: pkglist.ParseArchDoc, Example: "salt '*' pkg.parse_arch zsh:amd64", Params: []modules.Param{{Name: "name"}}, Run: rpm.ParseArch},
	{Name: "purge", Doc: pkglist.PurgeDoc,
		Example: `salt '*' pkg.purge <package>
salt '*' pkg.purge pkgs='[foo, bar]'`, Params: []modules.Param{nameParam, pkgsParam}, Kwargs: "kwargs", Run: purge},
	{Name: "refresh_db", Kwargs: "kwargs", Run: refreshDB},
	{Name: "remove", Doc: pkglist.RemoveDoc,
		Example: `salt '*' pkg.remove <package>
salt '*' pkg.remove pkgs='[foo, bar]'`, Params: []modules.Param{nameParam, pkgsParam}, Kwargs: "kwargs", Run: remove},
	{Name: "services_need_restart", Kwargs: "kwargs", Run: servicesNeedRestart},
	{Name: "unhold", Doc: pkglist.UnholdDoc,
		Example: `salt '*' pkg.unhold <package>
salt '*' pkg.unhold pkgs='[foo, bar]'`, Params: []modules.Param{nameParam, pkgsParam, {Name: "sources", Optional: true}}, Kwargs: "kwargs", Run: unhold},
	{Name: "update", Params: []modules.Param{
		nameParam, pkgsParam, {Name: "refresh", Default: true, Type: modules.Bool},
		{Name: "skip_verify", Default: false, Type: modules.Bool}, {Name: "normalize", Default: true, Type: modules.Bool},
		{Name: "minimal", Default: false, Type: modules.Bool}, {Name: "obsoletes", Default: false, Type: modules.Bool},
	}, Kwargs: "kwargs", Run: update},
	{Name: "upgrade", Params: []modules.Param{
		nameParam, pkgsParam, {Name: "refresh", Default: true, Type: modules.Bool},
		{Name: "skip_verify", Default: false, Type: modules.Bool}, {Name: "normalize", Default: true, Type: modules.Bool},
		{Name: "minimal", Default: false, Type: modules.Bool}, {Name: "obsoletes", Default: true, Type: modules.Bool},
		{Name: "diff_attr", Optional: true},
	}, Kwargs: "kwargs", Run: upgrade},
	{Name: "upgrade_available", Doc: pkglist.UpgradeAvailableDoc, Example: "salt '*' pkg.upgrade_available <package>", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: upgradeAvailable},
	{Name: "verify", Args: "names", Kwargs: "kwargs", Run: rpm.Verify},
	{Name: "version", Doc: pkglist.VersionDoc,
		Example: `salt '*' pkg.version <package>
salt '*' pkg.version <package1> <package2>`, Args: "names", Kwargs: "kwargs", Run: pkglist.VersionOf},
	{Name: "version_cmp", Doc: pkglist.VersionCmpDoc, Example: "salt '*' pkg.version_cmp '0.2.4-0ubuntu1' '0.2.4.1-0ubuntu1'", Params: []modules.Param{{Name: "pkg1"}, {Name: "pkg2"}, {Name: "ignore_epoch", Default: false, Type: modules.Bool}}, Kwargs: "kwargs", Run: versionCmp},
}}

var (
	basedirParam = modules.Param{Name: "basedir", Optional: true}
	nameParam    = modules.Param{Name: "name", Optional: true}
	pkgsParam    = modules.Param{Name: "pkgs", Optional: true}
)
