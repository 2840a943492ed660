package zypperpkg

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/rpm"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// listings are the lists of a job, by what they are of.
type listings map[string]rpm.Installed

// listing runs rpm once per job. kinds are what to list besides packages: products, patterns, patches.
func listing(ctx context.Context, c *modules.Call, root string, kinds []string, fresh bool) (rpm.Installed, error) {
	all, err := pkglist.Kept(c, "pkg.list_pkgs", func() (listings, error) { return listings{}, nil })
	if err != nil {
		return nil, err
	}
	key := root + "\x00" + strings.Join(kinds, "\x00")
	if have, ok := all[key]; ok && !fresh {
		return have, nil
	}
	have, err := rpm.List(ctx, c, root)
	if err != nil {
		return nil, err
	}
	for name := range have {
		if strings.HasPrefix(name, "gpg-pubkey") {
			delete(have, name)
		}
	}
	for _, kind := range kinds {
		if err := more(ctx, c, have, root, kind); err != nil {
			return nil, err
		}
	}
	all[key] = have
	return have, nil
}

// more adds the installed products, patterns or patches to a list.
func more(ctx context.Context, c *modules.Call, have rpm.Installed, root, kind string) error {
	one := func(epoch, version, release, arch any) []any {
		return []any{map[string]any{
			"epoch": epoch, "version": version, "release": release, "arch": arch, "install_date": nil, "install_date_time_t": nil,
		}}
	}
	var names []string
	switch kind {
	case "product":
		list, err := products(ctx, c, root, false)
		if err != nil {
			return err
		}
		for _, x := range list {
			p := x.(map[string]any)
			for _, key := range [...]string{"name", "epoch", "version", "release", "arch"} {
				if _, ok := p[key]; !ok {
					return &modules.PythonError{Type: "KeyError", Msg: "'" + key + "'"}
				}
			}
			have["product:"+pytext.Str(p["name"])] = one(p["epoch"], p["version"], p["release"], p["arch"])
		}
		return nil
	case "pattern":
		m, err := installedPatterns(ctx, c, root)
		if err != nil {
			return err
		}
		names = keys(m)
	case "patch":
		m, err := found(ctx, c, root, "patch", true)
		if err != nil {
			return err
		}
		names = keys(m)
	}
	for _, name := range names {
		full := kind + ":" + name
		info, err := infoOf(ctx, c, []string{full}, root)
		if err != nil {
			return err
		}
		m, ok := info[name].(map[string]any)
		if !ok {
			return &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(name)}
		}
		have[full] = one(nil, m["version"], nil, m["arch"])
	}
	return nil
}

func keys(m map[string]any) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func listPkgs(ctx context.Context, c *modules.Call) (any, error) {
	if pytext.IsTrue(c.Keywords["removed"]) || pytext.IsTrue(c.Keywords["purge_desired"]) {
		return map[string]any{}, nil
	}
	v, given := c.Keywords["use_context"]
	var kinds []string
	if pytext.Truth(c.Value("includes")) {
		kinds = pkglist.SplitInput(c.Value("includes"))
	}
	have, err := listing(ctx, c, rootOf(c.Value("root")), kinds, given && !pytext.Truth(v))
	if err != nil {
		return nil, err
	}
	return pkglist.Format(ctx, c, have, pytext.IsTrue(c.Value("versions_as_list")), pkglist.Attribute(c.Keywords["attr"]))
}

func infoAvailable(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(infos(ctx, c))
}

func infos(ctx context.Context, c *modules.Call) (map[string]any, error) {
	names := pkglist.Names(c)
	if len(names) == 0 {
		return map[string]any{}, nil
	}
	root := rootOf(c.Keywords["root"])
	if v, ok := c.Keywords["refresh"]; !ok || pytext.Truth(v) {
		if _, err := refresh(ctx, c, root, c.Keywords); err != nil {
			return nil, err
		}
	}
	return infoOf(ctx, c, names, root)
}

// infoOf returns the data of the repositories about packages.
func infoOf(ctx context.Context, c *modules.Call, names []string, root string) (map[string]any, error) {
	names = slices.Clone(names)
	slices.Sort(names)
	ret := map[string]any{}
	for batch := range slices.Chunk(slices.Compact(names), 200) {
		out, err := zypper{root: root, nolock: true}.call(ctx, c, append([]string{"info", "-t", "package"}, batch...)...)
		if err != nil {
			return nil, err
		}
		for _, part := range strings.Split(out.Stdout, "Information for packag") {
			info := map[string]any{}
			for _, line := range strings.Split(strings.TrimLeft(part, "e"), "\n") {
				key, value, ok := strings.Cut(line, ":")
				if value = pytext.Strip(value); ok && value != "" && !strings.HasPrefix(line, "-----") {
					info[strings.ToLower(pytext.Strip(key))] = value
				}
			}
			if yes, ok := info["installed"].(string); ok {
				info["installed"] = strings.HasPrefix(strings.ToLower(yes), "yes")
			}
			if name, ok := info["name"].(string); ok {
				delete(info, "name")
				ret[name] = info
			}
		}
	}
	return ret, nil
}

func latestVersion(ctx context.Context, c *modules.Call) (any, error) {
	info, err := infos(ctx, c)
	if err != nil {
		return nil, err
	}
	return latest(pkglist.Names(c), info), nil
}

