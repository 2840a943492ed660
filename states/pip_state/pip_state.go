// Package pip_state is Salt's state module "pip": Python packages (salt/states/pip_state.py). Requirements are read here; Salt
// has pip itself do that, which must be there for its own Python.
//
// pip.purge_pip, pip.pip_has_exceptions_mod, pip.pip_has_internal_exceptions_mod are absent: they are no states, but public by accident and serve Salt's import of pip.
package pip_state

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "pip".
var Module = &states.Module{Name: "pip_state", Virtual: "pip", Doc: "Python packages.", Funcs: []states.Def{
	{Name: "installed", Doc: installedDoc, Params: installedParams[:], Kwargs: "kwargs", Run: runInstalled},
	{Name: "removed", Doc: removedDoc, Params: []modules.Param{{Name: "name"}, {Name: "requirements", Optional: true}, {Name: "bin_env", Optional: true},
		{Name: "log", Optional: true}, {Name: "proxy", Optional: true}, {Name: "timeout", Optional: true}, {Name: "user", Optional: true},
		{Name: "cwd", Optional: true}, {Name: "use_vt", Default: false}}, Run: removed},
	{Name: "uptodate", Doc: uptodateDoc, Params: []modules.Param{{Name: "name"}, {Name: "bin_env", Optional: true}, {Name: "user", Optional: true},
		{Name: "cwd", Optional: true}, {Name: "use_vt", Default: false}}, Run: uptodate},
}}

var installedParams = [...]modules.Param{{Name: "name"}, {Name: "pkgs", Optional: true}, {Name: "pip_bin", Optional: true}, {Name: "requirements", Optional: true},
	{Name: "bin_env", Optional: true}, {Name: "use_wheel", Default: false}, {Name: "no_use_wheel", Default: false}, {Name: "log", Optional: true},
	{Name: "proxy", Optional: true}, {Name: "timeout", Optional: true}, {Name: "repo", Optional: true}, {Name: "editable", Optional: true},
	{Name: "find_links", Optional: true}, {Name: "index_url", Optional: true}, {Name: "extra_index_url", Optional: true}, {Name: "no_index", Default: false},
	{Name: "mirrors", Optional: true}, {Name: "build", Optional: true}, {Name: "target", Optional: true}, {Name: "download", Optional: true},
	{Name: "download_cache", Optional: true}, {Name: "source", Optional: true}, {Name: "upgrade", Default: false}, {Name: "force_reinstall", Default: false},
	{Name: "ignore_installed", Default: false}, {Name: "exists_action", Optional: true}, {Name: "no_deps", Default: false}, {Name: "no_install", Default: false},
	{Name: "no_download", Default: false}, {Name: "install_options", Optional: true}, {Name: "global_options", Optional: true}, {Name: "user", Optional: true},
	{Name: "cwd", Optional: true}, {Name: "pre_releases", Default: false}, {Name: "cert", Optional: true}, {Name: "allow_all_external", Default: false},
	{Name: "allow_external", Optional: true}, {Name: "allow_unverified", Optional: true}, {Name: "process_dependency_links", Default: false},
	{Name: "env_vars", Optional: true}, {Name: "use_vt", Default: false}, {Name: "trusted_host", Optional: true}, {Name: "no_cache_dir", Default: false},
	{Name: "cache_dir", Optional: true}, {Name: "no_binary", Optional: true}, {Name: "extra_args", Optional: true}}

const (
	installedDoc = `Have Python packages.

name, pkgs
    the package, or a list of packages, with specifiers of versions if need be
requirements, editable
    files of requirements, or places of packages to install for development, instead
bin_env, pip_bin
    the virtual environment, or the pip, to use
upgrade, force_reinstall, ignore_installed
    upgrade, install again, or install without a look at what is there
user, cwd, env_vars, use_vt
    how to run pip
repo, cache_dir
    not used
use_wheel, no_use_wheel, no_binary, log, proxy, timeout, find_links, index_url, extra_index_url, no_index, mirrors, build, target, download, download_cache, source, exists_action, no_deps, no_install, no_download, install_options, global_options, pre_releases, cert, allow_all_external, allow_external, allow_unverified, process_dependency_links, trusted_host, no_cache_dir, extra_args
    pip's options of these names`
	removedDoc = `Have no such Python package.

name
    the package
requirements
    a file of requirements to remove instead
bin_env
    the virtual environment, or the pip, to use
log, proxy, timeout
    pip's options of these names
user, cwd, use_vt
    how to run pip`
	uptodateDoc = `Have all Python packages in their newest versions.

name
    the state's name
bin_env
    the virtual environment, or the pip, to use
user, cwd, use_vt
    how to run pip`
)

// lookup finds a package whatever its case.
func lookup(list map[string]any, name string) (version string, ok bool) {
	for k, v := range list {
		if strings.EqualFold(k, name) {
			return pytext.Str(v), true
		}
	}
	return "", false
}

func removed(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	kw := map[string]any{"bin_env": c.Value("bin_env"), "user": c.Value("user"), "cwd": c.Value("cwd")}
	v, err := c.ExecKw(ctx, "pip.list", nil, kw)
	if modules.IsCommandError(err) {
		return ret.As(states.False, "Error uninstalling '"+c.Name()+"': "+states.ErrorText(err))
	}
	if err != nil {
		return nil, err
	}
	list, _ := v.(map[string]any)
	if _, ok := list[c.Name()]; !ok {
		return ret.As(states.True, "Package is not installed.")
	}
	if c.Test() {
		return ret.As(states.None, "Package "+c.Name()+" is set to be removed")
	}
	kw["pkgs"] = c.Value("name")
	for _, k := range [...]string{"requirements", "log", "proxy", "timeout", "use_vt"} {
		kw[k] = c.Value(k)
	}
	done, err := c.ExecKw(ctx, "pip.uninstall", nil, kw)
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(done) {
		return ret.As(states.False, "Could not remove package.")
	}
	ret.Changes[c.Name()] = "Removed"
	return ret.As(states.True, "Package was successfully removed.")
}

func uptodate(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Comment = "Failed to update."
	kw := map[string]any{"bin_env": c.Value("bin_env"), "user": c.Value("user"), "cwd": c.Value("cwd")}
	packages, err := c.ExecKw(ctx, "pip.list_upgrades", nil, kw)
	switch {
	case err != nil:
		return ret.As(states.False, states.ErrorText(err))
	case !pytext.Truth(packages):
		return ret.As(states.True, "System is already up-to-date.")
	case c.Test():
		return ret.As(states.None, "System update will be performed")
	}
	kw["use_vt"] = c.Value("use_vt")
	v, err := c.ExecKw(ctx, "pip.upgrade", nil, kw)
	if err != nil {
		return nil, err
	}
	done, _ := v.(map[string]any)
	switch {
	case done["result"] == false:
		merged := ret.Map()
		for k, x := range done {
			merged[k] = x
		}
		return states.ResultOf(merged), nil
	case len(done) > 0:
		ret.Changes = done
		return ret.As(states.True, "Upgrade successful.")
	}
	return ret.As(states.False, "Upgrade failed.")
}

// satisfies reports whether a version fits all specifiers.
func satisfies(version string, specs [][2]string) bool {
	return !slices.ContainsFunc(specs, func(s [2]string) bool { return !pkgversion.PythonSatisfies(version, s[0], s[1]) })
}
