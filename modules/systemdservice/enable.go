package systemdservice

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/modkit/systemd"
	"github.com/brine-salt/brine/modules"
)

// scripts returns the init scripts for which there is no unit.
func scripts(c *modules.Call, root string, units []string) []string {
	dir := below(root, "/etc/init.d")
	entries, err := os.ReadDir(c.Path(dir))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.Logger().Error("Unable to check sysvinit scripts", "err", err)
		}
		return nil
	}
	var names []string
	for _, e := range entries {
		info, err := os.Stat(c.Path(filepath.Join(dir, e.Name())))
		if err == nil && info.Mode()&0o111 != 0 && !slices.Contains(units, e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// isScript reports whether a service is an init script that no unit stands for.
func isScript(c *modules.Call, name, root string) bool {
	return slices.Contains(scripts(c, root, units(c, root)), name)
}

// scriptEnabled reports whether the runlevel starts an init script.
func scriptEnabled(ctx context.Context, c *modules.Call, name, root string) (bool, error) {
	level, err := runlevel(ctx, c)
	if err != nil {
		return false, err
	}
	entries, err := os.ReadDir(c.Path(below(root, "/etc/rc"+level+".d")))
	if err != nil {
		return false, nil //nolint:nilerr // no directory, nothing enabled
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), "S")
		for n := 0; ok && n <= 2 && n <= len(rest); n++ {
			if strings.Trim(rest[:n], "0123456789") == "" && rest[n:] == name {
				return true, nil
			}
		}
	}
	return false, nil
}

const runlevelKey = "systemd._runlevel"

// runlevel returns the current runlevel, or the default one if it is unknown.
func runlevel(ctx context.Context, c *modules.Call) (string, error) {
	if v, ok := c.Context().Get(runlevelKey); ok {
		if s, ok := v.(string); ok {
			return s, nil
		}
	}
	level := ""
	if program := c.Which("runlevel"); program != "" {
		out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{program}, Merge: true, IgnoreRetcode: true})
		if err != nil {
			return "", err
		}
		if words := strings.Fields(out.Stdout); len(words) > 1 {
			level = words[1]
		}
	}
	if level == "" || strings.ContainsAny(level, "/\x00") {
		level = defaultRunlevel(c)
	}
	c.Context().Set(runlevelKey, level)
	return level, nil
}

func defaultRunlevel(c *modules.Call) string {
	b, err := os.ReadFile(c.Path("/etc/init/rc-sysinit.conf"))
	if err != nil {
		return "2"
	}
	level := "2"
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "env DEFAULT_RUNLEVEL") {
			level = strings.TrimSpace(line[strings.LastIndexByte(line, '=')+1:])
		}
	}
	if b, err = os.ReadFile(c.Path("/etc/inittab")); err == nil {
		for line := range strings.Lines(string(b)) {
			if cols := strings.Split(line, ":"); !strings.HasPrefix(line, "#") && strings.Contains(line, "initdefault") && len(cols) > 1 {
				level = cols[1]
			}
		}
	}
	if b, err = os.ReadFile(c.Path("/proc/cmdline")); err == nil {
		for _, arg := range strings.Fields(string(b)) {
			if slices.Contains([]string{"0", "1", "2", "3", "4", "5", "6", "s", "S", "-s", "single"}, arg) {
				level = arg
				break
			}
		}
	}
	return level
}

func enable(ctx context.Context, c *modules.Call) (any, error) {
	root := c.Str("root")
	if err := prepare(ctx, c, root); err != nil {
		return nil, err
	}
	name := c.Str("name")
	if isScript(c, name, root) {
		return script(ctx, c, []string{"-f", name, "defaults", "99"}, []string{name, "on"})
	}
	out, err := ctl{args: []string{"enable"}, name: name, scope: true, noBlock: c.Bool("no_block"), root: root, ignore: true}.run(ctx, c)
	if err == nil && out.Retcode != 0 {
		err = complaint(out)
	}
	if err != nil {
		return nil, err
	}
	return true, nil
}

func disable(ctx context.Context, c *modules.Call) (any, error) {
	name, root := c.Str("name"), c.Str("root")
	if err := follow(ctx, c, name); err != nil {
		return nil, err
	}
	if isScript(c, name, root) {
		return script(ctx, c, []string{"-f", name, "remove"}, []string{name, "off"})
	}
	out, err := ctl{args: []string{"disable"}, name: name, scope: true, noBlock: c.Bool("no_block"), root: root, ignore: true}.run(ctx, c)
	if err != nil {
		return nil, err
	}
	return out.Retcode == 0, nil
}

// script switches an init script with the program that the host has for it.
func script(ctx context.Context, c *modules.Call, updateRC, chkconfig []string) (any, error) {
	cmd := systemd.Scope(ctx, c)
	if program := c.Which("update-rc.d"); program != "" {
		cmd = append(append(cmd, program), updateRC...)
	} else if program := c.Which("chkconfig"); program != "" {
		cmd = append(append(cmd, program), chkconfig...)
	} else {
		return nil, modules.Errorf("Unable to find sysv service manager (tried update-rc.d, chkconfig)")
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: cmd, Merge: true, IgnoreRetcode: true})
	if err != nil {
		return nil, err
	}
	return out.Retcode == 0, nil
}

func enabledRun(ctx context.Context, c *modules.Call) (any, error) {
	return enabled(ctx, c, c.Str("name"), c.Str("root"))
}

func disabled(ctx context.Context, c *modules.Call) (any, error) {
	on, err := enabled(ctx, c, c.Str("name"), c.Str("root"))
	if err != nil {
		return nil, err
	}
	return !on, nil
}

// enabled asks systemctl, then looks for links of templated units, then for init scripts.
func enabled(ctx context.Context, c *modules.Call, name, root string) (bool, error) {
	out, err := ctl{args: []string{"is-enabled"}, name: name, root: root, ignore: true}.run(ctx, c)
	if err != nil {
		return false, err
	}
	switch {
	case out.Stdout == "alias":
		behind, err := ctl{args: []string{"show"}, name: name, root: root, extra: []string{"-P", "Id"}}.run(ctx, c)
		if err != nil {
			return false, err
		}
		out, err := ctl{args: []string{"is-enabled"}, name: behind.Stdout, root: root, ignore: true}.run(ctx, c)
		return out.Retcode == 0, err
	case out.Retcode == 0:
		return true, nil
	case strings.Contains(name, "@"):
		out, err := saltcmd.Run(ctx, c, saltcmd.Command{
			Args: []string{"find", localUnits, "-name", name, "-type", "l", "-print", "-quit"}, Merge: true,
		})
		return out.Stdout != "", err
	case isScript(c, name, root):
		return scriptEnabled(ctx, c, name, root)
	}
	return false, nil
}
