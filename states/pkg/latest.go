package pkg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func latest(ctx context.Context, c *states.Call) (*states.Result, error) {
	t := take(ctx, c, latestParams[:])
	refresh := any(t.refresh())
	list := t.val("pkgs")
	desired := []any{c.Name()}
	switch {
	case pytext.Truth(t.more["sources"]):
		return t.fail(`The "sources" parameter is not supported.`)
	case pytext.Truth(list):
		w, err := t.pack(list, true)
		if err != nil {
			return nil, err
		}
		if desired = nested.Anys(w.names()); len(w) == 0 {
			return t.fail(`Invalidly formatted "pkgs" parameter. See minion log.`)
		}
	case empty(list):
		return c.Result().As(states.True, "No packages to install provided")
	}
	t.more["saltenv"] = c.Saltenv()
	v, refresh, err := t.resolve(desired, refresh)
	if err != nil {
		return nil, err
	}
	names := texts(v)
	avail, err := t.about("pkg.latest_version", names, map[string]any{"fromrepo": t.val("fromrepo"), "refresh": refresh})
	if modules.IsExecError(err) {
		return t.fail("An error was encountered while checking the newest available version of package(s): " + states.ErrorText(err))
	}
	if err != nil {
		return nil, err
	}
	current, err := t.about("pkg.version", names, nil)
	if modules.IsExecError(err) {
		return t.fail(states.ErrorText(err))
	}
	if err != nil {
		return nil, err
	}
	var targets wanted
	var problems []string
	for _, name := range names {
		switch {
		case pytext.Truth(avail[name]):
			targets.set(name, avail[name])
		case !pytext.Truth(current[name]):
			t.Logger().Error("No information found", "package", name)
			problems = append(problems, "No information found for '"+name+"'.")
		}
	}
	switch {
	case problems != nil:
		return t.fail(strings.Join(problems, " "))
	case targets == nil:
		return c.Result().As(states.True, allCurrent(names))
	}
	return t.upgrade(targets, upToDate(list, targets), current)
}

// about asks a function that answers with one value for one package and with a map for several.
func (t *task) about(fun string, names []string, kwargs map[string]any) (map[string]any, error) {
	v, err := t.exec(fun, nested.Anys(names), t.with(kwargs))
	if s, ok := v.(string); ok {
		return map[string]any{names[0]: s}, err
	}
	m, _ := v.(map[string]any)
	return m, err
}

func allCurrent(names []string) string {
	switch {
	case len(names) > 10:
		return fmt.Sprintf("All %d packages are up-to-date.", len(names))
	case len(names) > 1:
		return "All packages are up-to-date (" + strings.Join(slices.Sorted(slices.Values(names)), ", ") + ")."
	}
	return "Package " + names[0] + " is already up-to-date"
}

