package zypperpkg

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

const locksFile = "/etc/zypp/locks"

// lock is a lock on what is called name.
type lock struct {
	name  string
	about map[string]any
}

func locks(c *modules.Call, root string) []lock {
	b, err := os.ReadFile(c.Path(filepath.Join("/", root, locksFile)))
	if err != nil {
		return nil
	}
	var all []lock
	for _, part := range strings.Split(string(b), "\n\n") {
		about := map[string]any{}
		for _, line := range strings.Split(part, "\n") {
			if key, value, ok := strings.Cut(line, ":"); ok {
				about[pytext.Strip(key)] = pytext.Strip(value)
			}
		}
		name, _ := about["solvable_name"].(string)
		if name == "" {
			continue
		}
		delete(about, "solvable_name")
		if i := slices.IndexFunc(all, func(l lock) bool { return l.name == name }); i >= 0 {
			all[i].about = about
		} else {
			all = append(all, lock{name, about})
		}
	}
	return all
}

func listLocks(_ context.Context, c *modules.Call) (any, error) {
	ret := map[string]any{}
	for _, l := range locks(c, rootOf(c.Value("root"))) {
		ret[l.name] = l.about
	}
	return ret, nil
}

func cleanLocks(ctx context.Context, c *modules.Call) (any, error) {
	root := rootOf(c.Value("root"))
	if _, err := os.Stat(c.Path(filepath.Join("/", root, locksFile))); err != nil {
		return map[string]any{"removed": int64(0)}, nil
	}
	out, err := zypper{root: root, xml: true}.call(ctx, c, "cl")
	if err != nil {
		return nil, err
	}
	for _, n := range out.doc.all("message") {
		if text := strings.ToLower(n.Text); strings.HasPrefix(text, "removed") {
			words := strings.Split(text, " ")
			if len(words) < 2 {
				return nil, modules.IndexError()
			}
			return map[string]any{"removed": words[1]}, nil
		}
	}
	return map[string]any{"removed": int64(0)}, nil
}

func hold(ctx context.Context, c *modules.Call) (any, error) { return holding(ctx, c, true) }

func unhold(ctx context.Context, c *modules.Call) (any, error) { return holding(ctx, c, false) }

// targets returns the packages, with their versions, that a call of hold or unhold is for.
func targets(c *modules.Call) ([]pkglist.Target, error) {
	name, pkgs := c.Value("name"), c.Value("pkgs")
	if !pytext.Truth(name) && !pytext.Truth(pkgs) {
		return nil, modules.Errorf("Name or packages must be specified.")
	}
	list := []any{name}
	if pytext.Truth(pkgs) {
		var ok bool
		if list, ok = pkgs.([]any); !ok {
			return nil, &modules.TypeError{Msg: "'" + modules.TypeName(pkgs) + "' object is not iterable"}
		}
	}
	var out []pkglist.Target
	for _, x := range list {
		t := pkglist.Target{Name: pytext.Str(x)}
		if m, ok := x.(map[string]any); ok {
			for _, k := range keys(m)[:min(1, len(m))] {
				t = pkglist.Target{Name: k, Version: m[k]}
			}
		}
		out = append(out, t)
	}
	return out, nil
}

func holding(ctx context.Context, c *modules.Call, on bool) (any, error) {
	list, err := targets(c)
	if err != nil {
		return nil, err
	}
	root := rootOf(c.Value("root"))
	have, ret := locks(c, root), map[string]any{}
	var names []string
	for _, t := range list {
		one := map[string]any{"name": t.Name, "changes": map[string]any{}, "result": true, "comment": ""}
		ret[t.Name] = one
		i := slices.IndexFunc(have, func(l lock) bool { return l.name == t.Name && len(l.about) > 0 })
		version := ""
		if i >= 0 {
			version = strings.TrimLeft(pytext.Str(orEmpty(have[i].about["version"])), "= ")
		}
		switch {
		case on && i >= 0:
			one["comment"] = "Package " + t.Name + " is already set to be held."
		case on:
			one["changes"] = map[string]any{"new": "hold", "old": ""}
			one["comment"] = "Package " + t.Name + " is now being held."
			names = append(names, spelled(t.Name, t.Version))
		case i < 0:
			one["comment"] = "Package " + t.Name + " was already unheld."
		case pytext.Truth(t.Version) && version != pytext.Str(t.Version):
			one["result"] = false
			one["comment"] = "Unable to unhold package " + t.Name + " as it is held with the other version."
		default:
			one["changes"] = map[string]any{"new": "", "old": "hold"}
			one["comment"] = "Package " + t.Name + " is no longer held."
			names = append(names, spelled(t.Name, version))
		}
	}
	if names == nil {
		return ret, nil
	}
	verb := "rl"
	if on {
		verb = "al"
	}
	_, err = zypper{root: root}.call(ctx, c, append([]string{verb}, names...)...)
	return ret, err
}

func orEmpty(v any) any {
	if v == nil {
		return ""
	}
	return v
}

func spelled(name string, version any) string {
	if !pytext.Truth(version) {
		return name
	}
	return name + "=" + pytext.Str(version)
}

func listHolds(ctx context.Context, c *modules.Call) (any, error) {
	root := rootOf(c.Value("root"))
	var pattern *regexp.Regexp
	if p := c.Value("pattern"); pytext.Truth(p) {
		re, err := regexp.Compile(`\A(?:` + pytext.Str(p) + `-\S+)`)
		if err != nil {
			return nil, &modules.PythonError{Type: "error", Msg: err.Error()}
		}
		pattern = re
	}
	var names []string
	for _, l := range locks(c, root) {
		if kind, ok := l.about["type"]; ok && kind != "package" {
			continue
		}
		cmd := []string{"search"}
		if !strings.Contains(l.name, "*") {
			cmd = append(cmd, "--match-exact")
		}
		found, err := search(ctx, c, root, append(cmd, "--case-sensitive", "--installed-only", "--details"), l.name)
		if err != nil {
			continue
		}
		for _, n := range found {
			if !slices.Contains(names, n.attr("name")) {
				names = append(names, n.attr("name"))
			}
		}
	}
	ret := []any{}
	for _, name := range names {
		v, err := c.ExecKw(ctx, "lowpkg.info", []any{name}, map[string]any{"root": c.Value("root"), "attr": "edition,epoch", "all_versions": true})
		if err != nil {
			return nil, err
		}
		m, _ := v.(map[string]any)
		for _, pkg := range keys(m) {
			list, _ := m[pkg].([]any)
			for _, x := range list {
				info, _ := x.(map[string]any)
				epoch, ok := info["epoch"]
				if !ok {
					epoch = int64(0)
				}
				text := pkg + "-" + pytext.Str(epoch) + ":" + pytext.Str(info["edition"]) + ".*"
				if !c.Bool("full") {
					text = pkg
				}
				if !slices.Contains(ret, any(text)) && (pattern == nil || pattern.MatchString(text)) {
					ret = append(ret, text)
				}
			}
		}
	}
	return ret, nil
}
