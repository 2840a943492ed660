package virtualenvmod

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "virtualenv": virtual environments of Python.
var Module = &modules.Module{Name: "virtualenv_mod", Virtual: "virtualenv", Doc: `Virtual environments of Python.`, Funcs: []modules.Def{
	{Name: "create", Doc: `Make a virtual environment, and return what the program said.

path
    The directory of the environment.
venv_bin
    What makes the environment: virtualenv, venv, or a Python.
system_site_packages
    Let it see the packages of the host.
distribute
    Use distribute (old versions of virtualenv).
clear
    Empty the directory first.
python
    The Python of the environment.
extra_search_dir
    Directories with packages for it.
never_download
    Fetch nothing.
prompt
    The prompt of the environment.
pip
    Make sure that there is pip.
symlinks
    Link to the Python rather than copy it.
upgrade
    Use the directory for a newer Python.
user
    The user to work as.
use_vt
    Show the output as it comes.
saltenv
    The environment of the file server.`,
		Example: "salt '*' virtualenv.create /path/to/new/virtualenv", Params: []modules.Param{
			{Name: "path"},
			{Name: "venv_bin", Optional: true},
			{Name: "system_site_packages", Default: false, Type: modules.Bool},
			{Name: "distribute", Default: false, Type: modules.Bool},
			{Name: "clear", Default: false, Type: modules.Bool},
			{Name: "python", Optional: true},
			{Name: "extra_search_dir", Optional: true},
			{Name: "never_download", Optional: true},
			{Name: "prompt", Optional: true},
			{Name: "pip", Default: false, Type: modules.Bool},
			{Name: "symlinks", Optional: true},
			{Name: "upgrade", Optional: true},
			{Name: "user", Optional: true},
			{Name: "use_vt", Default: false, Type: modules.Bool},
			{Name: "saltenv", Default: "base", Type: modules.String},
		}, Kwargs: "kwargs", Run: create},
	{Name: "get_distribution_path", Doc: `Return where a distribution is installed.

venv
    The directory of the environment.
distribution
    The name of a distribution.`,
		Example: "salt '*' virtualenv.get_distribution_path /path/to/my/venv my_distribution", Params: []modules.Param{{Name: "venv"}, {Name: "distribution"}}, Run: getDistributionPath},
	{Name: "get_resource_content", Doc: `Return the content of a file in a package.

venv
    The directory of the environment.
package
    The package.
resource
    The resource in it.`,
		Example: "salt '*' virtualenv.get_resource_content /path/to/my/venv my_package my/resource.xml", Params: []modules.Param{{Name: "venv"}, {Name: "package", Optional: true}, {Name: "resource", Optional: true}}, Run: getResourceContent},
	{Name: "get_resource_path", Doc: `Return the path of a file in a package.

venv
    The directory of the environment.
package
    The package.
resource
    The resource in it.`,
		Example: "salt '*' virtualenv.get_resource_path /path/to/my/venv my_package my/resource.xml", Params: []modules.Param{{Name: "venv"}, {Name: "package", Optional: true}, {Name: "resource", Optional: true}}, Run: getResourcePath},
	{Name: "get_site_packages", Doc: `Return the directory of the packages of an environment.

venv
    The directory of the environment.`,
		Example: "salt '*' virtualenv.get_site_packages /path/to/my/venv", Params: []modules.Param{{Name: "venv"}}, Run: getSitePackages},
	{Name: "virtualenv_ver", Doc: `Return the version of virtualenv, as a list of numbers.

venv_bin
    What makes the environment: virtualenv, venv, or a Python.
user
    The user to work as.`,
		Example: "salt '*' virtualenv.virtualenv_ver virtualenv", Params: []modules.Param{{Name: "venv_bin"}, {Name: "user", Optional: true}}, Kwargs: "kwargs", Run: virtualenvVer},
}}
