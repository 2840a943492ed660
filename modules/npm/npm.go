// Package npm is Salt's execution module "npm": packages of Node.js. Salt's source: salt/modules/npm.py.
package npm

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/nss"
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytemp"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// npm.cache_clean, npm.cache_list, npm.cache_path, npm.install, npm.list, npm.uninstall differ: npm is run with a list of arguments, never through a shell.
// npm.install differs: without dir it runs in the temporary directory of the host, and whole numbers in npm's answer stay whole.

func available(e *modules.Env) (bool, string) {
	if e.Which("npm") == "" {
		return false, "npm execution module could not be loaded because the npm binary could not be located"
	}
	return true, ""
}

// run runs npm in a directory, as another user if asked.
func run(ctx context.Context, c *modules.Call, dir string, ignore bool, args ...string) (saltcmd.Result, error) {
	var env []string
	if m, ok := c.Value("env").(map[string]any); ok {
		for k, v := range m {
			env = append(env, k+"="+pytext.Str(v))
		}
	}
	user := c.Str("runas")
	if user != "" {
		if a, ok := nss.UserByName(ctx, c, user); ok && a.UID != 0 {
			env = append(env, "SUDO_UID="+pytext.Str(a.UID), "SUDO_USER=")
		}
	}
	slices.Sort(env)
	return saltcmd.Run(ctx, c, saltcmd.Command{Args: append([]string{"npm"}, args...), Dir: dir, RunAs: user, Env: env, IgnoreRetcode: ignore})
}

func install(ctx context.Context, c *modules.Call) (any, error) {
	args := []string{"install", "--json"}
	if c.Bool("silent") {
		args = append(args, "--silent")
	}
	dir := c.Str("dir")
	if dir == "" {
		dir, args = pytemp.Dir(), append(args, "--global")
	}
	if c.Bool("registry") {
		args = append(args, "--registry="+c.Str("registry"))
	}
	if c.Bool("dry_run") {
		args = append(args, "--dry-run")
	}
	names := pkglist.SplitInput(c.Value("pkgs"))
	if c.Bool("pkg") {
		names = []string{c.Str("pkg")}
	}
	out, err := run(ctx, c, dir, false, append(args, names...)...)
	if err != nil {
		return nil, err
	}
	if out.Retcode != 0 {
		return nil, modules.Errorf("%s", out.Stderr)
	}
	text := out.Stdout
	if text == "" {
		text = out.Stderr
	}
	if v, ok := find(text); ok {
		return v, nil
	}
	return text, nil
}

// find returns the first JSON value in a text that starts at the beginning of a line (salt/utils/json.py find_json).
func find(text string) (any, bool) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "{") && !strings.HasPrefix(line, "[") {
			continue
		}
		for end := len(lines); end > i && end > len(lines)-50; end-- {
			if v, err := pyjson.Parse([]byte(strings.Join(lines[i:end], "\n"))); err == nil {
				return v, true
			}
		}
	}
	return nil, false
}

func uninstall(ctx context.Context, c *modules.Call) (any, error) {
	args := []string{"uninstall", c.Str("pkg")}
	if !c.Bool("dir") {
		args = append(args, "--global")
	}
	out, err := run(ctx, c, c.Str("dir"), false, args...)
	return success(c, out), err
}

func success(c *modules.Call, out saltcmd.Result) bool {
	if out.Retcode != 0 {
		c.Logger().Error("Npm failed", "stderr", out.Stderr)
	}
	return out.Retcode == 0
}

func list(ctx context.Context, c *modules.Call) (any, error) {
	args := []string{"list", "--json", "--silent"}
	if !c.Bool("dir") {
		args = append(args, "--global")
	}
	switch depth := c.Value("depth").(type) {
	case nil:
	case int64, float64, bool:
		n, err := modules.ToInt(depth)
		if err != nil {
			return nil, err
		}
		args = append(args, "--depth="+pytext.Str(n))
	default:
		return nil, modules.Usagef("Error: depth %s must be a number", pytext.Str(depth))
	}
	if c.Bool("pkg") {
		args = append(args, c.Str("pkg"))
	}
	out, err := run(ctx, c, c.Str("dir"), true, args...)
	if err != nil {
		return nil, err
	}
	if out.Retcode != 0 && out.Stderr != "" {
		return nil, modules.Errorf("%s", out.Stderr)
	}
	v, err := pyjson.Parse([]byte(out.Stdout))
	if err != nil {
		return nil, modules.Errorf("cannot read what npm says: %s", err)
	}
	m, _ := v.(map[string]any)
	if d, ok := m["dependencies"]; ok {
		return d, nil
	}
	return map[string]any{}, nil
}

// cache runs a command about the cache, for one path or all of it.
func cache(ctx context.Context, c *modules.Call, verb string, more ...string) (saltcmd.Result, error) {
	args := []string{"cache", verb}
	if c.Bool("path") {
		args = append(args, c.Str("path"))
	}
	return run(ctx, c, "", true, append(args, more...)...)
}

func cacheClean(ctx context.Context, c *modules.Call) (any, error) {
	var more []string
	if c.Value("force") == any(true) {
		more = []string{"--force"}
	}
	out, err := cache(ctx, c, "clean", more...)
	return success(c, out), err
}

func cacheList(ctx context.Context, c *modules.Call) (any, error) {
	out, err := cache(ctx, c, "ls")
	if err == nil && out.Retcode != 0 && out.Stderr != "" {
		err = modules.Errorf("%s", out.Stderr)
	}
	if err != nil {
		return nil, err
	}
	return out.Stdout, nil
}

func cachePath(ctx context.Context, c *modules.Call) (any, error) {
	out, err := run(ctx, c, "", true, "config", "get", "cache")
	if err != nil {
		return nil, err
	}
	if out.Stdout != "" {
		return out.Stdout, nil
	}
	return out.Stderr, nil
}
