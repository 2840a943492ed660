package pkglist

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
)

// Target is a package that a caller named, with the requested version: nil, or nearly always a text.
type Target struct {
	Name    string
	Version any
}

// Targets are the packages that a caller named: from repositories, as files, or as advisories.
type Targets struct {
	// Kind is "repository", "file", "advisory", or "" for no packages.
	Kind string
	// Packages has the packages of kind repository; Files has the paths of kind file or the ids of kind advisory.
	Packages []Target
	Files    []any
}

// None reports whether the caller named no package.
func (t Targets) None() bool { return len(t.Packages) == 0 && len(t.Files) == 0 }

// Named reports whether a package is in Packages.
func (t Targets) Named(name string) bool {
	for _, p := range t.Packages {
		if p.Name == name {
			return true
		}
	}
	return false
}

// Plain returns the result of pkg_resource.parse_targets.
func (t Targets) Plain() []any {
	switch t.Kind {
	case "":
		return []any{nil, nil}
	case "repository":
		m := map[string]any{}
		for _, p := range t.Packages {
			m[p.Name] = p.Version
		}
		return []any{m, t.Kind}
	}
	return []any{append([]any{}, t.Files...), t.Kind}
}

// Query holds the arguments of Parse, which are those of pkg.install.
type Query struct {
	Name, Pkgs, Sources any
	Saltenv             string
	Normalize           bool
	// Keywords are further arguments: version, advisory_ids.
	Keywords map[string]any
}

// Parse returns the packages that a caller named. It fetches files that are not on the minion.
func Parse(ctx context.Context, c *modules.Call, q Query) (Targets, error) {
	mac := c.Grain("os") == "MacOS"
	if mac && pytext.Truth(q.Sources) {
		c.Logger().Warn(`Parameter "sources" ignored on MacOS hosts.`)
	}
	version := q.Keywords["version"]
	advisories, advised := q.Keywords["advisory_ids"]
	switch {
	case pytext.Truth(q.Pkgs) && pytext.Truth(q.Sources):
		c.Logger().Error(`Only one of "pkgs" and "sources" can be used.`)
		return Targets{}, nil
	case advised && pytext.Truth(q.Pkgs):
		c.Logger().Error(`Cannot use "advisory_ids" and "pkgs" at the same time`)
		return Targets{}, nil
	case advised:
		if list, ok := advisories.([]any); ok && len(list) > 0 {
			return Targets{Kind: "advisory", Files: list}, nil
		}
		return Targets{Kind: "advisory", Files: []any{q.Name}}, nil
	case pytext.Truth(q.Pkgs):
		list, err := Pack(ctx, c, q.Pkgs, q.Normalize)
		if err != nil || len(list) == 0 {
			return Targets{}, err
		}
		return Targets{Kind: "repository", Packages: list}, nil
	case pytext.Truth(q.Sources) && !mac:
		return files(ctx, c, q)
	case pytext.Truth(q.Name):
		text, ok := q.Name.(string)
		if !ok {
			return Targets{}, modules.NoAttribute(q.Name, "split")
		}
		t := Targets{Kind: "repository"}
		for _, name := range strings.Split(text, ",") {
			name, err := normal(ctx, c, name, q.Normalize)
			if err != nil {
				return Targets{}, err
			}
			if !t.Named(name) {
				t.Packages = append(t.Packages, Target{name, version})
			}
		}
		return t, nil
	}
	c.Logger().Error("No package sources provided")
	return Targets{}, nil
}

// normal returns the package manager's name for a package.
func normal(ctx context.Context, c *modules.Call, name string, normalize bool) (string, error) {
	if !normalize || !Has(c, "pkg.normalize_name") {
		return name, nil
	}
	v, err := c.Exec(ctx, "pkg.normalize_name", name)
	return pytext.Str(v), err
}

// Has reports whether a function is available.
func Has(c *modules.Call, fun string) bool {
	if c.Registry() == nil {
		return false
	}
	_, err := c.Registry().Lookup(fun, c.Env)
	return err == nil
}

// Repack converts a list to targets: its elements are names, or maps from a name to a version (salt/utils/data.py
// repack_dictlist). It returns nil for any other value.
func Repack(c *modules.Call, v any) []Target {
	if text, ok := v.(string); ok {
		parsed, err := yaml.Parse([]byte(text), "pkgs")
		if err != nil {
			c.Logger().Error("Cannot read the list", "err", err)
			return nil
		}
		v = parsed
	}
	list, ok := v.([]any)
	if !ok {
		c.Logger().Error("Invalid input for repack_dictlist, data passed is not a list")
		return nil
	}
	var out []Target
	for _, x := range list {
		name, value, ok := entry(x)
		if !ok {
			c.Logger().Error("Invalid input for repack_dictlist: neither a name nor a map with one name")
			return nil
		}
		out = append(out, Target{name, value})
	}
	return out
}

// entry returns the name and value of an element of such a list: a name, or a map with one entry.
func entry(x any) (name string, value any, ok bool) {
	switch x := x.(type) {
	case string, int64, float64, bool:
		return pytext.Str(x), nil, true
	case map[string]any:
		for k, v := range x {
			return k, v, len(x) == 1
		}
	case map[any]any:
		for k, v := range x {
			return pytext.Str(k), v, len(x) == 1
		}
	}
	return "", nil, false
}

