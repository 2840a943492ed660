package aptpkg

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
)

func hold(ctx context.Context, c *modules.Call) (any, error) {
	names, err := pkglist.Held(c)
	if err != nil {
		return nil, err
	}
	return keep(ctx, c, names, true)
}

func unhold(ctx context.Context, c *modules.Call) (any, error) {
	names, err := pkglist.Held(c)
	if err != nil {
		return nil, err
	}
	return keep(ctx, c, names, false)
}

// keep holds packages or lets them go.
func keep(ctx context.Context, c *modules.Call, names []string, on bool) (map[string]any, error) {
	ret := map[string]any{}
	for _, name := range names {
		have, err := selections(ctx, c, name)
		if err != nil {
			return nil, err
		}
		one := map[string]any{"name": name, "changes": map[string]any{}, "result": false, "comment": ""}
		ret[name] = one
		isHeld := len(have["hold"]) > 0
		state, test, done, already := "install", "is set not to be held", "is no longer being held", "is already set not to be held"
		if on {
			state, test, done, already = "hold", "is set to be held", "is now being held", "is already set to be held"
		}
		switch {
		case !on && len(have) == 0:
			one["comment"] = "Package " + name + " does not have a state."
		case isHeld == on:
			one["result"], one["comment"] = true, "Package "+name+" "+already+"."
		case pytext.Truth(c.Opt("test")):
			one["result"], one["comment"] = nil, "Package "+name+" "+test+"."
		default:
			set, err := selectAll(ctx, c, []choice{{state, []string{name}}})
			if err != nil {
				return nil, err
			}
			change, ok := set[name]
			if !ok {
				return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(name)}
			}
			one["changes"], one["result"], one["comment"] = change, true, "Package "+name+" "+done+"."
		}
	}
	return ret, nil
}

// selections returns the packages that match a pattern, by dpkg's selection state.
func selections(ctx context.Context, c *modules.Call, pattern string) (pkglist.List, error) {
	if pattern == "" {
		pattern = "*"
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"dpkg", "--get-selections", pattern}})
	if err != nil {
		return nil, err
	}
	return parseSelections(strings.Split(out.Stdout, "\n"))
}

func parseSelections(lines []string) (pkglist.List, error) {
	list := pkglist.List{}
	for _, line := range lines {
		if line == "" {
			continue
		}
		words := strings.Fields(line)
		switch {
		case len(words) < 2:
			return nil, &modules.PythonError{Type: "ValueError", Msg: "not enough values to unpack (expected 2, got " + string(rune('0'+len(words))) + ")"}
		case len(words) > 2:
			return nil, &modules.PythonError{Type: "ValueError", Msg: "too many values to unpack (expected 2)"}
		}
		list.Add(words[1], words[0])
	}
	return list, nil
}

func getSelections(ctx context.Context, c *modules.Call) (any, error) {
	list, err := selections(ctx, c, c.Str("pattern"))
	if err != nil {
		return nil, err
	}
	if state := c.Str("state"); state != "" {
		return map[string]any{state: nested.Anys(list[state])}, nil
	}
	return list.Plain(true), nil
}

// choice is a state and the packages that are to have it.
type choice struct {
	state string
	names []string
}

func setSelections(ctx context.Context, c *modules.Call) (any, error) {
	path, selection := c.Str("path"), c.Value("selection")
	if path == "" && !pytext.Truth(selection) {
		return map[string]any{}, nil
	}
	if path != "" && pytext.Truth(selection) {
		return nil, modules.Usagef("The 'selection' and 'path' arguments to pkg.set_selections are mutually exclusive, and cannot be " +
			"specified together")
	}
	wanted, err := choices(ctx, c, path, selection)
	if err != nil || len(wanted) == 0 {
		return map[string]any{}, err
	}
	var bad []string
	for _, w := range wanted {
		if !slices.Contains([]string{"install", "hold", "deinstall", "purge"}, w.state) {
			bad = append(bad, w.state)
		}
	}
	if bad != nil {
		return nil, modules.Usagef("Invalid state(s): %s", strings.Join(bad, ", "))
	}
	if c.Bool("clear") && !pytext.Truth(c.Opt("test")) {
		out, err := call(ctx, c, apt{noScope: true}, "dpkg", "--clear-selections")
		if err != nil {
			return nil, err
		}
		if out.Retcode != 0 {
			return nil, modules.Errorf("Running dpkg --clear-selections failed: %s", out.Stderr)
		}
	}
	return selectAll(ctx, c, wanted)
}

// choices reads the wanted states from a file or from the argument.
func choices(ctx context.Context, c *modules.Call, path string, selection any) ([]choice, error) {
	if path != "" {
		cached, err := pkglist.Cache(ctx, c, path, c.Str("saltenv"))
		if err != nil {
			return nil, err
		}
		b, err := os.ReadFile(c.Path(cached))
		if err != nil {
			return nil, modules.OSError(err)
		}
		var lines []string
		for _, line := range pytext.SplitLines(string(b), false) {
			if line == "" {
				line = " " // as Salt, which keeps the line's end
			}
			lines = append(lines, line)
		}
		list, err := parseSelections(lines)
		return sorted(list), err
	}
	if text, ok := selection.(string); ok {
		v, err := yaml.Parse([]byte(text), "<unicode string>")
		if err != nil {
			return nil, modules.Usagef("Improperly-formatted selection: %s", err)
		}
		selection = v
	}
	m, ok := selection.(map[string]any)
	if !ok {
		if !pytext.Truth(selection) {
			return nil, nil
		}
		return nil, modules.NoAttribute(selection, "items")
	}
	list := pkglist.List{}
	for state, v := range m {
		list[state] = nil
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				list.Add(state, pytext.Str(x))
			}
		case string:
			list.Add(state, v)
		}
	}
	return sorted(list), nil
}

func sorted(list pkglist.List) []choice {
	var out []choice
	for state, names := range list {
		out = append(out, choice{state, names})
	}
	sorting.Stable(out, func(a, b choice) int { return strings.Compare(a.state, b.state) })
	return out
}

// selectAll sets dpkg's selection state of packages, and returns the old and new state of those that changed.
func selectAll(ctx context.Context, c *modules.Call, wanted []choice) (map[string]any, error) {
	now, err := selections(ctx, c, "")
	if err != nil {
		return nil, err
	}
	state := map[string]any{}
	for s, names := range now {
		for _, n := range names {
			state[n] = s
		}
	}
	ret := map[string]any{}
	for _, w := range wanted {
		for _, name := range w.names {
			if state[name] == any(w.state) || pytext.Truth(c.Opt("test")) {
				continue
			}
			out, err := call(ctx, c, apt{noScope: true, stdin: name + " " + w.state}, "dpkg", "--set-selections")
			if err != nil {
				return nil, err
			}
			if out.Retcode != 0 {
				c.Logger().Error("failed to set state for package", "state", w.state, "package", name)
				continue
			}
			ret[name] = map[string]any{"old": state[name], "new": w.state}
		}
	}
	return ret, nil
}
