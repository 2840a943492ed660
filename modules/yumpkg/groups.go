package yumpkg

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/lazyre"
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/rpm"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/modkit/systemd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

func kinds() []string { return []string{"mandatory", "optional", "default", "conditional"} }

func groupList(ctx context.Context, c *modules.Call) (any, error) {
	ret := map[string][]string{"installed": nil, "available": nil, "installed environments": nil, "available environments": nil}
	languages := map[string]any{}
	answer := func() any {
		m := map[string]any{"available languages": languages}
		for k, v := range ret {
			m[k] = nested.Anys(v)
		}
		return m
	}
	cmd := []string{manager(c), "grouplist", "hidden"}
	if manager(c) == "dnf5" {
		cmd = []string{"dnf5", "group", "list", "--hidden"}
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: cmd})
	if err != nil {
		return nil, err
	}
	key := ""
	for _, line := range out.Lines() {
		low := strings.ToLower(line)
		if manager(c) == "dnf5" {
			if cols := strings.Fields(line); len(cols) >= 3 {
				switch strings.ToLower(cols[len(cols)-1]) {
				case "yes":
					ret["installed"] = append(ret["installed"], cols[0])
				case "no":
					ret["available"] = append(ret["available"], cols[0])
				}
			}
			continue
		}
		if low == "done" {
			break
		}
		section := map[string]string{
			"installed groups:": "installed", "available groups:": "available", "installed environment groups:": "installed environments",
			"available environment groups:": "available environments", "available language groups:": "available languages",
		}[low]
		line = strings.TrimSpace(line)
		switch {
		case section != "" && section != key:
			key = section
		case key == "":
		case key == "available languages":
			if m := languageLine.Get().FindStringSubmatch(line); m != nil {
				languages[line] = map[string]any{"name": m[1], "language": m[2]}
			}
		default:
			ret[key] = append(ret[key], line)
		}
	}
	return answer(), nil
}

var languageLine = lazyre.Regexp{Expr: `^(.+) \[(.+)\]`}

// group is the manager's description of a group of packages, or of a group of groups.
type group struct {
	kind, name, id, description string
	members                     map[string][]string
}

func (g *group) plain() map[string]any {
	m := map[string]any{"group": orNone(g.name), "id": orNone(g.id), "description": g.description}
	if g.kind != "" {
		m["type"] = g.kind
	}
	for _, k := range kinds() {
		list := slices.Clone(g.members[k])
		slices.Sort(list)
		m[k] = nested.Anys(slices.Compact(list))
	}
	return m
}

