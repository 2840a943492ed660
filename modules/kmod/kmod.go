// Package kmod is Salt's execution module "kmod". Salt's source: salt/modules/kmod.py.
package kmod

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func available(e *modules.Env) (bool, string) { return e.Grain("kernel") == "Linux", "" }

// config returns the file that lists the modules to load at boot.
func config(c *modules.Call) string {
	if _, ok := c.GrainData()["systemd"]; ok {
		return "/etc/modules-load.d/salt_managed.conf"
	}
	return "/etc/modules"
}

func listAvailable(ctx context.Context, c *modules.Call) (any, error) {
	return nested.Anys(all(ctx, c)), nil
}

// all returns the names of all kernel modules, built in or in files.
func all(ctx context.Context, c *modules.Call) []string {
	release := kernelRelease(c)
	dirs := []string{"/lib/modules/" + release}
	if family, _ := c.Grain("os_family").(string); strings.Contains(family, "Arch") {
		dirs = append(dirs, "/lib/modules/extramodules-"+release[:min(3, len(release))]+"-ARCH")
	}
	var names []string
	if text, err := os.ReadFile(c.Path(dirs[0] + "/modules.builtin")); err == nil {
		for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
			base := line[strings.LastIndex(line, "/")+1:]
			names = append(names, base[:max(0, len(base)-3)]) // without .ko
		}
	}
	for _, dir := range dirs {
		_ = filepath.WalkDir(c.Path(dir), func(_ string, d fs.DirEntry, err error) error {
			if name, _, ok := strings.Cut(nameOf(d), ".ko"); ok && err == nil && !d.IsDir() {
				names = append(names, strings.ReplaceAll(name, "-", "_"))
			}
			return ctx.Err() // a directory that cannot be read has no modules
		})
	}
	slices.Sort(names)
	return names
}

func nameOf(d fs.DirEntry) string {
	if d == nil {
		return ""
	}
	return d.Name()
}

// kernelRelease returns the kernel's release, as uname -r does.
func kernelRelease(c *modules.Call) string {
	text, err := os.ReadFile(c.Path("/proc/sys/kernel/osrelease"))
	if err != nil {
		s, _ := c.Grain("kernelrelease").(string)
		return s
	}
	return strings.TrimSpace(string(text))
}

func checkAvailable(ctx context.Context, c *modules.Call) (any, error) {
	return slices.Contains(all(ctx, c), c.Str("mod")), nil
}

func lsmod(ctx context.Context, c *modules.Call) (any, error) {
	list, err := loaded(ctx, c)
	if err != nil {
		return nil, err
	}
	out := make([]any, len(list))
	for i, m := range list {
		out[i] = m
	}
	return out, nil
}

// loaded runs lsmod and returns its table, for kmod.lsmod.
func loaded(ctx context.Context, c *modules.Call) ([]map[string]any, error) {
	path, err := saltcmd.Which(c, "lsmod")
	if err != nil {
		return nil, err
	}
	text, err := saltcmd.Text(ctx, c, path)
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, line := range pytext.SplitLines(text, false) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] == "Module" {
			continue
		}
		deps := []any{}
		if len(f) > 3 {
			deps = nested.Anys(strings.Split(f[3], ","))
		}
		out = append(out, map[string]any{"size": f[1], "module": f[0], "depcount": f[2], "deps": deps})
	}
	return out, nil
}

// names returns the sorted names of the loaded modules.
func names(ctx context.Context, c *modules.Call) ([]string, error) {
	list, err := loaded(ctx, c)
	out := make([]string, len(list))
	for i, m := range list {
		out[i] = m["module"].(string)
	}
	slices.Sort(out)
	return slices.Compact(out), err
}

func modList(ctx context.Context, c *modules.Call) (any, error) {
	if c.Bool("only_persist") {
		return nested.Anys(persistent(c)), nil
	}
	return modules.AnswerList(names(ctx, c))
}

