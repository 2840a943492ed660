package pkg

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func groupInstalled(ctx context.Context, c *states.Call) (*states.Result, error) {
	t := take(ctx, c, []modules.Param{name, {Name: "skip"}, {Name: "include"}})
	if !t.has("pkg.group_diff") {
		return t.fail("pkg.group_install not available for this platform")
	}
	for _, key := range [...]string{"skip", "include"} {
		if _, ok := t.val(key).([]any); !ok && t.val(key) != nil {
			return t.fail(key + " must be formatted as a list")
		}
	}
	skip, include := texts(t.val("skip")), texts(t.val("include"))
	name := c.Name()
	v, err := t.exec("pkg.group_diff", []any{name}, maps.Collect(func(yield func(string, any) bool) {
		for k, v := range t.more {
			if !strings.HasPrefix(k, "__") && !yield(k, v) {
				return
			}
		}
	}))
	var typ *modules.TypeError
	var usage *modules.UsageError
	switch {
	case err == nil:
	case modules.IsExecError(err), errors.As(err, &typ), errors.As(err, &usage):
		if strings.Contains(states.ErrorText(err), "unexpected keyword argument") {
			return t.fail("Repo options are not supported on this platform")
		}
		return t.fail("An error was encountered while installing/updating group '" + name + "': " + states.ErrorText(err) + ".")
	default:
		return nil, err
	}
	diff, _ := v.(map[string]any)
	part := func(kind, state string) []string {
		m, _ := diff[kind].(map[string]any)
		return texts(m[state])
	}
	missing := part("mandatory", "not installed")
	mandatory := append(part("mandatory", "installed"), missing...)
	if invalid := slices.DeleteFunc(mandatory, func(p string) bool { return !slices.Contains(skip, p) }); len(invalid) > 0 {
		return t.fail("The following mandatory packages cannot be skipped: " + strings.Join(invalid, ", "))
	}
	targets := slices.Clone(missing)
	for _, p := range part("default", "not installed") {
		if !slices.Contains(skip, p) {
			targets = append(targets, p)
		}
	}
	targets = append(targets, include...)
	ret := c.Result()
	if len(targets) == 0 {
		return ret.As(states.True, "Group '"+name+"' is already installed")
	}
	some := len(part("mandatory", "installed"))+len(part("default", "installed"))+len(part("optional", "installed")) > 0
	if c.Test() {
		if some {
			return ret.As(states.None, "Group '"+name+"' is partially installed and will be updated")
		}
		return ret.As(states.None, "Group '"+name+"' will be installed")
	}
	changes, err := t.exec("pkg.install", nil, t.with(map[string]any{"pkgs": nested.Anys(targets)}))
	if modules.IsExecError(err) {
		return t.broken(err, "An error was encountered while installing/updating group '"+name+"': "), nil
	}
	if err != nil {
		return nil, err
	}
	setChanges(ret, changes)
	v, err = t.exec("pkg.list_pkgs", nil, t.more)
	if err != nil {
		return nil, err
	}
	now, _ := v.(map[string]any)
	required := append(missing, include...)
	if failed := slices.DeleteFunc(required, func(p string) bool { return now[p] != nil }); len(failed) > 0 {
		return ret.As(states.False, "Failed to install the following packages: "+strings.Join(failed, ", "))
	}
	if some {
		return ret.As(states.True, "Group '"+name+"' was updated")
	}
	return ret.As(states.True, "Group '"+name+"' was installed")
}

// beaconOf is the beacon that watches the packages of a state.
func modBeacon(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	switch sfun := pytext.Str(c.Keywords["sfun"]); {
	case sfun != "installed" && sfun != "removed":
		return ret.As(states.False, "pkg."+sfun+" does not work with the mod_beacon state function")
	case !pytext.Truth(c.Keywords["beacon"]):
		return ret.As(states.True, "Not adding beacon.")
	}
	list, ok := c.Keywords["pkgs"]
	if !ok {
		list = []any{c.Name()}
	}
	return c.State(ctx, "beacon.present", map[string]any{"name": "beacon_pkg_" + c.Name(), "pkgs": list, "interval": int64(60), "beacon_module": "pkg"})
}
