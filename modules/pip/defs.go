package pip

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "pip": packages of Python.
var Module = &modules.Module{Name: "pip", Doc: `Packages of Python.`, Docs: &docs, Funcs: []modules.Def{
	{Name: "freeze", Params: []modules.Param{
		binEnvParam, userParam, cwdParam, {Name: "use_vt", Default: false, Type: modules.Bool}, envVarsParam,
	}, Kwargs: "kwargs", Run: freezeRun},
	{Name: "install", Params: []modules.Param{
		{Name: "pkgs", Optional: true}, {Name: "requirements", Optional: true}, binEnvParam,
		{Name: "use_wheel", Default: false, Type: modules.Bool}, {Name: "no_use_wheel", Default: false, Type: modules.Bool},
		{Name: "log", Optional: true}, {Name: "proxy", Optional: true}, {Name: "timeout", Optional: true},
		{Name: "editable", Optional: true}, {Name: "find_links", Optional: true}, {Name: "index_url", Optional: true},
		{Name: "extra_index_url", Optional: true}, {Name: "no_index", Default: false, Type: modules.Bool},
		{Name: "mirrors", Optional: true}, {Name: "build", Optional: true}, {Name: "target", Optional: true},
		{Name: "download", Optional: true}, {Name: "download_cache", Optional: true}, {Name: "source", Optional: true},
		{Name: "upgrade", Default: false, Type: modules.Bool}, {Name: "force_reinstall", Default: false, Type: modules.Bool},
		{Name: "ignore_installed", Default: false, Type: modules.Bool}, {Name: "exists_action", Optional: true},
		{Name: "no_deps", Default: false, Type: modules.Bool}, {Name: "no_install", Default: false, Type: modules.Bool},
		{Name: "no_download", Default: false, Type: modules.Bool}, {Name: "global_options", Optional: true},
		{Name: "install_options", Optional: true}, userParam, cwdParam, {Name: "pre_releases", Default: false, Type: modules.Bool},
		{Name: "cert", Optional: true}, {Name: "allow_all_external", Default: false, Type: modules.Bool},
		{Name: "allow_external", Optional: true}, {Name: "allow_unverified", Optional: true},
		{Name: "process_dependency_links", Default: false, Type: modules.Bool},
		{Name: "saltenv", Default: "base", Type: modules.String}, envVarsParam, {Name: "use_vt", Default: false, Type: modules.Bool},
		{Name: "trusted_host", Optional: true}, {Name: "no_cache_dir", Default: false, Type: modules.Bool},
		{Name: "extra_args", Optional: true}, {Name: "cache_dir", Optional: true}, {Name: "no_binary", Optional: true},
		{Name: "disable_version_check", Default: false, Type: modules.Bool},
	}, Kwargs: "kwargs", Run: install},
	{Name: "is_installed",
		Params: []modules.Param{{Name: "pkgname"}, binEnvParam, userParam, cwdParam}, Run: isInstalled},
	{Name: "list", Python: "list_",
		Params: []modules.Param{{Name: "prefix", Optional: true}, binEnvParam, userParam, cwdParam, envVarsParam}, Kwargs: "kwargs", Run: list},
	{Name: "list_all_versions", Params: []modules.Param{
		{Name: "pkg"}, binEnvParam, {Name: "include_alpha", Default: false, Type: modules.Bool},
		{Name: "include_beta", Default: false, Type: modules.Bool}, {Name: "include_rc", Default: false, Type: modules.Bool},
		userParam, cwdParam, {Name: "index_url", Optional: true}, {Name: "extra_index_url", Optional: true},
	}, Run: listAllVersions},
	{Name: "list_freeze_parse",
		Params: []modules.Param{{Name: "prefix", Optional: true}, binEnvParam, userParam, cwdParam, envVarsParam}, Kwargs: "kwargs", Run: listFreezeParse},
	{Name: "list_upgrades", Params: []modules.Param{binEnvParam, userParam, cwdParam}, Run: listUpgrades},
	{Name: "normalize", Params: []modules.Param{{Name: "name"}}, Run: normalizeRun},
	{Name: "uninstall", Params: []modules.Param{
		{Name: "pkgs", Optional: true}, {Name: "requirements", Optional: true}, binEnvParam, {Name: "log", Optional: true},
		{Name: "proxy", Optional: true}, {Name: "timeout", Optional: true}, userParam, cwdParam,
		{Name: "saltenv", Default: "base", Type: modules.String}, {Name: "use_vt", Default: false, Type: modules.Bool},
		{Name: "extra_args", Optional: true},
	}, Run: uninstall},
	{Name: "upgrade", Params: []modules.Param{
		binEnvParam, userParam, cwdParam, {Name: "use_vt", Default: false, Type: modules.Bool},
	}, Run: upgrade},
	{Name: "upgrade_available",
		Params: []modules.Param{{Name: "pkg"}, binEnvParam, userParam, cwdParam}, Run: upgradeAvailable},
	{Name: "version", Params: []modules.Param{binEnvParam, cwdParam, userParam}, Run: versionRun},
}}

var (
	binEnvParam  = modules.Param{Name: "bin_env", Optional: true}
	cwdParam     = modules.Param{Name: "cwd", Optional: true}
	envVarsParam = modules.Param{Name: "env_vars", Optional: true}
	userParam    = modules.Param{Name: "user", Optional: true}
)
