package rpmlowpkg

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "lowpkg": what rpm knows about packages and their files.
var Module = &modules.Module{Name: "rpm_lowpkg", Virtual: "lowpkg", Doc: `What rpm knows about packages and their files.`, Available: available, Funcs: []modules.Def{
	{Name: "bin_pkg_info", Doc: `Return name, version and architecture of a package file, None if it is none.

path
    A package file, or its URL.
saltenv
    The environment of the file server.`,
		Example: `salt '*' lowpkg.bin_pkg_info /root/foo-1.2.3-1.rpm
salt '*' lowpkg.bin_pkg_info salt://foo-1.2.3-1.rpm`, Params: []modules.Param{{Name: "path"}, {Name: "saltenv", Default: "base", Type: modules.String}}, Run: binPkgInfo},
	{Name: "checksum", Doc: "Tell for package files whether they are whole.", Example: "salt '*' lowpkg.checksum /tmp/foo.rpm /tmp/bar.rpm", Args: "paths", Kwargs: "kwargs", Run: checksum},
	{Name: "diff", Doc: `Return what differs between a file in a package and the installed one.

package_path
    A package file.
path
    An installed file.`,
		Example: "salt '*' lowpkg.diff /path/to/apache2.rpm /etc/apache2/httpd.conf", Params: []modules.Param{{Name: "package_path"}, {Name: "path"}}, Run: diff},
	{Name: "file_dict", Doc: "List the files of installed packages, by package; of all packages if none is named. The keyword root names another system.", Example: "salt '*' lowpkg.file_dict httpd postfix", Args: "packages", Kwargs: "kwargs", Run: fileDict},
	{Name: "file_list", Doc: "List the files of installed packages; of all packages if none is named. The keyword root names another system.", Example: "salt '*' lowpkg.file_list httpd postfix", Args: "packages", Kwargs: "kwargs", Run: fileList},
	{Name: "info", Doc: `Return what is known about installed packages; all packages if none is named.

Keywords: attr (a list of attributes with commas between them), all_versions, root.`,
		Example: `salt '*' lowpkg.info apache2 bash
salt '*' lowpkg.info apache2 attr=version,summary`, Args: "packages", Kwargs: "kwargs", Run: info},
	{Name: "list_pkgs", Doc: "List installed packages with their versions. The keyword root names another system.", Example: "salt '*' lowpkg.list_pkgs", Args: "packages", Kwargs: "kwargs", Run: listPkgs},
	{Name: "modified", Doc: "List files that are not as they were installed, with what differs. Keywords such as mode=True choose among them.",
		Example: `salt '*' lowpkg.modified httpd
salt '*' lowpkg.modified httpd mode=True owner=False`, Args: "packages", Kwargs: "flags", Run: modified},
	{Name: "owner", Doc: "Return the package that a file belongs to, or for several files a map.",
		Example: `salt '*' lowpkg.owner /usr/bin/apachectl
salt '*' lowpkg.owner /usr/bin/apachectl /etc/httpd/conf/httpd.conf`, Args: "paths", Kwargs: "kwargs", Run: owner},
	{Name: "verify", Doc: `Return what differs from what was installed, by file.

Keywords: ignore_types (config, doc, ghost, license, readme), verify_options (such as nodeps), root.`,
		Example: `salt '*' lowpkg.verify httpd
salt '*' lowpkg.verify httpd ignore_types=config`, Args: "packages", Kwargs: "kwargs", Run: verify},
	{Name: "version_cmp", Doc: `Compare two versions by rpm's rules: -1 if the first is older, 0 if they are the same, 1 if it is newer.

ver1
    A version.
ver2
    Another version.
ignore_epoch
    Leave the epoch out of the comparison.`,
		Example: "salt '*' lowpkg.version_cmp '0.2-001' '0.2.0.1-002'", Params: []modules.Param{{Name: "ver1"}, {Name: "ver2"}, {Name: "ignore_epoch", Default: false, Type: modules.Bool}}, Run: versionCmp},
}}
