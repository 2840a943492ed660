// Package debianservice is Salt's execution module "service" on Debian without systemd: init scripts through service and
// update-rc.d. Salt's source: salt/modules/debian_service.py.
package debianservice

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/modkit/systemd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func available(e *modules.Env) (bool, string) {
	os := e.Grain("os")
	if (os == "Debian" || os == "Raspbian" || os == "Devuan" || os == "NILinuxRT") && !systemd.Booted(e) {
		return true, ""
	}
	return false, "The debian_service module could not be loaded: unsupported OS family and/or systemd running."
}

// code runs a program and gives its exit status.
func code(ctx context.Context, c *modules.Call, ignore bool, args ...string) (int, error) {
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: args, Merge: true, IgnoreRetcode: ignore})
	return out.Retcode, err
}

// enabledServices returns the services that start in the current runlevel.
func enabledServices(ctx context.Context, c *modules.Call) ([]string, error) {
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"runlevel"}, Merge: true})
	if err != nil {
		return nil, err
	}
	level := "2"
	if !strings.Contains(out.Stdout, "unknown") {
		words := strings.Fields(out.Stdout)
		if len(words) < 2 {
			return nil, modules.IndexError()
		}
		level = words[1]
	}
	var names []string
	for _, l := range []string{"S", level} {
		found, err := filepath.Glob(c.Path("/etc") + "/rc" + strings.Trim(l, `[]*?\/`) + ".d/S*")
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			name := filepath.Base(f)
			if i := strings.LastIndexAny(name, "0123456789"); i >= 0 {
				name = name[i+1:]
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// allServices returns the names of all init scripts and enabled services.
func allServices(ctx context.Context, c *modules.Call) ([]string, error) {
	names, err := enabledServices(ctx, c)
	if err != nil {
		return nil, err
	}
	found, err := filepath.Glob(c.Path("/etc/init.d") + "/*")
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		if name := filepath.Base(f); name != "README" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func disabledServices(ctx context.Context, c *modules.Call) ([]string, error) {
	on, err := enabledServices(ctx, c)
	if err != nil {
		return nil, err
	}
	names, err := allServices(ctx, c)
	return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(on, n) }), err
}

type lister func(context.Context, *modules.Call) ([]string, error)

// lists answers with a list, has reports whether the service is in it.
func (l lister) lists(ctx context.Context, c *modules.Call) (any, error) {
	names, err := l(ctx, c)
	return nested.Anys(names), err
}

func (l lister) has(ctx context.Context, c *modules.Call) (bool, error) {
	names, err := l(ctx, c)
	return slices.Contains(names, c.Str("name")), err
}

func getEnabled(ctx context.Context, c *modules.Call) (any, error) {
	return lister(enabledServices).lists(ctx, c)
}

func getDisabled(ctx context.Context, c *modules.Call) (any, error) {
	return lister(disabledServices).lists(ctx, c)
}

func getAll(ctx context.Context, c *modules.Call) (any, error) {
	return lister(allServices).lists(ctx, c)
}

func present(ctx context.Context, c *modules.Call) (any, error) {
	return lister(allServices).has(ctx, c)
}

func missing(ctx context.Context, c *modules.Call) (any, error) {
	there, err := lister(allServices).has(ctx, c)
	return !there, err
}

func enabled(ctx context.Context, c *modules.Call) (any, error) {
	return lister(enabledServices).has(ctx, c)
}

func disabled(ctx context.Context, c *modules.Call) (any, error) {
	return lister(disabledServices).has(ctx, c)
}

func start(ctx context.Context, c *modules.Call) (any, error) { return change(ctx, c, "start") }

func stop(ctx context.Context, c *modules.Call) (any, error) { return change(ctx, c, "stop") }

func restart(ctx context.Context, c *modules.Call) (any, error) { return change(ctx, c, "restart") }

func reload(ctx context.Context, c *modules.Call) (any, error) { return change(ctx, c, "reload") }

func forceReload(ctx context.Context, c *modules.Call) (any, error) {
	return change(ctx, c, "force-reload")
}

func change(ctx context.Context, c *modules.Call, verb string) (any, error) {
	n, err := code(ctx, c, false, "service", c.Str("name"), verb)
	return n == 0, err
}

func status(ctx context.Context, c *modules.Call) (any, error) {
	if c.Bool("sig") {
		v, err := c.Exec(ctx, "status.pid", c.Value("sig"))
		return pytext.Truth(v), err
	}
	name := c.Str("name")
	names, glob := []string{name}, fnmatch.Has(name)
	if glob {
		all, err := allServices(ctx, c)
		if err != nil {
			return nil, err
		}
		names = fnmatch.Filter(all, name)
	}
	ret := map[string]any{}
	for _, n := range names {
		got, err := code(ctx, c, true, "service", n, "status")
		if err != nil {
			return nil, err
		}
		ret[n] = got == 0
	}
	if glob {
		return ret, nil
	}
	return ret[name], nil
}

func enable(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	n, err := code(ctx, c, false, "insserv", name)
	if modules.IsExecError(err) { // Salt's shell finds no such program
		c.SetRetcode(127)
		return false, nil
	}
	if n == 0 && err == nil {
		n, err = code(ctx, c, false, "update-rc.d", name, "enable")
	}
	return n == 0, err
}

func disable(ctx context.Context, c *modules.Call) (any, error) {
	n, err := code(ctx, c, false, "update-rc.d", c.Str("name"), "disable")
	return n == 0, err
}
