// Package virtualenv_mod is Salt's state module "virtualenv": virtual environments of Python (salt/states/virtualenv_mod.py).
package virtualenv_mod

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "virtualenv".
var Module = &states.Module{Name: "virtualenv_mod", Virtual: "virtualenv", Doc: "Virtual environments of Python.", Funcs: []states.Def{
	{Name: "manage", Python: "managed", Doc: managedDoc, Params: params[:], Kwargs: "kwargs", Run: managed},
	{Name: "managed", Doc: managedDoc, Params: params[:], Kwargs: "kwargs", Run: managed},
}}

var params = [...]modules.Param{{Name: "name"}, {Name: "venv_bin", Optional: true}, {Name: "requirements", Optional: true},
	{Name: "system_site_packages", Default: false}, {Name: "distribute", Default: false}, {Name: "use_wheel", Default: false}, {Name: "clear", Default: false},
	{Name: "python", Optional: true}, {Name: "extra_search_dir", Optional: true}, {Name: "never_download", Optional: true}, {Name: "prompt", Optional: true},
	{Name: "user", Optional: true}, {Name: "cwd", Optional: true}, {Name: "index_url", Optional: true}, {Name: "extra_index_url", Optional: true},
	{Name: "pre_releases", Default: false}, {Name: "no_deps", Default: false}, {Name: "pip_download", Optional: true}, {Name: "pip_download_cache", Optional: true},
	{Name: "pip_exists_action", Optional: true}, {Name: "pip_ignore_installed", Default: false}, {Name: "proxy", Optional: true}, {Name: "use_vt", Default: false},
	{Name: "env_vars", Optional: true}, {Name: "no_use_wheel", Default: false}, {Name: "pip_upgrade", Default: false}, {Name: "pip_pkgs", Optional: true},
	{Name: "pip_no_cache_dir", Default: false}, {Name: "pip_cache_dir", Optional: true}, {Name: "process_dependency_links", Default: false},
	{Name: "no_binary", Optional: true}}

const managedDoc = `Have a virtual environment of Python, with packages in it.

name
    its directory
venv_bin, python, system_site_packages, distribute, extra_search_dir, never_download, prompt
    what makes it, and how
clear
    empty an environment that is there
requirements, pip_pkgs
    a file of requirements, or a list of packages, to install
user, use_vt, cwd, env_vars
    how to run the programs
use_wheel, no_use_wheel, no_binary, index_url, extra_index_url, pre_releases, no_deps, pip_download, pip_download_cache, pip_exists_action, pip_ignore_installed, proxy, pip_upgrade, pip_no_cache_dir, pip_cache_dir, process_dependency_links
    pip's options of these names`

// venv is one run of virtualenv.managed.
type venv struct {
	*states.Call
	ret          *states.Result
	name, python string
	requirements any
}

func managed(ctx context.Context, c *states.Call) (*states.Result, error) {
	v := &venv{Call: c, ret: c.Result(), name: c.Name(), requirements: c.Value("requirements")}
	if _, err := c.Registry().Lookup("virtualenv.create", c.Env); err != nil {
		return v.ret.As(states.False, "Virtualenv was not detected on this system")
	}
	v.python = filepath.Join(v.name, "bin", "python")
	if runtime.GOOS == "windows" {
		v.python = filepath.Join(v.name, "Scripts", "python.exe")
	}
	_, err := os.Stat(c.Path(v.python))
	there, clear := err == nil, c.Bool("clear")
	if found, err := v.cache(ctx); err != nil || !found {
		return v.ret, err
	}
	if there && clear {
		freeze, err := c.ExecKw(ctx, "pip.freeze", nil, map[string]any{"bin_env": v.name})
		if err != nil {
			return nil, err
		}
		v.ret.Changes["cleared_packages"] = freeze
		if v.ret.Changes["old"], err = v.version(ctx); err != nil {
			return nil, err
		}
	}
	if c.Test() {
		switch {
		case there && clear:
			return v.ret.As(states.None, "Virtualenv "+v.name+" is set to be cleared")
		case there:
			return v.ret.As(states.True, "Virtualenv "+v.name+" is already created")
		}
		return v.ret.As(states.None, "Virtualenv "+v.name+" is set to be created")
	}
	v.ret.Result = states.True
	if there && !clear {
		v.ret.Comment = "virtualenv exists"
	} else if done, err := v.create(ctx); done || err != nil {
		return v.ret, err
	}
	if done, err := v.options(ctx); done || err != nil {
		return v.ret, err
	}
	if pytext.Truth(v.requirements) || c.Bool("pip_pkgs") {
		err = v.install(ctx)
		return v.ret, err
	}
	return v.ret, nil
}

