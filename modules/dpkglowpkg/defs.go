package dpkglowpkg

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "lowpkg": what dpkg knows about packages and their files.
var Module = &modules.Module{Name: "dpkg_lowpkg", Virtual: "lowpkg", Doc: `What dpkg knows about packages and their files.`, Available: available, Funcs: []modules.Def{
	{Name: "bin_pkg_info", Doc: `Return name, version and architecture of a package file.

path
    A package file, or its URL.
saltenv
    The environment of the file server.`,
		Example: `salt '*' lowpkg.bin_pkg_info /root/foo-1.2.3-1.deb
salt '*' lowpkg.bin_pkg_info salt://foo-1.2.3-1.deb`, Params: []modules.Param{{Name: "path"}, {Name: "saltenv", Default: "base", Type: modules.String}}, Run: binPkgInfo},
	{Name: "file_dict", Doc: "List the files of installed packages, by package; of all packages if none is named.",
		Example: `salt '*' lowpkg.file_dict hostname
salt '*' lowpkg.file_dict hostname mount`, Args: "packages", Kwargs: "kwargs", Run: fileDict},
	{Name: "file_list", Doc: "List the files of installed packages; of all packages if none is named.",
		Example: `salt '*' lowpkg.file_list hostname
salt '*' lowpkg.file_list hostname mount`, Args: "packages", Kwargs: "kwargs", Run: fileList},
	{Name: "info", Doc: "Return what is known about installed packages; all packages if none is named. With failhard=False unknown ones are no error.",
		Example: `salt '*' lowpkg.info <package1> <package2>
salt '*' lowpkg.info <package1> failhard=False`, Args: "packages", Kwargs: "kwargs", Run: info},
	{Name: "list_pkgs", Doc: "List installed packages with their versions.",
		Example: `salt '*' lowpkg.list_pkgs
salt '*' lowpkg.list_pkgs hostname`, Args: "packages", Kwargs: "kwargs", Run: listPkgs},
	{Name: "unpurge", Doc: "Mark packages as wanted that were marked for purging, and return what changed.", Example: "salt '*' lowpkg.unpurge <package>", Args: "packages", Run: unpurge},
}}
