// Package selinux is Salt's execution module "selinux". Salt's source: salt/modules/selinux.py.
package selinux

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// selinux.setenforce differs: a mode given as a number leaves the configuration as it is; stock fails halfway.
// selinux.setsebools differs: the booleans are set in alphabetical order.
// selinux.fcontext_get_policy, selinux.port_get_policy differ: the parts of a label are taken literally, not as expressions.

const configFile = "/etc/selinux/config"

func available(e *modules.Env) (bool, string) {
	for _, program := range [...]string{"semanage", "setsebool", "semodule"} {
		if e.Which(program) == "" {
			return false, program + " is not in the path"
		}
	}
	return e.Grain("kernel") == "Linux", "Module only works on Linux with selinux installed"
}

// mounted returns the mount point of SELinux's file system, or "" if it is not mounted.
func mounted(c *modules.Call) string {
	for _, dir := range [...]string{"/sys/fs/selinux", "/selinux"} {
		if c.IsFile(dir + "/enforce") {
			return dir
		}
	}
	return ""
}

func fsPath(_ context.Context, c *modules.Call) (any, error) {
	if dir := mounted(c); dir != "" {
		return dir, nil
	}
	return nil, nil
}

func getenforce(_ context.Context, c *modules.Call) (any, error) { return mode(c), nil }

func mode(c *modules.Call) string {
	dir := mounted(c)
	text, err := os.ReadFile(c.Path(dir + "/enforce"))
	if dir == "" || err != nil {
		return "Disabled"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if pytext.Strip(line) == "0" {
		return "Permissive"
	}
	return "Enforcing"
}

func getconfig(_ context.Context, c *modules.Call) (any, error) {
	text, err := os.ReadFile(c.Path(configFile))
	if err != nil {
		return nil, nil
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(pytext.Strip(line), "SELINUX=") {
			return capital(strings.Split(line, "=")[1]), nil
		}
	}
	return nil, nil
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return pytext.Strip(strings.ToUpper(s[:1]) + strings.ToLower(s[1:]))
}

func setenforce(_ context.Context, c *modules.Call) (any, error) {
	value, name := "0", ""
	switch v := c.Value("mode").(type) {
	case string:
		switch name = strings.ToLower(v); name {
		case "enforcing":
			value = "1"
		case "permissive", "disabled":
		default:
			return "Invalid mode " + v, nil
		}
	case int64, bool:
		if pytext.Truth(v) {
			value = "1"
		}
	default:
		return "Invalid mode " + pytext.Str(v), nil
	}
	if mode(c) != "Disabled" {
		if err := os.WriteFile(c.Path(mounted(c)+"/enforce"), []byte(value), 0o644); err != nil { // not a file to replace
			why, _ := modules.OSErrorText(err)
			return nil, modules.Errorf("Could not write SELinux enforce file: %s", why)
		}
	}
	text, err := os.ReadFile(c.Path(configFile))
	if err != nil {
		why, _ := modules.OSErrorText(err)
		return nil, modules.Errorf("Could not read SELinux config file: %s", why)
	}
	lines := strings.SplitAfter(string(text), "\n")
	for i, line := range lines {
		if i > 0 && name != "" && strings.HasPrefix(line, "SELINUX=") && strings.HasSuffix(line, "\n") {
			lines[i] = "SELINUX=" + name + "\n"
		}
	}
	if err := atomicfile.Replace(c.Path(configFile), []byte(strings.Join(lines, "")), 0o644); err != nil {
		why, _ := modules.OSErrorText(err)
		return nil, modules.Errorf("Could not write SELinux config file: %s", why)
	}
	return mode(c), nil
}

// succeeds runs a program and reports whether it worked.
func succeeds(ctx context.Context, c *modules.Call, words ...any) (any, error) {
	code, err := saltcmd.Retcode(ctx, c, words...)
	return err == nil && code == 0, err
}

func listSebool(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(booleans(ctx, c))
}

func booleans(ctx context.Context, c *modules.Call) (map[string]any, error) {
	text, err := saltcmd.Text(ctx, c, "semanage", "boolean", "-l")
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	lines := pytext.SplitLines(text, false)
	for _, line := range lines[min(1, len(lines)):] {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 4 {
			return nil, modules.IndexError()
		}
		out[f[0]] = map[string]any{"State": f[1][1:], "Default": f[3][:len(f[3])-1], "Description": strings.Join(f[4:], " ")}
	}
	return out, nil
}

func getsebool(ctx context.Context, c *modules.Call) (any, error) {
	m, err := booleans(ctx, c)
	return entry(m, c.Str("boolean")), err
}

func entry(m map[string]any, name string) any {
	if v, ok := m[name]; ok {
		return v
	}
	return map[string]any{}
}

func setsebool(ctx context.Context, c *modules.Call) (any, error) {
	cmd := []any{"setsebool"}
	if c.Bool("persist") {
		cmd = append(cmd, "-P")
	}
	return succeeds(ctx, c, append(cmd, c.Value("boolean"), c.Value("value"))...)
}

func setsebools(ctx context.Context, c *modules.Call) (any, error) {
	pairs, ok := c.Value("pairs").(map[string]any)
	if !ok {
		return map[string]any{}, nil
	}
	cmd := []any{"setsebool"}
	if c.Bool("persist") {
		cmd = append(cmd, "-P")
	}
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		cmd = append(cmd, k+"="+pytext.Str(pairs[k]))
	}
	return succeeds(ctx, c, cmd...)
}

func listSemod(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(semods(ctx, c))
}

func semods(ctx context.Context, c *modules.Call) (map[string]any, error) {
	help, err := saltcmd.Text(ctx, c, "semodule", "-h")
	if err != nil {
		return nil, err
	}
	list, name, enabled := "-l", 0, 3 // a line of a disabled module has one word more
	for _, line := range pytext.SplitLines(help, false) {
		if strings.HasPrefix(pytext.Strip(line), "full") {
			list, name, enabled = "-lfull", 1, 4
		}
	}
	text, err := saltcmd.Text(ctx, c, "semodule", list)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, line := range pytext.SplitLines(text, false) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 2 {
			return nil, modules.IndexError()
		}
		var version any
		if name == 0 {
			version = f[1]
		}
		out[f[name]] = map[string]any{"Enabled": len(f) != enabled, "Version": version}
	}
	return out, nil
}

func getsemod(ctx context.Context, c *modules.Call) (any, error) {
	m, err := semods(ctx, c)
	return entry(m, c.Str("module")), err
}

func setsemod(ctx context.Context, c *modules.Call) (any, error) {
	state, ok := c.Value("state").(string)
	if !ok {
		return nil, modules.NoAttribute(c.Value("state"), "lower")
	}
	switch strings.ToLower(state) {
	case "enabled":
		return succeeds(ctx, c, "semodule", "-e", c.Value("module"))
	case "disabled":
		return succeeds(ctx, c, "semodule", "-d", c.Value("module"))
	}
	return nil, &modules.PythonError{Type: "UnboundLocalError", Msg: "cannot access local variable 'cmd' where it is not associated with a value"}
}

func installSemod(ctx context.Context, c *modules.Call) (any, error) {
	path := c.Value("module_path")
	if s, ok := path.(string); ok && strings.HasPrefix(s, "salt://") {
		v, err := c.Exec(ctx, "cp.cache_file", s)
		if err != nil {
			return nil, err
		}
		path = v
	}
	return succeeds(ctx, c, "semodule", "-i", path)
}

func removeSemod(ctx context.Context, c *modules.Call) (any, error) {
	return succeeds(ctx, c, "semodule", "-r", c.Value("module"))
}
