package aptpkg

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func fileList(ctx context.Context, c *modules.Call) (any, error) {
	return c.Exec(ctx, "lowpkg.file_list", c.Extra...)
}

func fileDict(ctx context.Context, c *modules.Call) (any, error) {
	return c.Exec(ctx, "lowpkg.file_dict", c.Extra...)
}

func owner(ctx context.Context, c *modules.Call) (any, error) {
	if len(c.Extra) == 0 {
		return "", nil
	}
	ret := map[string]any{}
	var last string
	for _, path := range pkglist.Names(c) {
		out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"dpkg", "-S", path}})
		if err != nil {
			return nil, err
		}
		last, _, _ = strings.Cut(out.Stdout, ":")
		if strings.Contains(strings.ToLower(last), "no path found") {
			last = ""
		}
		ret[path] = last
	}
	if len(ret) == 1 {
		return last, nil
	}
	return ret, nil
}

func which(ctx context.Context, c *modules.Call) (any, error) {
	path := c.Str("path")
	if !filepath.IsAbs(path) {
		return false, nil
	}
	if _, err := os.Stat(c.Path(path)); err != nil {
		return false, nil
	}
	out, err := call(ctx, c, apt{}, "dpkg", "-S", path)
	if err != nil {
		return nil, err
	}
	if strings.Contains(out.Stdout, "no path found matching pattern") {
		return nil, nil
	}
	pkg, _, _ := strings.Cut(out.Stdout, ":")
	return pkg, nil
}

func show(ctx context.Context, c *modules.Call) (any, error) {
	kw, err := pkglist.Keywords(c, "refresh", "filter")
	if err != nil {
		return nil, err
	}
	var filter []string
	for _, f := range pkglist.SplitInput(kw["filter"]) {
		filter = append(filter, strings.ToLower(f))
	}
	if pytext.Truth(kw["refresh"]) {
		if _, err := refreshNow(ctx, c, nil, false); err != nil {
			return nil, err
		}
	}
	ret := map[string]any{}
	if len(c.Extra) == 0 {
		return ret, nil
	}
	out, err := call(ctx, c, apt{noScope: true}, append([]string{"apt-cache", "show"}, pkglist.Names(c)...)...)
	if err != nil {
		return nil, err
	}
	info := map[string]any{}
	for _, line := range append(strings.Split(out.Stdout, "\n"), "") {
		line = strings.TrimSpace(line)
		if line == "" {
			addShown(ret, info)
			info = map[string]any{}
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		key = strings.TrimSpace(key)
		low := strings.ToLower(key)
		if ok && (low == "package" || low == "version" || len(filter) == 0 || slices.Contains(filter, low)) {
			info[key] = strings.TrimSpace(value)
		}
	}
	return ret, nil
}

// addShown adds what was read of one version of a package.
func addShown(ret, info map[string]any) {
	name, ok1 := info["Package"].(string)
	version, ok2 := info["Version"].(string)
	if !ok1 || !ok2 {
		return
	}
	delete(info, "Package")
	delete(info, "Version")
	versions, _ := ret[name].(map[string]any)
	if versions == nil {
		versions = map[string]any{}
		ret[name] = versions
	}
	if have, ok := versions[version].(map[string]any); ok {
		maps.Copy(have, info)
		return
	}
	versions[version] = info
}

func infoInstalled(ctx context.Context, c *modules.Call) (any, error) {
	kw, err := pkglist.Keywords(c, "failhard")
	if err != nil {
		return nil, err
	}
	failhard, ok := kw["failhard"]
	if !ok {
		failhard = true
	}
	v, err := c.ExecKw(ctx, "lowpkg.info", c.Extra, map[string]any{"failhard": failhard})
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	all, _ := v.(map[string]any)
	for name, x := range all {
		info, _ := x.(map[string]any)
		if status, ok := info["status"].(string); ok && (len(status) < 2 || status[1] != 'i') {
			continue
		}
		out := map[string]any{}
		for k, value := range info {
			switch k {
			case "package":
				k = "name"
			case "origin":
				k = "vendor"
			case "section":
				k = "group"
			case "maintainer":
				k = "packager"
			case "homepage":
				k = "url"
			case "status":
				continue
			}
			out[k] = value
		}
		ret[name] = out
	}
	return ret, nil
}

func listDownloaded(ctx context.Context, c *modules.Call) (any, error) {
	dir := "/var/cache/apt"
	if root := c.Str("root"); root != "" {
		dir = filepath.Join(root, dir)
	}
	ret := map[string]any{}
	err := filepath.WalkDir(c.Path(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(d.Name(), ".deb") {
			return nil //nolint:nilerr // what cannot be read is passed over, as os.walk does
		}
		path = filepath.Join(dir, strings.TrimPrefix(path, c.Path(dir)))
		v, err := c.Exec(ctx, "lowpkg.bin_pkg_info", path)
		if err != nil {
			return err
		}
		info, err := os.Stat(c.Path(path))
		if err != nil {
			return modules.OSError(err)
		}
		pkg, _ := v.(map[string]any)
		name, when := pytext.Str(pkg["name"]), pkglist.Changed(info).Unix()
		versions, _ := ret[name].(map[string]any)
		if versions == nil {
			versions = map[string]any{}
			ret[name] = versions
		}
		versions[pytext.Str(pkg["version"])] = map[string]any{
			"path": path, "size": info.Size(), "creation_date_time_t": when,
			"creation_date_time": time.Unix(when, 0).UTC().Format("2006-01-02T15:04:05"),
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ret, nil
}

func servicesNeedRestart(ctx context.Context, c *modules.Call) (any, error) {
	if c.Which("checkrestart") == "" {
		return nil, &modules.MissingCommandError{Command: "'checkrestart' is needed. It is part of the 'debian-goodies' package which " +
			"can be installed from official repositories."}
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"checkrestart", "--machine", "--package"}})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, line := range strings.Split(out.Stdout, "\n") {
		if rest, ok := strings.CutPrefix(line, "SERVICE:"); ok {
			name, _, _ := strings.Cut(rest, ",")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return nested.Anys(slices.Compact(names)), nil
}
