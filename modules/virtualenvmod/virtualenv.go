// Package virtualenvmod is Salt's execution module "virtualenv": virtual environments of Python. Salt's source:
// salt/modules/virtualenv_mod.py.
package virtualenvmod

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/lazyre"
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// virtualenv.create differs: "venv" means the venv module of the host's python3, where Salt uses the Python that it runs in; pip and setuptools are not fetched from the internet where the environment has none.
// virtualenv.virtualenv_ver differs: the program is always asked; a virtualenv that Salt's own Python has installed does not count.

var interpreter = lazyre.Regexp{Expr: `(?i)^(python|pypy)[0-9.]*(\.exe)?$`}

func isPython(path string) bool { return interpreter.Get().MatchString(filepath.Base(path)) }

// options returns the further arguments of cmd.run_all.
func options(c *modules.Call) map[string]any {
	kw := map[string]any{"runas": c.Value("user"), "python_shell": false}
	for k, v := range c.Keywords {
		if !strings.HasPrefix(k, "__") {
			kw[k] = v
		}
	}
	return kw
}

func virtualenvVer(ctx context.Context, c *modules.Call) (any, error) {
	parts, err := version(ctx, c, c.Str("venv_bin"))
	var out []any
	for _, n := range parts {
		out = append(out, n)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

var build = lazyre.Regexp{Expr: `(rc|\+ds).*$`}

// version returns the version of a virtualenv program, as numbers.
func version(ctx context.Context, c *modules.Call, program string) ([]int64, error) {
	cmd := []any{program, "--version"}
	kw := options(c)
	kw["redirect_stderr"] = true
	v, err := c.ExecKw(ctx, "cmd.run_all", []any{cmd}, kw)
	if err != nil {
		return nil, err
	}
	m, _ := v.(map[string]any)
	text, _ := m["stdout"].(string)
	code, _ := m["retcode"].(int64)
	if code > 0 || strings.TrimSpace(text) == "" {
		return nil, modules.Errorf("Unable to get the virtualenv version output using '%s'. Returned data: %s", pytext.Repr(cmd), pytext.Repr(m))
	}
	number := ""
	for _, word := range strings.Fields(text) {
		if len(word) > 1 && word[0] >= '0' && word[0] <= '9' {
			number += word
		}
	}
	var parts []int64
	for _, p := range strings.Split(build.Get().ReplaceAllString(number, ""), ".") {
		n, err := modules.ToInt(p)
		if err != nil {
			return nil, err
		}
		parts = append(parts, n)
	}
	return parts, nil
}

// text returns an argument, or "" if it is only white space.
func text(c *modules.Call, name string) string {
	if s, ok := c.Value(name).(string); ok && strings.TrimSpace(s) != "" {
		return s
	}
	return ""
}

func unsupported(what, option, program string) error {
	return modules.Errorf("The `%s`(`%s`) option is not supported by '%s'", what, option, program)
}

// defaultProgram returns the program that creates environments if the call names none.
func defaultProgram(c *modules.Call) string {
	for _, v := range []any{c.PillarData()["venv_bin"], c.Opt("venv_bin")} {
		if pytext.Truth(v) {
			return pytext.Str(v)
		}
	}
	for _, name := range []string{"virtualenv3", "virtualenv"} {
		if c.Which(name) != "" {
			return name
		}
	}
	return "venv"
}

// command puts the command together.
func command(ctx context.Context, c *modules.Call) ([]any, error) {
	program := defaultProgram(c)
	if c.Value("venv_bin") != nil {
		program = c.Str("venv_bin")
	}
	python := text(c, "python")
	find := func(name string) error {
		if c.Which(name) == "" {
			return modules.Errorf("Cannot find requested python (%s).", name)
		}
		return nil
	}
	var cmd []any
	switch {
	case program == "venv":
		if python == "" {
			python = "python3"
		}
		if err := find(python); err != nil {
			return nil, err
		}
		cmd = []any{python, "-m", "venv"}
	case isPython(program):
		if python != "" {
			return nil, modules.Errorf("Pass the target interpreter either as `venv_bin` or as `python`, not both.")
		}
		if err := find(program); err != nil {
			return nil, err
		}
		cmd = []any{program, "-m", "venv"}
	case strings.Contains(program, "venv"):
		if python != "" {
			return nil, unsupported("python", "--python", program)
		}
		cmd = []any{program}
	default:
		return forVirtualenv(ctx, c, program, python)
	}
	return forVenv(c, program, cmd)
}

// forVenv adds the options of Python's own module.
func forVenv(c *modules.Call, program string, cmd []any) ([]any, error) {
	if dirs, isText := c.Value("extra_search_dir").(string); c.Value("extra_search_dir") != nil && (!isText || strings.TrimSpace(dirs) != "") {
		return nil, unsupported("extra_search_dir", "--extra-search-dir", program)
	}
	if c.Value("never_download") != nil {
		return nil, unsupported("never_download", "--never-download", program)
	}
	for _, f := range [][2]string{{"upgrade", "--upgrade"}, {"symlinks", "--symlinks"}} {
		if c.Value(f[0]) == any(true) {
			cmd = append(cmd, f[1])
		}
	}
	if prompt := text(c, "prompt"); prompt != "" {
		cmd = append(cmd, "--prompt", prompt)
	}
	return cmd, nil
}

// forVirtualenv makes a command of the program virtualenv.
func forVirtualenv(ctx context.Context, c *modules.Call, program, python string) ([]any, error) {
	for _, f := range [][2]string{{"upgrade", "--upgrade"}, {"symlinks", "--symlinks"}} {
		if c.Value(f[0]) != nil {
			return nil, unsupported(f[0], f[1], program)
		}
	}
	have, err := version(ctx, c, program)
	if err != nil {
		return nil, err
	}
	cmd := []any{program}
	if c.Bool("distribute") && slices.Compare(have, []int64{1, 10}) < 0 {
		cmd = append(cmd, "--distribute")
	}
	if python != "" {
		if c.Which(python) == "" {
			return nil, modules.Errorf("Cannot find requested python (%s).", python)
		}
		cmd = append(cmd, "--python="+python)
	}
	if dirs := c.Value("extra_search_dir"); pytext.Truth(dirs) {
		for _, d := range pkglist.SplitInput(dirs) {
			cmd = append(cmd, "--extra-search-dir="+d)
		}
	}
	if c.Value("never_download") == any(true) && (slices.Compare(have, []int64{1, 10}) < 0 || slices.Compare(have, []int64{14}) >= 0) {
		cmd = append(cmd, "--never-download")
	}
	if prompt := text(c, "prompt"); prompt != "" {
		cmd = append(cmd, "--prompt='"+prompt+"'")
	}
	return cmd, nil
}

func create(ctx context.Context, c *modules.Call) (any, error) {
	cmd, err := command(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, f := range [][2]string{{"clear", "--clear"}, {"system_site_packages", "--system-site-packages"}} {
		if c.Value(f[0]) == any(true) {
			cmd = append(cmd, f[1])
		}
	}
	path := c.Str("path")
	_, err = os.Stat(c.Path(path))
	existed := err == nil
	v, err := c.ExecKw(ctx, "cmd.run_all", []any{append(cmd, path)}, options(c))
	if err != nil {
		return nil, err
	}
	ret, _ := v.(map[string]any)
	if pytext.Truth(ret["retcode"]) && !existed && path != "" {
		if err := os.RemoveAll(c.Path(path)); err != nil {
			c.Logger().Error("Cannot remove what there is of the environment", "path", path, "err", err)
		}
	}
	return ret, nil
}

// python returns the interpreter of an environment.
func python(c *modules.Call) (string, error) {
	venv := c.Str("venv")
	bin := filepath.Join(venv, "bin", "python")
	if _, err := os.Stat(c.Path(bin)); err != nil {
		return "", modules.Errorf("Path '%s' does not appear to be a virtualenv: '%s' not found.", venv, bin)
	}
	return bin, nil
}

// ask runs code in an environment and returns what it prints. The code is constant; values are arguments.
func ask(ctx context.Context, c *modules.Call, code string, args ...string) (any, error) {
	for _, a := range args {
		for _, bad := range [...]string{"import", ";", "subprocess", "eval", "open", "file", "exec", "input"} {
			if strings.Contains(a, bad) {
				return nil, modules.Usagef("Unsafe python code detected in '%s'", a)
			}
		}
	}
	bin, err := python(c)
	if err != nil {
		return nil, err
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: append([]string{bin, "-"}, args...), Stdin: code})
	if err != nil {
		return nil, err
	}
	if out.Retcode != 0 {
		return nil, modules.Errorf("%s\n%s", out.Stdout, out.Stderr)
	}
	return out.Stdout, nil
}

func getSitePackages(ctx context.Context, c *modules.Call) (any, error) {
	return ask(ctx, c, "import sysconfig; print(sysconfig.get_path('purelib'))")
}

func getDistributionPath(ctx context.Context, c *modules.Call) (any, error) {
	return ask(ctx, c, "import sys, pkg_resources; print(pkg_resources.get_distribution(sys.argv[1]).location)", c.Str("distribution"))
}

func getResourcePath(ctx context.Context, c *modules.Call) (any, error) {
	return ask(ctx, c, "import sys, pkg_resources; print(pkg_resources.resource_filename(sys.argv[1], sys.argv[2]))", named(c, "package"), named(c, "resource"))
}

func getResourceContent(ctx context.Context, c *modules.Call) (any, error) {
	return ask(ctx, c, "import sys, pkg_resources; print(pkg_resources.resource_string(sys.argv[1], sys.argv[2]))", named(c, "package"), named(c, "resource"))
}

func named(c *modules.Call, name string) string { return pytext.Str(c.Value(name)) }