// upToDate returns the packages of the argument pkgs that need no upgrade.
func upToDate(list any, targets wanted) []string {
	var out []string
	for _, name := range texts(list) {
		if !targets.has(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (t *task) upgrade(targets wanted, current []string, versions map[string]any) (*states.Result, error) {
	ret := t.Result()
	if t.Test() {
		comments := []string{"The following packages would be installed/upgraded: " + strings.Join(slices.Sorted(slices.Values(targets.names())), ", ")}
		if n := len(current); n > 10 {
			comments = append(comments, fmt.Sprintf("%d packages are already up-to-date", n))
		} else if n > 0 {
			var parts []string
			for _, name := range current {
				v, ok := versions[name]
				if !ok {
					return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(name)}
				}
				parts = append(parts, name+" ("+pytext.Str(v)+")")
			}
			comments = append(comments, "The following packages are already up-to-date: "+strings.Join(parts, ", "))
		}
		m, err := t.installable(targets, versions)
		if err != nil {
			return nil, err
		}
		ret.Changes = m
		return ret.As(states.None, strings.Join(comments, "\n"))
	}
	v, err := t.exec("pkg.install", nil, t.with(map[string]any{"name": nil, "refresh": false, "fromrepo": t.val("fromrepo"),
		"skip_verify": t.val("skip_verify"), "pkgs": nested.Anys(targets.names())}))
	if modules.IsExecError(err) {
		return t.fail("An error was encountered while installing package(s): " + states.ErrorText(err))
	}
	if err != nil {
		return nil, err
	}
	setChanges(ret, v)
	changes, _ := v.(map[string]any)
	if len(changes) == 0 {
		return ret.As(states.False, unchanged(targets, current))
	}
	var failed, done, comments []string
	for _, d := range targets {
		m, _ := changes[d.Name].(map[string]any)
		if new := m["new"]; len(m) == 0 || new != nil && d.Version != "latest" &&
			!slices.Contains(strings.Split(pytext.Str(new), ","), pytext.Str(d.Version)) {
			failed = append(failed, d.Name)
		} else {
			done = append(done, d.Name)
		}
	}
	slices.Sort(failed)
	slices.Sort(done)
	if failed != nil {
		comments = append(comments, "The following packages failed to update: "+strings.Join(failed, ", "))
	}
	if done != nil {
		comments = append(comments, "The following packages were successfully installed/upgraded: "+strings.Join(done, ", "))
	}
	if n := len(current); n > 10 {
		comments = append(comments, fmt.Sprintf("%d packages were already up-to-date ", n))
	} else if n > 0 {
		comments = append(comments, "The following packages were already up-to-date: "+strings.Join(current, ", "))
	}
	return ret.As(states.OutcomeOf(failed == nil), strings.Join(comments, " "))
}

// unchanged returns the comment for an upgrade that changed nothing.
func unchanged(targets wanted, current []string) string {
	names := slices.Sorted(slices.Values(targets.names()))
	text := "Package " + names[0] + " failed to update."
	if n := len(names); n > 10 {
		text = fmt.Sprintf("%d targeted packages failed to update. See debug log for details.", n)
	} else if n > 1 {
		text = "The following targeted packages failed to update. See debug log for details: (" + strings.Join(names, ", ") + ")."
	}
	if n := len(current); n > 10 {
		text += fmt.Sprintf("%d packages were already up-to-date", n)
	} else if n > 0 {
		text += " The following packages were already up-to-date: " + strings.Join(current, ", ")
	}
	return text
}

func uptodate(ctx context.Context, c *states.Call) (*states.Result, error) {
	t := take(ctx, c, []modules.Param{name, {Name: "refresh", Default: false}, pkgs})
	if !t.has("pkg.list_upgrades") {
		return t.fail("State pkg.uptodate is not available")
	}
	if _, ok := t.val("refresh").(bool); !ok {
		return t.fail("refresh must be either True or False")
	}
	list, refresh, err := t.resolve(t.val("pkgs"), t.val("refresh"))
	if err != nil {
		return nil, err
	}
	expected, err := t.upgrades(list, refresh)
	if err != nil {
		return t.fail(states.ErrorText(err))
	}
	ret := c.Result()
	if len(expected) == 0 {
		return ret.As(states.True, "System is already up-to-date")
	}
	if c.Test() {
		ret.Changes = expected
		return ret.As(states.None, "System update will be performed")
	}
	v, err := t.exec("pkg.upgrade", nil, t.with(map[string]any{"refresh": refresh, "pkgs": list}))
	if modules.IsExecError(err) {
		return t.broken(err, "An error was encountered while updating packages: "), nil
	}
	if err != nil {
		return nil, err
	}
	setChanges(ret, v)
	var missing []string
	if _, ok := list.([]any); ok {
		for _, name := range slices.Sorted(maps.Keys(expected)) {
			if _, ok := ret.Changes[name]; !ok {
				missing = append(missing, name)
			}
		}
	}
	if missing != nil {
		return ret.As(states.False, "The following package(s) failed to update: "+strings.Join(missing, ", "))
	}
	return ret.As(states.True, "Upgrade ran successfully")
}

// upgrades returns the packages that an upgrade would change, limited to list if that is given.
func (t *task) upgrades(list, refresh any) (map[string]any, error) {
	v, err := t.exec("pkg.list_upgrades", nil, t.with(map[string]any{"refresh": refresh}))
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("'" + modules.TypeName(v) + "' object has no attribute 'items'")
	}
	out := map[string]any{}
	only, chosen := list.([]any)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		old, err := t.exec("pkg.version", []any{name}, t.more)
		if err != nil {
			return nil, err
		}
		if !chosen || slices.Contains(only, any(name)) {
			out[name] = map[string]any{"new": m[name], "old": old}
		}
	}
	return out, nil
}
