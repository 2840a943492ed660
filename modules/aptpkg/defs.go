package aptpkg

import (
	_ "embed"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "pkg": packages and repositories of Debian and its relatives, through apt and dpkg.
var Module = &modules.Module{Name: "aptpkg", Virtual: "pkg", Doc: `Packages and repositories of Debian and its relatives, through apt and dpkg.`, Docs: &docs, Available: available, Funcs: []modules.Def{
	{Name: "add_repo_key", Params: []modules.Param{
		{Name: "path", Optional: true},
		{Name: "text", Optional: true},
		{Name: "keyserver", Optional: true},
		{Name: "keyid", Optional: true},
		{Name: "saltenv", Default: "base", Type: modules.String},
		{Name: "aptkey", Default: true, Type: modules.Bool},
		{Name: "keydir", Optional: true},
		{Name: "keyfile", Optional: true},
	}, Run: addRepoKey},
	{Name: "autoremove", Params: []modules.Param{
		{Name: "list_only", Default: false, Type: modules.Bool},
		{Name: "purge", Default: false, Type: modules.Bool},
	}, Run: autoremove},
	{Name: "available_version", Doc: pkglist.AvailableVersionDoc, Example: "salt '*' pkg.available_version <package>", Args: "names", Kwargs: "kwargs", Run: latestVersion},
	{Name: "del_repo", Params: []modules.Param{{Name: "repo"}}, Kwargs: "kwargs", Run: delRepo},
	{Name: "del_repo_key", Params: []modules.Param{
		{Name: "name", Optional: true},
		{Name: "aptkey", Default: true, Type: modules.Bool},
		{Name: "keydir", Optional: true},
	}, Kwargs: "kwargs", Run: delRepoKey},
	{Name: "file_dict", Doc: pkglist.FileDictDoc, Example: "salt '*' pkg.file_dict httpd postfix", Args: "packages", Kwargs: "kwargs", Run: fileDict},
	{Name: "file_list", Doc: pkglist.FileListDoc, Example: "salt '*' pkg.file_list httpd postfix", Args: "packages", Kwargs: "kwargs", Run: fileList},
	{Name: "get_repo", Params: []modules.Param{{Name: "repo"}}, Kwargs: "kwargs", Run: getRepo},
	{Name: "get_repo_keys",
		Params: []modules.Param{{Name: "aptkey", Default: true, Type: modules.Bool}, {Name: "keydir", Optional: true}}, Run: getRepoKeys},
	{Name: "get_selections",
		Params: []modules.Param{{Name: "pattern", Optional: true}, {Name: "state", Optional: true}}, Run: getSelections},
	{Name: "hold", Params: []modules.Param{
		{Name: "name", Optional: true},
		{Name: "pkgs", Optional: true},
		{Name: "sources", Optional: true},
	}, Kwargs: "kwargs", Run: hold},
	{Name: "info_installed", Doc: pkglist.InfoInstalledDoc,
		Example: `salt '*' pkg.info_installed <package>
salt '*' pkg.info_installed <package1> <package2> failhard=False`, Args: "names", Kwargs: "kwargs", Run: infoInstalled},
	{Name: "install", Params: []modules.Param{
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
	{Name: "latest_version", Args: "names", Kwargs: "kwargs", Run: latestVersion},
	{Name: "list_downloaded",
		Params: []modules.Param{{Name: "root", Optional: true}}, Kwargs: "kwargs", Run: listDownloaded},
	{Name: "list_pkgs", Params: []modules.Param{
		{Name: "versions_as_list", Default: false, Type: modules.Bool},
		{Name: "removed", Default: false, Type: modules.Bool},
		{Name: "purge_desired", Default: false, Type: modules.Bool},
	}, Kwargs: "kwargs", Run: listPkgs},
	{Name: "list_repo_pkgs", Args: "args", Kwargs: "kwargs", Run: listRepoPkgs},
	{Name: "list_repos", Kwargs: "kwargs", Run: listRepos},
	{Name: "list_upgrades", Params: []modules.Param{
		{Name: "refresh", Default: true, Type: modules.Bool},
		{Name: "dist_upgrade", Default: true, Type: modules.Bool},
	}, Kwargs: "kwargs", Run: listUpgrades},
	{Name: "mod_repo", Params: []modules.Param{
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
	{Name: "refresh_db", Params: []modules.Param{
		{Name: "cache_valid_time", Default: int64(0), Type: modules.Int},
		{Name: "failhard", Default: false, Type: modules.Bool},
	}, Kwargs: "kwargs", Run: refreshDB},
	{Name: "remove", Doc: pkglist.RemoveDoc,
		Example: `salt '*' pkg.remove <package>
salt '*' pkg.remove pkgs='[foo, bar]'`, Params: []modules.Param{{Name: "name", Optional: true}, {Name: "pkgs", Optional: true}}, Kwargs: "kwargs", Run: remove},
	{Name: "services_need_restart", Kwargs: "kwargs", Run: servicesNeedRestart},
	{Name: "set_selections", Params: []modules.Param{
		{Name: "path", Optional: true},
		{Name: "selection", Optional: true},
		{Name: "clear", Default: false, Type: modules.Bool},
		{Name: "saltenv", Default: "base", Type: modules.String},
	}, Run: setSelections},
	{Name: "show", Args: "names", Kwargs: "kwargs", Run: show},
	{Name: "unhold", Doc: pkglist.UnholdDoc,
		Example: `salt '*' pkg.unhold <package>
salt '*' pkg.unhold pkgs='[foo, bar]'`, Params: []modules.Param{
			{Name: "name", Optional: true},
			{Name: "pkgs", Optional: true},
			{Name: "sources", Optional: true},
		}, Kwargs: "kwargs", Run: unhold},
	{Name: "upgrade", Params: []modules.Param{
		{Name: "refresh", Default: true, Type: modules.Bool},
		{Name: "dist_upgrade", Default: false, Type: modules.Bool},
	}, Kwargs: "kwargs", Run: upgrade},
	{Name: "upgrade_available", Doc: pkglist.UpgradeAvailableDoc, Example: "salt '*' pkg.upgrade_available <package>", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: upgradeAvailable},
	{Name: "version", Doc: pkglist.VersionDoc,
		Example: `salt '*' pkg.version <package>
salt '*' pkg.version <package1> <package2>`, Args: "names", Kwargs: "kwargs", Run: pkglist.VersionOf},
	{Name: "version_cmp", Doc: pkglist.VersionCmpDoc, Example: "salt '*' pkg.version_cmp '0.2.4-0ubuntu1' '0.2.4.1-0ubuntu1'", Params: []modules.Param{{Name: "pkg1"}, {Name: "pkg2"}, {Name: "ignore_epoch", Default: false, Type: modules.Bool}}, Kwargs: "kwargs", Run: versionCmp},
	{Name: "which", Params: []modules.Param{{Name: "path"}}, Run: which},
}}
