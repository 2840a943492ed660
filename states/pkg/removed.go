package pkg

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func removed(ctx context.Context, c *states.Call) (*states.Result, error) {
	return take(ctx, c, removedParams[:]).remove("remove", "removing")
}

func purged(ctx context.Context, c *states.Call) (*states.Result, error) {
	return take(ctx, c, removedParams[:]).remove("purge", "purging")
}

func (t *task) remove(action, doing string) (*states.Result, error) {
	t.more["saltenv"] = t.Saltenv()
	ret, err := t.uninstall(action)
	if modules.IsExecError(err) {
		return t.broken(err, "An error was encountered while "+doing+" package(s): "), nil
	}
	return ret, err
}

// uninstall implements _uninstall, for pkg.removed and pkg.purged.
func (t *task) uninstall(action string) (*states.Result, error) {
	name, version, list := t.Name(), t.val("version"), t.val("pkgs")
	v, err := t.exec("pkg_resource.parse_targets", []any{name, list}, t.with(map[string]any{"normalize": t.val("normalize"), "version": version}))
	if err != nil {
		var python *modules.PythonError
		if errors.As(err, &python) && python.Type == "MinionError" {
			return t.fail("An error was encountered while parsing targets: " + python.Msg)
		}
		return nil, err
	}
	parsed, _ := v.([]any)
	var params map[string]any
	if len(parsed) > 0 {
		params, _ = parsed[0].(map[string]any)
	}
	targets, ret, err := t.removable(name, version, list)
	if err != nil {
		return nil, err
	}
	if ret != nil && action != "purge" {
		return ret, nil
	}
	leftovers := func() (map[string]any, error) { return t.versions(t.with(map[string]any{"removed": true})) }
	if action == "purge" {
		old, err := leftovers()
		if err != nil {
			return nil, err
		}
		for _, name := range texts(params) {
			if _, ok := old[name]; ok {
				targets = append(targets, name)
			}
		}
	}
	slices.Sort(targets)
	ret = t.Result()
	if targets == nil {
		ret.Comment = "None of the targeted packages are installed"
		if action == "purge" {
			ret.Comment += " or partially installed"
		}
		return ret.As(states.True, ret.Comment)
	}
	if t.Test() {
		for _, name := range targets {
			ret.Changes[name] = map[string]any{"new": action + "d", "old": ""}
		}
		return ret.As(states.None, "The following packages will be "+action+"d: "+strings.Join(targets, ", ")+".")
	}
	changes, err := t.exec("pkg."+action, []any{name}, t.with(map[string]any{"pkgs": list, "version": version, "split_arch": false}))
	if err != nil {
		return nil, err
	}
	setChanges(ret, changes)
	failed, err := t.remaining(params)
	if err != nil {
		return nil, err
	}
	if action == "purge" {
		rest, err := leftovers()
		if err != nil {
			return nil, err
		}
		for _, name := range texts(params) {
			if _, ok := rest[name]; ok {
				failed = append(failed, name)
			}
		}
	}
	if failed != nil {
		slices.Sort(failed)
		return ret.As(states.False, "The following packages failed to "+action+": "+strings.Join(failed, ", ")+".")
	}
	absent := slices.DeleteFunc(texts(params), func(name string) bool { return slices.Contains(targets, name) })
	if len(absent) == 0 {
		return ret.As(states.True, "All targeted packages were "+action+"d.")
	}
	return ret.As(states.True, "The following packages were not installed: "+strings.Join(absent, ", ")+
		" The following packages were "+action+"d: "+strings.Join(targets, ", ")+".")
}

// remaining returns the packages that are still installed.
func (t *task) remaining(params map[string]any) ([]string, error) {
	now, err := t.versions(t.more)
	if err != nil {
		return nil, err
	}
	byVersion := slices.Contains([]any{"Suse", "RedHat", "Windows"}, t.Grain("os_family"))
	var failed []string
	for _, name := range texts(params) {
		have, ok := now[name]
		version := params[name]
		switch {
		case !ok:
		case !byVersion || !pytext.Truth(version):
			failed = append(failed, name)
		case slices.Contains(texts(have), pytext.Str(version)):
			failed = append(failed, name+"-"+pytext.Str(version))
		}
	}
	return failed, nil
}

// removable returns the installed packages to remove (_find_remove_targets). If it returns a result, the state ends
// with it.
func (t *task) removable(name string, version, list any) ([]string, *states.Result, error) {
	current, err := t.versions(t.more)
	if err != nil {
		return nil, nil, err
	}
	var all wanted
	if pytext.Truth(list) {
		if all, err = t.pack(list, t.is("normalize")); err != nil {
			return nil, nil, err
		}
		if all == nil {
			ret, err := t.fail("Invalidly formatted pkgs parameter. See minion log.")
			return nil, ret, err
		}
	} else {
		called, err := t.normal(name)
		if err != nil {
			return nil, nil, err
		}
		all = wanted{{Name: called, Version: version}}
	}
	spec := false
	var targets, problems []string
	for _, d := range all {
		have := texts(current[d.Name])
		if len(have) == 0 {
			continue
		}
		clean, err := t.exec("pkg_resource.version_clean", []any{d.Version}, nil)
		if err != nil {
			return nil, nil, err
		}
		if clean == nil {
			targets = append(targets, d.Name)
			continue
		}
		spec = true
		ok, err := t.fulfils(have, d.Version, t.val("ignore_epoch"), false)
		if modules.IsExecError(err) {
			problems = append(problems, states.ErrorText(err))
		} else if err != nil {
			return nil, nil, err
		}
		if ok {
			targets = append(targets, d.Name)
		}
	}
	ret := t.Result()
	if problems != nil {
		ret.Comment = strings.Join(problems, " ")
		return nil, ret, nil
	}
	if targets == nil {
		ret.Result, ret.Comment = states.True, "All specified packages are already absent"
		if spec {
			ret.Comment = "All specified packages (matching specified versions) are already absent"
		}
		return nil, ret, nil
	}
	return targets, nil, nil
}