func orNone(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func groupInfo(ctx context.Context, c *modules.Call) (any, error) {
	done := pkglist.SplitInput(c.Value("ignore_groups"))
	g, err := readGroup(ctx, c, c.Str("name"), c.Bool("expand"), &done, groupOptions(c.Keywords), 0)
	if err != nil {
		return nil, err
	}
	return g.plain(), nil
}

func groupOptions(kw map[string]any) []string {
	return options(map[string]any{"fromrepo": kw["fromrepo"], "enablerepo": kw["enablerepo"], "disablerepo": kw["disablerepo"]})
}

// header is "Mandatory Packages:", with dnf5 the first member behind the colon.
var header = lazyre.Regexp{Expr: `(?i)^(mandatory|optional|default|conditional) (?:groups|packages)\s*:\s*(.*?)$`}

func readGroup(ctx context.Context, c *modules.Call, name string, expand bool, done *[]string, opts []string, depth int) (*group, error) {
	if depth > 20 {
		return nil, modules.Errorf("Group '%s' is nested too deeply", name)
	}
	cmd := append([]string{manager(c), "--quiet"}, opts...)
	if manager(c) == "dnf5" {
		cmd = append(cmd, "group", "info", name)
	} else {
		cmd = append(cmd, "groupinfo", name)
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: cmd})
	if err != nil {
		return nil, err
	}
	facts := map[string]string{}
	for _, line := range out.Lines() {
		if key, value, ok := strings.Cut(line, ":"); ok && !strings.Contains(value, ":") {
			facts[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}
	first := func(keys ...string) string {
		for _, k := range keys {
			if facts[k] != "" {
				return facts[k]
			}
		}
		return ""
	}
	g := &group{
		name: first("environment group", "group", "name"), id: first("environment-id", "group-id", "id"),
		description: facts["description"], members: map[string][]string{},
	}
	if _, ok := facts["environment group"]; ok {
		g.kind = "environment group"
	} else if _, ok := facts["group"]; ok {
		g.kind = "package group"
	} else if _, ok := facts["name"]; ok {
		g.kind = "package group"
	}
	if g.name == "" && g.id == "" {
		return nil, modules.Errorf("Group '%s' not found", name)
	}
	kind := ""
	for _, line := range out.Lines() {
		member := strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"))
		if m := header.Get().FindStringSubmatch(member); m != nil {
			kind, member = strings.ToLower(m[1]), m[2]
		}
		if kind == "" || member == "" {
			continue
		}
		if !expand || g.kind != "environment group" {
			g.members[kind] = append(g.members[kind], member)
			continue
		}
		if slices.Contains(*done, member) {
			continue
		}
		*done = append(*done, member)
		inner, err := readGroup(ctx, c, "@"+member, true, done, nil, depth+1)
		if err != nil {
			inner, err = readGroup(ctx, c, member, true, done, nil, depth+1)
		}
		if err != nil {
			return nil, err
		}
		for k, list := range inner.members {
			g.members[k] = append(g.members[k], list...)
		}
	}
	return g, nil
}

func groupDiff(ctx context.Context, c *modules.Call) (any, error) {
	have, err := listing(ctx, c)
	if err != nil {
		return nil, err
	}
	var done []string
	g, err := readGroup(ctx, c, c.Str("name"), true, &done, groupOptions(c.Keywords), 0)
	if err != nil {
		return nil, err
	}
	ret, all := map[string]any{}, g.plain()
	for _, k := range kinds() {
		in, out := []any{}, []any{}
		for _, member := range all[k].([]any) {
			if _, ok := have[member.(string)]; ok {
				in = append(in, member)
			} else {
				out = append(out, member)
			}
		}
		ret[k] = map[string]any{"installed": in, "not installed": out}
	}
	return ret, nil
}

func groupInstall(ctx context.Context, c *modules.Call) (any, error) {
	var groups []string
	switch v := c.Value("name").(type) {
	case string:
		groups = strings.Split(v, ",")
	case []any:
		groups = pkglist.SplitInput(v)
	default:
		if pytext.Truth(v) {
			return nil, modules.Usagef("'groups' must be a list")
		}
	}
	if len(groups) == 0 {
		return nil, modules.Usagef("no groups specified")
	}
	lists := map[string][]string{}
	for _, name := range []string{"skip", "include"} {
		switch v := c.Value(name).(type) {
		case string, []any:
			lists[name] = pkglist.SplitInput(v)
		default:
			return nil, modules.Usagef("'%s' must be a list", name)
		}
	}
	have, err := listing(ctx, c)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range groups {
		g, err := readGroup(ctx, c, name, false, new([]string), nil, 0)
		if err != nil {
			return nil, err
		}
		names = append(names, g.members["mandatory"]...)
		names = append(names, slices.DeleteFunc(slices.Clone(g.members["default"]), func(n string) bool { return slices.Contains(lists["skip"], n) })...)
	}
	names = append(names, lists["include"]...)
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(n string) bool { _, ok := have[n]; return ok })
	if len(names) == 0 {
		return map[string]any{}, nil
	}
	kw := pkglist.WithoutJob(c.Keywords)
	kw["pkgs"] = nested.Anys(names)
	return c.ExecKw(ctx, "pkg.install", nil, kw)
}

func download(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(downloadAll(ctx, c, pkglist.Names(c)))
}

func downloadAll(ctx context.Context, c *modules.Call, names []string) (map[string]any, error) {
	if c.Which("yumdownloader") == "" {
		return nil, modules.Errorf("'yumdownloader' command not available")
	}
	if len(names) == 0 {
		return nil, modules.Usagef("No packages were specified")
	}
	dir := filepath.Join("/var/cache", manager(c), "packages")
	if err := os.MkdirAll(c.Path(dir), 0o755); err != nil {
		return nil, modules.OSError(err)
	}
	files := func() ([]string, error) {
		entries, err := os.ReadDir(c.Path(dir))
		if err != nil {
			return nil, modules.OSError(err)
		}
		var out []string
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return out, nil
	}
	old, err := files()
	if err != nil {
		return nil, err
	}
	owner := func(file string) string {
		for _, n := range names {
			if strings.HasPrefix(file, n+"-") {
				return n
			}
		}
		return ""
	}
	for _, f := range old {
		if owner(f) != "" {
			if err := os.Remove(c.Path(filepath.Join(dir, f))); err != nil {
				c.Logger().Error("Cannot remove a cached package", "path", f, "err", err)
			}
		}
	}
	cmd := append([]string{"yumdownloader", "-q", "--destdir=" + dir}, names...)
	if _, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: cmd, Merge: true}); err != nil {
		return nil, err
	}
	now, err := files()
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, f := range now {
		if n := owner(f); n != "" && strings.HasSuffix(f, ".rpm") {
			ret[n] = filepath.Join(dir, f)
		}
	}
	if len(ret) == 0 {
		return nil, modules.Errorf("Unable to download any of the following packages: %s", strings.Join(names, ", "))
	}
	if failed := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return ret[n] != nil }); len(failed) > 0 {
		ret["_error"] = "The following package(s) failed to download: " + strings.Join(failed, ", ")
	}
	return ret, nil
}