// Pack returns the packages of the argument pkgs without duplicates. With normalize it uses the package manager's
// names (salt/modules/pkg_resource.py _repack_pkgs).
func Pack(ctx context.Context, c *modules.Call, pkgs any, normalize bool) ([]Target, error) {
	var list []Target
	for _, t := range Repack(c, pkgs) {
		name, err := normal(ctx, c, t.Name, normalize)
		if err != nil {
			return nil, err
		}
		if t.Version != nil {
			t.Version = pytext.Str(t.Version)
		}
		list = set(list, name, t.Version)
	}
	n := -1
	switch p := pkgs.(type) {
	case []any:
		n = len(p)
	case string:
		n = utf8.RuneCountInString(p)
	case map[string]any:
		n = len(p)
	case map[any]any:
		n = len(p)
	case []byte:
		n = len(p)
	default:
		return nil, &modules.TypeError{Msg: "object of type '" + modules.TypeName(pkgs) + "' has no len()"}
	}
	if n != len(list) {
		return nil, modules.Usagef("You are passing a list of packages that contains duplicated packages names: %s. This cannot be "+
			"processed. In case you are targeting different versions of the same package, please target them individually", pytext.Str(pkgs))
	}
	return list, nil
}

// set adds a target, or replaces the version of the target with that name.
func set(list []Target, name string, version any) []Target {
	for i := range list {
		if list[i].Name == name {
			list[i].Version = version
			return list
		}
	}
	return append(list, Target{name, version})
}

// Sources converts a list of maps from a package to its file to targets. It returns nil for any other value.
func Sources(ctx context.Context, c *modules.Call, v any, normalize bool) ([]Target, error) {
	if text, ok := v.(string); ok {
		parsed, err := yaml.Parse([]byte(text), "sources")
		if err != nil {
			c.Logger().Error("Cannot read the sources", "err", err)
			return nil, nil
		}
		v = parsed
	}
	if m, ok := v.(map[string]any); ok && len(m) == 0 {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		switch v.(type) {
		case map[string]any, map[any]any, string:
			c.Logger().Error("Input must be a list of 1-element dicts")
			return nil, nil
		}
		return nil, &modules.TypeError{Msg: "'" + modules.TypeName(v) + "' object is not iterable"}
	}
	var out []Target
	for _, x := range list {
		name, value, ok := entry(x)
		switch x.(type) {
		case map[string]any, map[any]any:
		default:
			ok = false
		}
		if !ok {
			c.Logger().Error("Input must be a list of 1-element dicts")
			return nil, nil
		}
		name, err := normal(ctx, c, name, normalize)
		if err != nil {
			return nil, err
		}
		out = set(out, name, value)
	}
	return out, nil
}

func files(ctx context.Context, c *modules.Call, q Query) (Targets, error) {
	list, err := Sources(ctx, c, q.Sources, q.Normalize)
	if err != nil || len(list) == 0 {
		return Targets{}, err
	}
	saltenv := q.Saltenv
	if saltenv == "" {
		saltenv = "base"
	}
	t := Targets{Kind: "file"}
	for _, s := range list {
		path, name := pytext.Str(s.Version), s.Name
		if Fetchable(path) {
			cached, err := Cache(ctx, c, path, saltenv)
			if err != nil {
				return Targets{}, err
			}
			if cached == "" {
				return Targets{}, modules.Errorf("Unable to cache source %s for package %s", path, name)
			}
			path = cached
		} else if !filepath.IsAbs(path) {
			return Targets{}, modules.Usagef("Path %s for package %s is either not absolute or an invalid protocol", path, name)
		}
		t.Files = append(t.Files, path)
	}
	return t, nil
}

// Fetchable reports whether a text is a URL that files can be fetched from (config.valid_fileproto).
func Fetchable(path string) bool {
	for _, proto := range [...]string{"salt", "http", "https", "swift", "s3", "ftp", "file"} {
		if strings.HasPrefix(path, proto+"://") {
			return true
		}
	}
	return false
}

// Cache fetches a file to the minion and returns its path, or "" if there is no such file.
func Cache(ctx context.Context, c *modules.Call, url, saltenv string) (string, error) {
	v, err := c.Exec(ctx, "cp.cache_file", url, saltenv)
	path, _ := v.(string)
	return path, err
}

// File returns the local path of the package file in the argument path of lowpkg.bin_pkg_info. It fetches a URL
// first.
func File(ctx context.Context, c *modules.Call) (string, error) {
	path := c.Str("path")
	if Fetchable(path) {
		saltenv := c.Str("saltenv")
		cached, err := Cache(ctx, c, path, saltenv)
		if err == nil && cached == "" {
			err = modules.Errorf("Unable to retrieve %s from saltenv '%s'", path, saltenv)
		}
		return cached, err
	}
	if _, err := os.Stat(c.Path(path)); err != nil {
		return "", modules.Errorf("%s does not exist on minion", path)
	}
	if !filepath.IsAbs(path) {
		return "", modules.Usagef("%s does not exist on minion", path)
	}
	return path, nil
}

// Held returns the packages to hold or unhold, from the arguments name, pkgs or sources of pkg.hold and pkg.unhold.
func Held(c *modules.Call) ([]string, error) {
	pkgs, sources := c.Value("pkgs"), c.Value("sources")
	if !pytext.Truth(c.Value("name")) && !pytext.Truth(pkgs) && !pytext.Truth(sources) {
		return nil, modules.Usagef("One of name, pkgs, or sources must be specified.")
	}
	if pytext.Truth(pkgs) && pytext.Truth(sources) {
		return nil, modules.Usagef("Only one of pkgs or sources can be specified.")
	}
	list := pkgs
	if !pytext.Truth(pkgs) {
		list = sources
	}
	if !pytext.Truth(list) {
		return []string{c.Str("name")}, nil
	}
	items, ok := list.([]any)
	if !ok {
		items = []any{list}
	}
	var names []string
	for _, x := range items {
		name, _, ok := entry(x)
		if !ok {
			name = pytext.Str(x)
		}
		names = append(names, name)
	}
	return names, nil
}