// version returns the version that the environment's Python prints.
func (v *venv) version(ctx context.Context) (any, error) {
	out, err := v.Exec(ctx, "cmd.run_stderr", v.python+" -V")
	return strings.Trim(pytext.Str(out), "\n"), err
}

// cache fetches a file of requirements from the master.
func (v *venv) cache(ctx context.Context) (found bool, err error) {
	url, ok := v.requirements.(string)
	if !ok && pytext.Truth(v.requirements) {
		return false, modules.NoAttribute(v.requirements, "startswith")
	}
	if !strings.HasPrefix(url, "salt://") {
		return true, nil
	}
	cached, err := v.Exec(ctx, "cp.is_cached", url, v.Saltenv())
	if err == nil && !pytext.Truth(cached) {
		cached, err = v.Exec(ctx, "cp.cache_file", url, v.Saltenv())
	}
	if err == nil && pytext.Truth(cached) {
		var theirs, ours any
		if theirs, err = v.Exec(ctx, "cp.hash_file", url, v.Saltenv()); err != nil {
			return false, err
		}
		if ours, err = v.Exec(ctx, "cp.hash_file", cached, v.Saltenv()); err != nil {
			return false, err
		}
		if pytext.Repr(theirs) != pytext.Repr(ours) {
			cached, err = v.Exec(ctx, "cp.cache_file", url, v.Saltenv())
		}
	}
	if err == nil && !pytext.Truth(cached) {
		v.ret.Result, v.ret.Comment = states.False, "pip requirements file '"+url+"' not found"
		return false, nil
	}
	v.requirements = cached
	return err == nil, err
}

// create makes the environment.
func (v *venv) create(ctx context.Context) (done bool, err error) {
	kw := maps.Clone(v.Keywords)
	if kw == nil {
		kw = map[string]any{}
	}
	for _, k := range [...]string{"venv_bin", "system_site_packages", "distribute", "clear", "python", "extra_search_dir", "never_download", "prompt", "user", "use_vt"} {
		kw[k] = v.Value(k)
	}
	out, err := v.ExecKw(ctx, "virtualenv.create", []any{v.name}, kw)
	var missing *modules.MissingCommandError
	if errors.As(err, &missing) {
		_, err = v.ret.As(states.False, "Failed to create virtualenv: "+states.ErrorText(err))
		return true, err
	}
	if err != nil {
		return false, err
	}
	m, _ := out.(map[string]any)
	if pytext.Truth(m["retcode"]) {
		_, err = v.ret.As(states.False, pytext.Str(m["stdout"])+pytext.Str(m["stderr"]))
		return true, err
	}
	if v.ret.Changes["new"], err = v.version(ctx); err != nil {
		return false, err
	}
	v.ret.Comment = "Created new virtualenv"
	if v.Bool("clear") {
		v.ret.Comment = "Cleared existing virtualenv"
	}
	return false, nil
}

