// Package pip is Salt's execution module "pip": packages of Python, in the host's Python or in virtual environments. Salt's source:
// salt/modules/pip.py.
package pip

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/lazyre"
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// pip.freeze, pip.install, pip.is_installed, pip.list, pip.list_all_versions, pip.list_freeze_parse, pip.list_upgrades, pip.uninstall, pip.upgrade, pip.upgrade_available, pip.version differ: without bin_env they use the python3 of the host, where Salt uses the Python that it runs in.

// program returns the command of pip: that of a virtual environment, the one that bin_env names, or the host's.
func program(c *modules.Call) ([]string, error) {
	bin := c.Str("bin_env")
	if bin == "" {
		if python := c.Which("python3"); python != "" {
			return []string{python, "-m", "pip"}, nil
		}
		for _, name := range []string{"pip3", "pip"} {
			if path := c.Which(name); path != "" {
				return []string{path}, nil
			}
		}
		return nil, &modules.MissingCommandError{Command: "Could not find a `pip` binary"}
	}
	info, err := os.Stat(c.Path(bin))
	if err == nil && info.IsDir() {
		for _, name := range []string{"python", "bin/python", "Scripts/python"} {
			path := filepath.Join(bin, name)
			if info, err := os.Stat(c.Path(path)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return []string{path, "-m", "pip"}, nil
			}
		}
		return nil, &modules.MissingCommandError{Command: "Could not find a pip binary in virtualenv " + bin}
	}
	switch {
	case err != nil || info.Mode()&0o111 == 0:
		return nil, &modules.MissingCommandError{Command: "Access denied to " + bin + ", could not find a pip binary"}
	case !info.Mode().IsRegular():
		return nil, modules.Errorf("Could not find a pip binary within %s", bin)
	case strings.Contains(filepath.Base(bin), "python"):
		return []string{filepath.Clean(bin), "-m", "pip"}, nil
	}
	return []string{filepath.Clean(bin)}, nil
}

// run runs pip with the options of cmd.run_all.
func run(ctx context.Context, c *modules.Call, cmd []any, more map[string]any) (saltcmd.Result, map[string]any, error) {
	kw := map[string]any{"python_shell": false, "runas": c.Value("user")}
	if cwd := c.Value("cwd"); pytext.Truth(cwd) {
		kw["cwd"] = cwd
	}
	for k, v := range more {
		kw[k] = v
	}
	for k, v := range c.Keywords {
		if !strings.HasPrefix(k, "__") {
			kw[k] = v
		}
	}
	env := map[string]any{}
	if have, ok := kw["env"].(map[string]any); ok {
		env = have
	}
	if v := c.Value("env_vars"); pytext.Truth(v) {
		vars, ok := v.(map[string]any)
		if !ok {
			return saltcmd.Result{}, nil, modules.Errorf("env_vars %s is not a dictionary", pytext.Str(v))
		}
		for k, x := range vars {
			env[k] = pytext.Str(x)
		}
	}
	if bin := c.Str("bin_env"); bin != "" {
		if info, err := os.Stat(c.Path(bin)); err == nil && info.IsDir() {
			env["VIRTUAL_ENV"] = bin
		}
	}
	if len(env) > 0 {
		kw["env"] = env
	}
	v, err := c.ExecKw(ctx, "cmd.run_all", []any{cmd}, kw)
	m, _ := v.(map[string]any)
	text := func(k string) string { s, _ := m[k].(string); return s }
	code, _ := m["retcode"].(int64)
	return saltcmd.Result{Stdout: text("stdout"), Stderr: text("stderr"), Retcode: int(code)}, m, err
}

func with(cmd []string, more ...string) []any {
	return nested.Anys(append(slices.Clone(cmd), more...))
}

var versionLine = lazyre.Regexp{Expr: `^pip (\S+)`}

func versionRun(ctx context.Context, c *modules.Call) (any, error) {
	v, err := version(ctx, c)
	if v == "" {
		return nil, err
	}
	return v, err
}

func contextKey(c *modules.Call) string {
	if c.Value("bin_env") != nil {
		return "pip.version." + c.Str("bin_env")
	}
	return "pip.version"
}

// version returns the version of pip. It runs pip once per job.
func version(ctx context.Context, c *modules.Call) (string, error) {
	if v, _ := c.Context().Get(contextKey(c)); v != nil {
		if s, ok := v.(string); ok {
			return s, nil
		}
	}
	cmd, err := program(c)
	if err != nil {
		return "", err
	}
	kw := map[string]any{"python_shell": false, "runas": c.Value("user"), "cwd": c.Value("cwd")}
	v, err := c.ExecKw(ctx, "cmd.run_all", []any{with(cmd, "--version")}, kw)
	if err != nil {
		return "", err
	}
	m, _ := v.(map[string]any)
	if pytext.Truth(m["retcode"]) {
		return "", &modules.MissingCommandError{Command: "Could not find a `pip` binary"}
	}
	text, _ := m["stdout"].(string)
	found := ""
	if match := versionLine.Get().FindStringSubmatch(text); match != nil {
		found = match[1]
	}
	c.Context().Set(contextKey(c), found)
	return found, nil
}