// persistent returns the sorted names of the modules that are loaded at boot.
func persistent(c *modules.Call) []string {
	text, err := os.ReadFile(c.Path(config(c)))
	if err != nil {
		return nil
	}
	var out []string
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Fields(line); len(f) > 0 && !strings.HasPrefix(f[0], "#") {
			out = append(out, f[0])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func isLoaded(ctx context.Context, c *modules.Call) (any, error) {
	list, err := names(ctx, c)
	return slices.Contains(list, c.Str("mod")), err
}

func load(ctx context.Context, c *modules.Call) (any, error) {
	return change(ctx, c, "modprobe", "loading", func(before, after []string) ([]string, error) {
		new := without(after, before)
		if !c.Bool("persist") {
			return new, nil
		}
		name, err := keep(ctx, c, c.Str("mod"))
		return append(new, name...), err
	})
}

func remove(ctx context.Context, c *modules.Call) (any, error) {
	return change(ctx, c, "rmmod", "removing", func(before, after []string) ([]string, error) {
		gone := without(before, after)
		if !c.Bool("persist") {
			return gone, nil
		}
		name, err := forget(c, c.Str("mod"), c.Bool("comment"))
		return append(gone, name...), err
	})
}

// change runs a program on the module and its parameters, and returns the change of the loaded modules.
func change(ctx context.Context, c *modules.Call, program, verb string, then func(before, after []string) ([]string, error)) (any, error) {
	before, err := names(ctx, c)
	if err != nil {
		return nil, err
	}
	path, err := saltcmd.Which(c, program)
	if err != nil {
		return nil, err
	}
	cmd := []any{path}
	for _, w := range strings.Fields(c.Str("mod")) {
		cmd = append(cmd, w)
	}
	r, err := saltcmd.All(ctx, c, cmd...)
	if err != nil {
		return nil, err
	}
	if r.Retcode != 0 {
		return "Error " + verb + " module " + c.Str("mod") + ": " + r.Stderr, nil
	}
	after, err := names(ctx, c)
	if err != nil {
		return nil, err
	}
	list, err := then(before, after)
	if err != nil {
		return nil, err
	}
	slices.Sort(list)
	return nested.Anys(slices.Compact(list)), nil
}

func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

// keep writes a module into the file of those that are loaded at boot, or takes the comment sign away from it.
func keep(ctx context.Context, c *modules.Call, mod string) ([]string, error) {
	file := c.Path(config(c))
	f := strings.Fields(mod)
	if len(f) == 0 || slices.Contains(persistent(c), f[0]) || !slices.Contains(all(ctx, c), f[0]) {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return nil, modules.OSError(err)
	}
	lines, found := strings.SplitAfter(string(text), "\n"), false
	for i, line := range lines {
		if bare, ok := strings.CutPrefix(line, "#"); ok && strings.Trim(bare, "\t \n") == mod {
			lines[i], found = strings.TrimLeft(bare, "\t "), true
		}
	}
	out := strings.Join(lines, "")
	if !found {
		if out != "" && !strings.HasSuffix(out, "\n") {
			out += "\n"
		}
		out += mod + "\n"
	}
	return []string{f[0]}, write(file, out)
}

// forget takes a module out of the file of those that are loaded at boot, or puts a comment sign before it.
func forget(c *modules.Call, mod string, comment bool) ([]string, error) {
	file := c.Path(config(c))
	f := strings.Fields(mod)
	if len(f) == 0 || !slices.Contains(persistent(c), f[0]) {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, modules.OSError(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	for i, line := range lines {
		bare := strings.TrimLeft(line, "\t ")
		rest, ok := strings.CutPrefix(bare, mod)
		switch {
		case !ok:
		case comment:
			lines[i] = "#" + line
		default: // what is behind the name stays, as Salt's sed leaves it
			if rest != "" && strings.ContainsAny(rest[:1], "\t ") {
				rest = rest[1:]
			}
			lines[i] = rest
		}
	}
	return []string{f[0]}, write(file, strings.Join(lines, ""))
}

func write(file, text string) error {
	if err := atomicfile.Replace(file, []byte(text), 0o644); err != nil {
		return modules.OSError(err)
	}
	return nil
}
