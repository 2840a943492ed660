package pip

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "pip": packages of Python.
var Module = &modules.Module{Name: "pip", Doc: `Packages of Python.`, Funcs: []modules.Def{
	{Name: "freeze", Doc: `List installed packages as requirements.

` + binEnvDoc + userDoc + cwdDoc + useVtDoc + envVarsDoc,
		Example: "salt '*' pip.freeze bin_env=/home/code/path/to/virtualenv", Params: []modules.Param{
			binEnvParam, userParam, cwdParam, {Name: "use_vt", Default: false, Type: modules.Bool}, envVarsParam,
		}, Kwargs: "kwargs", Run: freezeRun},
	{Name: "install", Doc: `Install packages, and return what pip said.

pkgs
    The packages: a list, or text with commas between them.
requirements
    Requirement files, also of the file server.
` + binEnvDoc + `use_wheel
    Prefer wheels (old versions of pip).
no_use_wheel
    Use no wheels (old versions of pip).
log
    A file for the log of pip.
proxy
    A proxy; False for none.
timeout
    How long to wait for the network, in seconds.
editable
    Sources that are installed in place.
find_links
    Pages or directories with packages.
index_url
    The address of the index.
extra_index_url
    The address of a further index.
no_index
    Use no index.
mirrors
    Mirrors (old versions of pip).
build
    The directory to unpack in.
target
    The directory to install into.
download
    Only download, into this directory.
download_cache
    The directory of the cache.
source
    The directory for editable sources.
upgrade
    Upgrade packages that are installed.
force_reinstall
    Install packages again that are installed.
ignore_installed
    Take no notice of installed packages.
exists_action
    What to do with a path that is there: s(witch), i(gnore), w(ipe), b(ackup).
no_deps
    Leave out what the packages need.
no_install
    Only download and unpack.
no_download
    Only install what was downloaded.
global_options
    Options for setup.py.
install_options
    Options for setup.py install.
` + userDoc + cwdDoc + `pre_releases
    Also take releases that are not final.
cert
    A file with certificates of authorities.
allow_all_external
    Also take packages from elsewhere.
allow_external
    Packages that may come from elsewhere.
allow_unverified
    Packages that may come unverified.
process_dependency_links
    Follow links of packages.
saltenv
    The environment of the file server.
` + envVarsDoc + useVtDoc + `trusted_host
    A host that needs no valid certificate.
no_cache_dir
    Use no cache.
extra_args
    Further options.
cache_dir
    The directory of the cache.
no_binary
    Packages that must be built from source.
disable_version_check
    Do not look for a newer pip.`,
		Example: `salt '*' pip.install <package>,<package2>
salt '*' pip.install requirements=/path/to/requirements.txt bin_env=/path/to/virtualenv
salt '*' pip.install <package> index_url=https://index.example.org/simple upgrade=True`, Params: []modules.Param{
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
	{Name: "is_installed", Doc: `Tell whether a package is installed.

pkgname
    The package.
` + binEnvDoc + userDoc + cwdDoc,
		Example: "salt '*' pip.is_installed salt", Params: []modules.Param{{Name: "pkgname"}, binEnvParam, userParam, cwdParam}, Run: isInstalled},
	{Name: "list", Python: "list_", Doc: `List installed packages with their versions.

prefix
    Only packages whose name begins with this.
` + binEnvDoc + userDoc + cwdDoc + envVarsDoc,
		Example: `salt '*' pip.list
salt '*' pip.list prefix=salt`, Params: []modules.Param{{Name: "prefix", Optional: true}, binEnvParam, userParam, cwdParam, envVarsParam}, Kwargs: "kwargs", Run: list},
	{Name: "list_all_versions", Doc: `List the versions of a package that the index has, None if there is none.

pkg
    The package.
` + binEnvDoc + `include_alpha
    Also alpha versions.
include_beta
    Also beta versions.
include_rc
    Also release candidates.
` + userDoc + cwdDoc + `index_url
    The address of the index.
extra_index_url
    The address of a further index.`,
		Example: `salt '*' pip.list_all_versions <package>
salt '*' pip.list_all_versions <package> include_rc=True`, Params: []modules.Param{
			{Name: "pkg"}, binEnvParam, {Name: "include_alpha", Default: false, Type: modules.Bool},
			{Name: "include_beta", Default: false, Type: modules.Bool}, {Name: "include_rc", Default: false, Type: modules.Bool},
			userParam, cwdParam, {Name: "index_url", Optional: true}, {Name: "extra_index_url", Optional: true},
		}, Run: listAllVersions},
	{Name: "list_freeze_parse", Doc: `List installed packages with their versions, from pip freeze.

prefix
    Only packages whose name begins with this.
` + binEnvDoc + userDoc + cwdDoc + envVarsDoc,
		Example: "salt '*' pip.list_freeze_parse salt", Params: []modules.Param{{Name: "prefix", Optional: true}, binEnvParam, userParam, cwdParam, envVarsParam}, Kwargs: "kwargs", Run: listFreezeParse},
	{Name: "list_upgrades", Doc: `List packages that can be upgraded, with the new versions.

` + binEnvDoc + userDoc + cwdDoc,
		Example: "salt '*' pip.list_upgrades", Params: []modules.Param{binEnvParam, userParam, cwdParam}, Run: listUpgrades},
	{Name: "normalize", Doc: `Return the name of a package as names are compared.

name
    The name of a package.`,
		Example: "salt '*' pip.normalize Foo.Bar_baz", Params: []modules.Param{{Name: "name"}}, Run: normalizeRun},
	{Name: "uninstall", Doc: `Remove packages, and return what pip said.

pkgs
    The packages: a list, or text with commas between them.
requirements
    Requirement files, also of the file server.
` + binEnvDoc + `log
    A file for the log of pip.
proxy
    A proxy; False for none.
timeout
    How long to wait for the network, in seconds.
` + userDoc + cwdDoc + `saltenv
    The environment of the file server.
` + useVtDoc + `extra_args
    Further options.`,
		Example: `salt '*' pip.uninstall <package>,<package2>
salt '*' pip.uninstall requirements=/path/to/requirements.txt`, Params: []modules.Param{
			{Name: "pkgs", Optional: true}, {Name: "requirements", Optional: true}, binEnvParam, {Name: "log", Optional: true},
			{Name: "proxy", Optional: true}, {Name: "timeout", Optional: true}, userParam, cwdParam,
			{Name: "saltenv", Default: "base", Type: modules.String}, {Name: "use_vt", Default: false, Type: modules.Bool},
			{Name: "extra_args", Optional: true},
		}, Run: uninstall},
	{Name: "upgrade", Doc: `Upgrade all packages, and return what changed.

` + binEnvDoc + userDoc + cwdDoc + useVtDoc,
		Example: "salt '*' pip.upgrade", Params: []modules.Param{
			binEnvParam, userParam, cwdParam, {Name: "use_vt", Default: false, Type: modules.Bool},
		}, Run: upgrade},
	{Name: "upgrade_available", Doc: `Tell whether there is a newer version of a package.

pkg
    The package.
` + binEnvDoc + userDoc + cwdDoc,
		Example: "salt '*' pip.upgrade_available <package>", Params: []modules.Param{{Name: "pkg"}, binEnvParam, userParam, cwdParam}, Run: upgradeAvailable},
	{Name: "version", Doc: `Return the version of pip.

` + binEnvDoc + cwdDoc + userDoc,
		Example: `salt '*' pip.version
salt '*' pip.version bin_env=/path/to/virtualenv`, Params: []modules.Param{binEnvParam, cwdParam, userParam}, Run: versionRun},
}}

// What the functions share: the documentation of parameters, and parameters that may be absent.
const (
	binEnvDoc = `bin_env
    A virtual environment, its python or its pip.
`
	cwdDoc = `cwd
    The directory to work in.
`
	envVarsDoc = `env_vars
    Environment variables for pip.
`
	useVtDoc = `use_vt
    Show the output as it comes.
`
	userDoc = `user
    The user to work as.
`
)

var (
	binEnvParam  = modules.Param{Name: "bin_env", Optional: true}
	cwdParam     = modules.Param{Name: "cwd", Optional: true}
	envVarsParam = modules.Param{Name: "env_vars", Optional: true}
	userParam    = modules.Param{Name: "user", Optional: true}
)