func forget(c *modules.Call) { c.Context().Set(contextKey(c), nil) }

// is compares the version of pip.
func is(version, oper, other string) bool {
	return pkgversion.Holds(version, oper, other, pkgversion.Loose)
}

func normalizeRun(_ context.Context, c *modules.Call) (any, error) {
	return normalize(c.Str("name")), nil
}

// normalize returns the name of a package in the normal form of PEP 503.
func normalize(name string) string {
	var b strings.Builder
	gap := false
	for _, r := range name {
		if r == '-' || r == '_' || r == '.' {
			gap = true
			continue
		}
		if gap {
			b.WriteByte('-')
			gap = false
		}
		b.WriteRune(r)
	}
	if gap {
		b.WriteByte('-')
	}
	return strings.ToLower(b.String())
}

func freezeRun(ctx context.Context, c *modules.Call) (any, error) {
	lines, err := freeze(ctx, c)
	return nested.Anys(lines), err
}

func freeze(ctx context.Context, c *modules.Call) ([]string, error) {
	cmd, err := program(c)
	if err != nil {
		return nil, err
	}
	cmd = append(cmd, "freeze")
	have, err := version(ctx, c)
	if err != nil {
		return nil, err
	}
	if !is(have, "<", "8.0.3") {
		cmd = append(cmd, "--all")
	}
	out, info, err := run(ctx, c, with(cmd, "--disable-pip-version-check"), useVT(c))
	if err != nil {
		return nil, err
	}
	if out.Retcode != 0 {
		return nil, saltcmd.Problem(out.Stderr, info)
	}
	return out.Lines(), nil
}

func useVT(c *modules.Call) map[string]any { return map[string]any{"use_vt": c.Bool("use_vt")} }

func listFreezeParse(ctx context.Context, c *modules.Call) (any, error) {
	prefix := ""
	if c.Bool("prefix") {
		prefix = normalize(c.Str("prefix"))
	}
	ret := map[string]any{}
	if strings.HasPrefix("pip", prefix) {
		v, err := versionRun(ctx, c)
		if err != nil {
			return nil, err
		}
		ret["pip"] = v
	}
	lines, err := freeze(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		if name, version, ok := frozen(line); ok && strings.HasPrefix(normalize(name), prefix) {
			ret[normalize(name)] = version
		}
	}
	return ret, nil
}

// frozen reads a line of pip freeze.
func frozen(line string) (name, version string, ok bool) {
	if strings.HasPrefix(line, "-f") || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "-e hg+not trust") {
		return "", "", false
	}
	if rest, editable := strings.CutPrefix(line, "-e"); editable {
		line = strings.TrimPrefix(rest, " ")
		if version, name, ok := strings.Cut(line, "#egg="); ok {
			return name, version, true
		}
	}
	for _, sep := range []string{"===", "=="} {
		if parts := strings.Split(line, sep); len(parts) >= 2 {
			return parts[0], parts[1], true
		}
	}
	return "", "", false
}

func list(ctx context.Context, c *modules.Call) (any, error) {
	return installed(ctx, c, c.Str("prefix"))
}

// installed returns the packages whose name begins with prefix, with their versions.
func installed(ctx context.Context, c *modules.Call, prefix string) (map[string]any, error) {
	have, err := version(ctx, c)
	if err != nil {
		return nil, err
	}
	if is(have, "<", "9.0") {
		v, err := listFreezeParse(ctx, c)
		m, _ := v.(map[string]any)
		return m, err
	}
	cmd, err := program(c)
	if err != nil {
		return nil, err
	}
	out, info, err := run(ctx, c, with(cmd, "list", "--format=json", "--disable-pip-version-check"), nil)
	if err != nil {
		return nil, err
	}
	pkgs, err := parse(out, info)
	ret := map[string]any{}
	for _, p := range pkgs {
		if strings.HasPrefix(strings.ToLower(p.Name), strings.ToLower(prefix)) {
			ret[p.Name] = p.Version
		}
	}
	return ret, err
}

// listed is a package as pip lists it.
type listed struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Latest  string `json:"latest_version"`
	Type    string `json:"latest_filetype"`
}

func parse(out saltcmd.Result, info map[string]any) ([]listed, error) {
	if out.Retcode != 0 {
		return nil, saltcmd.Problem(out.Stderr, info)
	}
	var pkgs []listed
	if err := json.Unmarshal([]byte(out.Stdout), &pkgs); err != nil {
		return nil, saltcmd.Problem("Invalid JSON", info)
	}
	return pkgs, nil
}