func diff(ctx context.Context, c *modules.Call) (any, error) {
	return rpm.Diff(ctx, c, func(names []string) (map[string]any, error) { return downloadAll(ctx, c, names) })
}

var patchLine = lazyre.Regexp{Expr: `^([i|\s])? ?([^\s]+) +([^\s]+) +([^\s]+)`}

// patches returns the advisories, each with its packages.
func patches(ctx context.Context, c *modules.Call, installedOnly bool) (map[string]any, error) {
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{manager(c), "--quiet", "updateinfo", "list", "all"}})
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, line := range strings.Split(out.Stdout, "\n") {
		m := patchLine.Get().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		one, _ := ret[m[2]].(map[string]any)
		if one == nil {
			one = map[string]any{"installed": m[1] == "i", "summary": []any{}}
			ret[m[2]] = one
		}
		one["summary"] = append(one["summary"].([]any), m[4])
		if m[1] != "i" {
			one["installed"] = false
		}
	}
	if installedOnly {
		maps.DeleteFunc(ret, func(_ string, v any) bool { return v.(map[string]any)["installed"] != any(true) })
	}
	return ret, nil
}

func listPatches(ctx context.Context, c *modules.Call) (any, error) {
	if c.Bool("refresh") {
		if _, err := refresh(ctx, c, nil, true); err != nil {
			return nil, err
		}
	}
	return patches(ctx, c, false)
}

func listInstalledPatches(ctx context.Context, c *modules.Call) (any, error) {
	return patches(ctx, c, true)
}

func servicesNeedRestart(ctx context.Context, c *modules.Call) (any, error) {
	if !isDNF(c) {
		return nil, modules.Errorf("dnf or dnf5 is required to list outdated services.")
	}
	if !systemd.Booted(c.Env) {
		return nil, modules.Errorf("systemd is required to list outdated services.")
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{manager(c), "--quiet", "needs-restarting"}})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, line := range strings.Split(out.Stdout, "\n") {
		if pid, _, ok := strings.Cut(line, ":"); ok {
			if name := systemd.ServiceOf(ctx, c, strings.TrimSpace(pid)); name != "" {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return nested.Anys(slices.Compact(names)), nil
}