// options checks that pip knows the options.
func (v *venv) options(ctx context.Context) (done bool, err error) {
	for _, o := range [...]struct{ name, low, high string }{{"use_wheel", "1.4", "9.0.3"}, {"no_use_wheel", "1.4", "9.0.3"}, {"no_binary", "7.0.0", ""}} {
		if !v.Bool(o.name) {
			continue
		}
		out, err := v.ExecKw(ctx, "pip.version", nil, map[string]any{"bin_env": v.name})
		if err != nil {
			return false, err
		}
		have := pytext.Str(out)
		if pkgversion.Python(have, o.low) >= 0 && (o.high == "" || pkgversion.Python(have, o.high) <= 0) {
			continue
		}
		where := "between " + o.low + " and " + o.high
		if o.high == "" {
			where = o.low + " and newer"
		}
		_, err = v.ret.As(states.False, "The '"+o.name+"' option is only supported in pip "+where+". The version of pip detected was "+have+".")
		return true, err
	}
	return false, nil
}

// install installs the packages.
func (v *venv) install(ctx context.Context) error {
	before, err := v.ExecKw(ctx, "pip.freeze", nil, map[string]any{"bin_env": v.name, "user": v.Value("user"), "use_vt": v.Value("use_vt")})
	var failed *modules.ExecError
	if errors.As(err, &failed) {
		v.ret.Result, v.ret.Comment = states.False, failed.Msg
		return nil
	}
	if err != nil {
		return err
	}
	kw := maps.Clone(v.Keywords)
	if kw == nil {
		kw = map[string]any{}
	}
	for to, from := range names() {
		kw[to] = v.Value(from)
	}
	kw["bin_env"], kw["requirements"] = v.name, v.requirements
	if kw["cwd"], err = v.dir(); err != nil {
		return err
	}
	out, err := v.ExecKw(ctx, "pip.install", nil, kw)
	if err != nil {
		return err
	}
	m, _ := out.(map[string]any)
	code, ok := m["retcode"]
	if !ok {
		return &modules.PythonError{Type: "KeyError", Msg: "'retcode'"}
	}
	n, _ := modules.ToInt(code)
	if n != 0 {
		v.ret.Result = states.False
	}
	if n > 0 {
		v.ret.Comment += "\n" + pytext.Str(m["stdout"]) + "\n" + pytext.Str(m["stderr"])
	}
	after, err := v.ExecKw(ctx, "pip.freeze", nil, map[string]any{"bin_env": v.name})
	if err != nil {
		return err
	}
	fresh, old := without(after, before), without(before, after)
	if fresh != "" || old != "" {
		v.ret.Changes["packages"] = map[string]any{"new": fresh, "old": old}
	}
	return nil
}

// names returns the arguments that are passed on to pip.install: the names of the state's arguments by those of
// pip.install.
func names() map[string]string {
	return map[string]string{"pkgs": "pip_pkgs", "process_dependency_links": "process_dependency_links", "use_wheel": "use_wheel", "no_use_wheel": "no_use_wheel",
		"no_binary": "no_binary", "user": "user", "index_url": "index_url", "extra_index_url": "extra_index_url", "download": "pip_download",
		"download_cache": "pip_download_cache", "pre_releases": "pre_releases", "exists_action": "pip_exists_action", "ignore_installed": "pip_ignore_installed",
		"upgrade": "pip_upgrade", "no_deps": "no_deps", "proxy": "proxy", "use_vt": "use_vt", "env_vars": "env_vars", "no_cache_dir": "pip_no_cache_dir",
		"cache_dir": "pip_cache_dir"}
}

// dir returns the working directory of pip: that of a requirements file with a relative path, and otherwise the
// argument cwd.
func (v *venv) dir() (any, error) {
	list, _ := v.requirements.(string)
	first, _, _ := strings.Cut(list, ",")
	abs, err := filepath.Abs(first)
	if err != nil {
		return nil, modules.OSError(err)
	}
	if first == "" || first == abs {
		return v.Value("cwd"), nil
	}
	return filepath.Dir(abs), nil
}

// without returns the elements of a that are not in b, or "" if all are.
func without(a, b any) any {
	list, _ := a.([]any)
	other, _ := b.([]any)
	var out []any
	for _, x := range list {
		if !slices.Contains(other, x) {
			out = append(out, x)
		}
	}
	if out == nil {
		return ""
	}
	return out
}