func listUpgrades(ctx context.Context, c *modules.Call) (any, error) { return upgrades(ctx, c) }

func upgrades(ctx context.Context, c *modules.Call) (map[string]any, error) {
	cmd, err := program(c)
	if err != nil {
		return nil, err
	}
	cmd = append(cmd, "list", "--outdated", "--disable-pip-version-check")
	have, err := version(ctx, c)
	if err != nil {
		return nil, err
	}
	asJSON := is(have, ">=", "9.0")
	if asJSON {
		cmd = append(cmd, "--format=json")
	}
	out, info, err := run(ctx, c, with(cmd), nil)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	if asJSON {
		pkgs, err := parse(out, info)
		for _, p := range pkgs {
			ret[p.Name] = p.Latest + " [" + p.Type + "]"
		}
		return ret, err
	}
	if out.Retcode != 0 {
		return nil, saltcmd.Problem(out.Stderr, info)
	}
	for _, line := range out.Lines() { // "psutil (5.2.2) - Latest: 5.4.5 [wheel]", or before 8.0.0 "psutil (Current: … Latest: …)"
		name, rest, _ := strings.Cut(line, " ")
		if _, latest, ok := strings.Cut(rest, "Latest: "); ok {
			if is(have, "<", "8.0.0") {
				latest = strings.TrimSuffix(latest, ")")
			}
			ret[name] = latest
		}
	}
	return ret, nil
}

func isInstalled(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("pkgname")
	have, err := installed(ctx, c, name)
	for n := range have {
		if strings.EqualFold(n, name) {
			return true, err
		}
	}
	return false, err
}

func upgradeAvailable(ctx context.Context, c *modules.Call) (any, error) {
	all, err := upgrades(ctx, c)
	_, ok := all[c.Str("pkg")]
	return ok, err
}

func upgrade(ctx context.Context, c *modules.Call) (any, error) {
	cmd, err := program(c)
	if err != nil {
		return nil, err
	}
	before, err := installed(ctx, c, "")
	if err != nil {
		return nil, err
	}
	names, err := upgrades(ctx, c)
	if err != nil {
		return nil, err
	}
	result, comment := true, ""
	for _, name := range sortedKeys(names) {
		out, _, err := run(ctx, c, with(cmd, "install", "-U", "--disable-pip-version-check", name), useVT(c))
		if err != nil {
			return nil, err
		}
		result = result && out.Retcode == 0
		comment += out.Stderr
	}
	forget(c)
	after, err := installed(ctx, c, "")
	if err != nil {
		return nil, err
	}
	return map[string]any{"changes": pkglist.CompareMaps(before, after), "result": result, "comment": comment}, nil
}

func sortedKeys(m map[string]any) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func listAllVersions(ctx context.Context, c *modules.Call) (any, error) {
	cmd, err := program(c)
	if err != nil {
		return nil, err
	}
	cmd = append(cmd, "--disable-pip-version-check")
	have, err := version(ctx, c)
	if err != nil {
		return nil, err
	}
	begin, end := "Available versions: ", ""
	if is(have, ">=", "21.2") {
		cmd = append(cmd, "index", "versions", c.Str("pkg"))
	} else {
		if is(have, ">=", "20.3") {
			cmd = append(cmd, "--use-deprecated=legacy-resolver")
		}
		cmd, begin, end = append(cmd, "install", c.Str("pkg")+"==versions"), "(from versions: ", ")"
	}
	for _, o := range []struct{ option, name string }{{"--index-url", "index_url"}, {"--extra-index-url", "extra_index_url"}} {
		if c.Bool(o.name) {
			if !validURL(c.Str(o.name)) {
				return nil, modules.Errorf("'%s' is not a valid URL", c.Str(o.name))
			}
			cmd = append(cmd, o.option, c.Str(o.name))
		}
	}
	out, _, err := run(ctx, c, with(cmd), map[string]any{"redirect_stderr": true})
	if err != nil {
		return nil, err
	}
	var versions []string
	for _, line := range out.Lines() {
		_, rest, ok := strings.Cut(line, begin)
		if !ok {
			continue
		}
		rest = strings.TrimSuffix(rest, end)
		for _, v := range strings.Split(rest, ", ") {
			if v != "" && (c.Bool("include_alpha") || !strings.Contains(v, "a")) && (c.Bool("include_beta") || !strings.Contains(v, "b")) &&
				(c.Bool("include_rc") || !strings.Contains(v, "rc")) {
				versions = append(versions, v)
			}
		}
		break
	}
	if versions == nil {
		return nil, nil
	}
	sorting.Stable(versions, pkgversion.Python)
	return nested.Anys(versions), nil
}

func validURL(s string) bool {
	for _, proto := range [...]string{"http://", "https://", "ftp://", "file://"} {
		if strings.HasPrefix(s, proto) {
			return true
		}
	}
	return false
}
