// Package gentooservice is Salt's execution module "service" on hosts with OpenRC: Gentoo and Alpine. Salt's source:
// salt/modules/gentoo_service.py.
package gentooservice

import (
	"context"
	"maps"
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
	if e.Grain("os") == "Gentoo" && !systemd.Booted(e) || e.Grain("os") == "Alpine" {
		return true, ""
	}
	return false, "The gentoo_service execution module cannot be loaded: only available on Gentoo/Open-RC systems."
}

// services returns each service with the runlevels that start it. The list is empty if none does.
func services(ctx context.Context, c *modules.Call) (map[string][]string, error) {
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"rc-update", "-v", "show"}, Merge: true})
	if err != nil {
		return nil, err
	}
	ret := map[string][]string{}
	for _, line := range out.Lines() {
		if name, levels, ok := strings.Cut(line, "|"); ok {
			levels, _, _ = strings.Cut(levels, "|")
			list := strings.Fields(levels)
			slices.Sort(list)
			ret[strings.TrimSpace(name)] = list
		}
	}
	return ret, nil
}

func enabledServices(ctx context.Context, c *modules.Call) (map[string][]string, error) {
	all, err := services(ctx, c)
	maps.DeleteFunc(all, func(_ string, levels []string) bool { return len(levels) == 0 })
	return all, err
}

func plain(m map[string][]string) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = nested.Anys(v)
	}
	return out
}

func getEnabled(ctx context.Context, c *modules.Call) (any, error) {
	on, err := enabledServices(ctx, c)
	return plain(on), err
}

func getAll(ctx context.Context, c *modules.Call) (any, error) {
	all, err := services(ctx, c)
	return plain(all), err
}

func getDisabled(ctx context.Context, c *modules.Call) (any, error) {
	all, err := services(ctx, c)
	maps.DeleteFunc(all, func(_ string, levels []string) bool { return len(levels) > 0 })
	return nested.Anys(slices.Sorted(maps.Keys(all))), err
}

func present(ctx context.Context, c *modules.Call) (any, error) {
	all, err := services(ctx, c)
	_, ok := all[c.Str("name")]
	return ok, err
}

func missing(ctx context.Context, c *modules.Call) (any, error) {
	all, err := services(ctx, c)
	_, ok := all[c.Str("name")]
	return !ok, err
}

func code(ctx context.Context, c *modules.Call, ignore bool, args ...string) (bool, error) {
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: args, Merge: true, IgnoreRetcode: ignore})
	return out.Retcode == 0, err
}

// script runs an init script.
func script(ctx context.Context, c *modules.Call, name, verb string, ignore bool) (bool, error) {
	if strings.Contains(name, "/") || name == "" {
		return false, modules.Usagef("%s is not the name of a service", pytext.Repr(name))
	}
	return code(ctx, c, ignore, "/etc/init.d/"+name, verb)
}

func start(ctx context.Context, c *modules.Call) (any, error) {
	return script(ctx, c, c.Str("name"), "start", false)
}

func stop(ctx context.Context, c *modules.Call) (any, error) {
	return script(ctx, c, c.Str("name"), "stop", false)
}

func restart(ctx context.Context, c *modules.Call) (any, error) {
	return script(ctx, c, c.Str("name"), "restart", false)
}

func reload(ctx context.Context, c *modules.Call) (any, error) {
	return script(ctx, c, c.Str("name"), "reload", false)
}

func zap(ctx context.Context, c *modules.Call) (any, error) {
	return script(ctx, c, c.Str("name"), "zap", false)
}

func status(ctx context.Context, c *modules.Call) (any, error) {
	if c.Bool("sig") {
		v, err := c.Exec(ctx, "status.pid", c.Value("sig"))
		return pytext.Truth(v), err
	}
	name := c.Str("name")
	names := []string{name}
	if fnmatch.Has(name) {
		all, err := services(ctx, c)
		if err != nil {
			return nil, err
		}
		names = fnmatch.Filter(slices.Sorted(maps.Keys(all)), name)
	}
	ret := map[string]any{}
	for _, n := range names {
		ok, err := script(ctx, c, n, "status", true)
		if err != nil {
			return nil, err
		}
		ret[n] = ok
	}
	if fnmatch.Has(name) {
		return ret, nil
	}
	return ret[name], nil
}

// levels returns the runlevels that the call names. It reports whether it names any.
func levels(c *modules.Call) ([]string, bool) {
	v, ok := c.Keywords["runlevels"]
	if !ok {
		return nil, false
	}
	list, isList := v.([]any)
	if !isList {
		return []string{pytext.Str(v)}, true
	}
	var out []string
	for _, x := range list {
		out = append(out, pytext.Str(x))
	}
	slices.Sort(out)
	return slices.Compact(out), true
}

// minus returns the elements of list that are not in other, or with in those that are.
func minus(list, other []string, in bool) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) != in })
}

func enable(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	wanted, given := levels(c)
	if !given {
		return code(ctx, c, false, "rc-update", "add", name)
	}
	on, err := enabledServices(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, change := range []struct {
		verb   string
		levels []string
	}{{"delete", minus(on[name], wanted, false)}, {"add", minus(wanted, on[name], false)}} {
		if len(change.levels) == 0 {
			continue
		}
		if ok, err := code(ctx, c, false, append([]string{"rc-update", change.verb, name}, change.levels...)...); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func disable(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	wanted, given := levels(c)
	var off []string
	if given {
		on, err := enabledServices(ctx, c)
		if err != nil {
			return nil, err
		}
		if off = minus(on[name], wanted, true); len(off) == 0 {
			return true, nil
		}
	}
	return code(ctx, c, false, append([]string{"rc-update", "delete", name}, off...)...)
}

func enabled(ctx context.Context, c *modules.Call) (any, error) {
	on, err := enabledServices(ctx, c)
	if err != nil {
		return nil, err
	}
	have, ok := on[c.Str("name")]
	wanted, _ := levels(c)
	return ok && len(minus(wanted, have, false)) == 0, nil
}

func disabled(ctx context.Context, c *modules.Call) (any, error) {
	all, err := services(ctx, c)
	have, ok := all[c.Str("name")]
	return ok && len(have) == 0, err
}
