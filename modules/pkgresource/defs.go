package pkgresource

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "pkg_resource": what the modules of all package managers share.
var Module = &modules.Module{Name: "pkg_resource", Doc: `What the modules of all package managers share.`, Funcs: []modules.Def{
	{Name: "add_pkg", Doc: `Add a version of a package to a map of packages.

pkgs
    Several packages: a list of names, or of maps from a name to a version.
name
    The name.
pkgver
    A version.`,
		Example: "salt '*' pkg_resource.add_pkg '{}' bash 9", Params: []modules.Param{{Name: "pkgs"}, {Name: "name"}, {Name: "pkgver"}}, Run: addPkg},
	{Name: "check_extra_requirements", Doc: `Tell whether a package has what the package manager asks for beyond its version.

pkgname
    A package.
pkgver
    A version.`,
		Example: "salt '*' pkg_resource.check_extra_requirements vim '>=7.3'", Params: []modules.Param{{Name: "pkgname"}, {Name: "pkgver"}}, Run: checkExtraRequirements},
	{Name: "format_pkg_list", Doc: `Show packages as versions, or as maps of the wanted attributes.

packages
    A map from packages to lists of their attributes.
versions_as_list
    Give the versions of each package as a list instead of text.
attr
    The wanted attributes, or "all".`,
		Example: "salt '*' pkg_resource.format_pkg_list '{vim: [{epoch: null, version: 1, release: 2, arch: x86_64}]}' False None", Params: []modules.Param{{Name: "packages"}, {Name: "versions_as_list"}, {Name: "attr"}}, Run: formatPkgList},
	{Name: "format_version", Doc: `Put epoch, version and release together.

epoch
    The epoch, or nothing.
version
    The version.
release
    The release, or nothing.`,
		Example: "salt '*' pkg_resource.format_version 1 2.3 4", Params: []modules.Param{{Name: "epoch"}, {Name: "version"}, {Name: "release"}}, Run: formatVersion},
	{Name: "pack_sources", Doc: `Turn a list of maps with one entry each, from a package to its file, into one map.

sources
    Package files: a list of maps from a name to a path or URL.
normalize
    Leave out the architecture of names where the manager does not need it.`,
		Example: `salt '*' pkg_resource.pack_sources '[{"foo": "salt://foo.rpm"}, {"bar": "salt://bar.rpm"}]'`, Params: []modules.Param{{Name: "sources"}, {Name: "normalize", Default: true, Type: modules.Bool}}, Run: packSources},
	{Name: "parse_targets", Doc: `Find out which packages are meant: the packages, and how they were named (repository, file, advisory).

name
    The name.
pkgs
    Several packages: a list of names, or of maps from a name to a version.
sources
    Package files: a list of maps from a name to a path or URL.
saltenv
    The environment of the file server.
normalize
    Leave out the architecture of names where the manager does not need it.`,
		Example: "salt '*' pkg_resource.parse_targets vim", Params: []modules.Param{
			{Name: "name", Optional: true},
			{Name: "pkgs", Optional: true},
			{Name: "sources", Optional: true},
			{Name: "saltenv", Default: "base", Type: modules.String},
			{Name: "normalize", Default: true, Type: modules.Bool},
		}, Kwargs: "kwargs", Run: parseTargets},
	{Name: "sort_pkglist", Doc: `Sort the versions of a map of packages.

pkgs
    Several packages: a list of names, or of maps from a name to a version.`,
		Example: `salt '*' pkg_resource.sort_pkglist '["3.45", "2.13"]'`, Params: []modules.Param{{Name: "pkgs"}}, Run: lists},
	{Name: "stringify", Doc: `Join the versions of each package in a map with commas.

pkgs
    Several packages: a list of names, or of maps from a name to a version.`,
		Example: "salt '*' pkg_resource.stringify 'vim: 7.127'", Params: []modules.Param{{Name: "pkgs"}}, Run: lists},
	{Name: "version", Doc: "Return the installed version of a package, empty if it is not installed, or for several packages or a pattern a map.", Example: "salt '*' pkg_resource.version <package1> <package2>", Args: "names", Kwargs: "kwargs", Run: version},
	{Name: "version_clean", Doc: `Leave out of a version what the package manager adds to it.

verstr
    A version.`,
		Example: "salt '*' pkg_resource.version_clean <version>", Params: []modules.Param{{Name: "verstr"}}, Run: versionClean},
	{Name: "version_compare", Doc: `Compare two versions by loose rules.

ver1
    A version.
oper
    A comparison: <, <=, ==, >=, >, !=.
ver2
    Another version.
ignore_epoch
    Leave the epoch out of the comparison.`,
		Example: "salt '*' pkg_resource.version_compare 1.0 '<' 1.1", Params: []modules.Param{
			{Name: "ver1"},
			{Name: "oper"},
			{Name: "ver2"},
			{Name: "ignore_epoch", Default: false, Type: modules.Bool},
		}, Run: versionCompare},
}}