func latest(names []string, info map[string]any) any {
	ret := map[string]any{}
	for _, name := range names {
		m, _ := info[name].(map[string]any)
		status, _ := m["status"].(string)
		status, ret[name] = strings.ToLower(status), ""
		if strings.Contains(status, "not installed") || strings.Contains(status, "out-of-date") {
			ret[name] = m["version"]
		}
	}
	if len(ret) == 1 {
		return ret[names[0]]
	}
	return ret
}

func upgradeAvailable(ctx context.Context, c *modules.Call) (any, error) {
	c.Extra = []any{c.Value("name")}
	v, err := latestVersion(ctx, c)
	return pytext.Truth(v), err
}

func version(ctx context.Context, c *modules.Call) (any, error) {
	v, err := pkglist.VersionOf(ctx, c)
	if err == nil && !pytext.Truth(v) {
		return map[string]any{}, nil
	}
	return v, err
}

func versionCmp(ctx context.Context, c *modules.Call) (any, error) {
	return c.ExecKw(ctx, "lowpkg.version_cmp", []any{c.Value("ver1"), c.Value("ver2")}, map[string]any{"ignore_epoch": c.Value("ignore_epoch")})
}

func listUpgrades(ctx context.Context, c *modules.Call) (any, error) {
	root := rootOf(c.Value("root"))
	if c.Bool("refresh") {
		if _, err := refresh(ctx, c, root, c.Keywords); err != nil {
			return nil, err
		}
	}
	cmd := []string{"list-updates"}
	if v, ok := c.Keywords["fromrepo"]; ok {
		for _, repo := range listOf(v) {
			cmd = append(cmd, "--repo", repo)
		}
	}
	out, err := zypper{root: root, nolock: true, xml: true}.call(ctx, c, cmd...)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, n := range out.doc.all("update") {
		if n.attr("kind") == "package" {
			ret[n.attr("name")] = n.attr("edition")
		}
	}
	return ret, nil
}

// listOf returns a list as texts, and any other value as a list of one text.
func listOf(v any) []string {
	if list, ok := v.([]any); ok {
		return pkglist.SplitInput(list)
	}
	return []string{pytext.Str(v)}
}

func listRepoPkgs(ctx context.Context, c *modules.Call) (any, error) {
	names := pkglist.Names(c)
	out, err := zypper{root: rootOf(c.Keywords["root"]), xml: true}.call(ctx, c, append([]string{"se", "-s"}, names...)...)
	if err != nil {
		return nil, err
	}
	repos := pkglist.Repos{}
	for _, n := range out.doc.all("solvable") {
		name, ok1 := n.has("name")
		edition, ok2 := n.has("edition")
		repo, ok3 := n.has("repository")
		if n.attr("kind") != "package" || !ok1 || !ok2 || !ok3 ||
			pytext.Truth(c.Keywords["fromrepo"]) && repo != pytext.Str(c.Keywords["fromrepo"]) ||
			len(names) > 0 && !slices.ContainsFunc(names, func(p string) bool { return fnmatch.Match(p, name) }) ||
			slices.Contains(repos[repo][name], edition) {
			continue
		}
		repos.Add(repo, name, edition)
	}
	return repos.Answer(pytext.Truth(c.Keywords["byrepo"])), nil
}

func listDownloadedRun(ctx context.Context, c *modules.Call) (any, error) {
	return downloaded(ctx, c, rootOf(c.Value("root")))
}

func listProvides(ctx context.Context, c *modules.Call) (any, error) {
	return pkglist.Kept(c, "pkg.list_provides", func() (map[string]any, error) {
		cmd := []string{"rpm"}
		if root := rootOf(c.Value("root")); root != "" {
			cmd = append(cmd, "--root", root)
		}
		out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: append(cmd, "-qa", "--queryformat", "%{PROVIDES}_|-%{NAME}\n"), Merge: true})
		if err != nil {
			return nil, err
		}
		ret := map[string]any{}
		for _, line := range out.Lines() {
			parts := strings.Split(line, "_|-")
			if len(parts) != 2 {
				return nil, &modules.PythonError{Type: "ValueError", Msg: unpack(len(parts))}
			}
			if parts[0] != parts[1] {
				list, _ := ret[parts[0]].([]any)
				ret[parts[0]] = append(list, parts[1])
			}
		}
		return ret, nil
	})
}

func unpack(n int) string {
	if n > 2 {
		return "too many values to unpack (expected 2)"
	}
	return "not enough values to unpack (expected 2, got " + strconv.Itoa(n) + ")"
}

func servicesNeedRestart(ctx context.Context, c *modules.Call) (any, error) {
	out, err := zypper{root: rootOf(c.Value("root")), nolock: true}.call(ctx, c, "ps", "-sss")
	if err != nil {
		return nil, err
	}
	return nested.Anys(strings.Fields(out.Stdout)), nil
}

// downloaded returns the package files in zypper's cache.
func downloaded(ctx context.Context, c *modules.Call, root string) (map[string]any, error) {
	return rpm.Downloaded(ctx, c, filepath.Join("/", root, "/var/cache/zypp/packages"), time.UTC)
}
