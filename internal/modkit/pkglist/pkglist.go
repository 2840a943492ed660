// Package pkglist contains the code that the modules of all package managers share: lists of installed packages as
// pkg.list_pkgs returns them, the changes between two lists, the packages that a caller names in one of several ways,
// and the mark that requests a refresh of the indexes. Salt's sources: salt/modules/pkg_resource.py,
// salt/utils/pkg/__init__.py, salt/utils/data.py.
package pkglist

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// List maps the names of packages to their installed versions.
type List map[string][]string

// Add adds a version.
func (l List) Add(name, version string) { l[name] = append(l[name], version) }

// Sort sorts the versions of each package and removes duplicates.
func (l List) Sort() {
	for name, versions := range l {
		slices.Sort(versions)
		l[name] = slices.Compact(versions)
	}
}

// Over returns the union of two lists. For a name in both, the entry of other wins.
func (l List) Over(other List) List {
	out := maps.Clone(l)
	maps.Copy(out, other)
	return out
}

// Plain returns the list as Salt returns it: versions joined by commas, or as lists.
func (l List) Plain(asList bool) map[string]any {
	out := make(map[string]any, len(l))
	for name, versions := range l {
		if asList {
			out[name] = nested.Anys(versions)
		} else {
			out[name] = strings.Join(versions, ",")
		}
	}
	return out
}

// Version returns a package's version, or its versions joined by commas. It returns "" if the package is not in the
// list.
func (l List) Version(name string) string { return strings.Join(l[name], ",") }

// Compare returns the changes between two lists.
func Compare(before, after List) map[string]any {
	return CompareMaps(before.Plain(false), after.Plain(false))
}

// CompareMaps returns the changes between two maps: each name with its old and new value, "" for a missing one.
func CompareMaps(before, after map[string]any) map[string]any {
	ret := map[string]any{}
	for name, v := range after {
		old, ok := before[name]
		if !ok {
			ret[name] = map[string]any{"old": "", "new": v}
		} else if pytext.Repr(old) != pytext.Repr(v) {
			ret[name] = map[string]any{"old": old, "new": v}
		}
	}
	for name, v := range before {
		if _, ok := after[name]; !ok {
			ret[name] = map[string]any{"old": v, "new": ""}
		}
	}
	return ret
}

// Wildcards replaces patterns that contain "*" by the matching packages. As in Salt, only the matches of the last
// pattern remain.
func Wildcards(current List, targets []Target) []Target {
	var out, found []Target
	for _, t := range targets {
		if !strings.Contains(t.Name, "*") {
			out = append(out, t)
			continue
		}
		found = nil
		for _, name := range slices.Sorted(maps.Keys(current)) {
			if fnmatch.Match(t.Name, name) {
				found = append(found, Target{name, t.Version})
			}
		}
	}
	for _, t := range found {
		if !slices.ContainsFunc(out, func(x Target) bool { return x.Name == t.Name }) {
			out = append(out, t)
		}
	}
	return out
}

// ClearMark removes the mark with which a highstate requests one refresh.
func ClearMark(c *modules.Call) {
	dir := pytext.Str(c.Opt("cachedir"))
	if c.Opt("cachedir") == nil {
		return
	}
	if err := os.Remove(c.Path(filepath.Join(dir, "pkg_refresh"))); err != nil && !os.IsNotExist(err) {
		c.Logger().Warn("Cannot remove the mark for a refresh", "err", err)
	}
}

// SplitInput returns the elements of a list, or the parts of a text between commas (salt/utils/args.py split_input).
func SplitInput(v any) []string {
	var out []string
	switch v := v.(type) {
	case nil:
	case []any:
		for _, x := range v {
			out = append(out, pytext.Str(x))
		}
	default:
		for _, s := range strings.Split(pytext.Str(v), ",") {
			out = append(out, strings.TrimSpace(s))
		}
	}
	return out
}

// Keywords returns the keyword arguments without the fields of the job. It returns an error for arguments that are
// not in known.
func Keywords(c *modules.Call, known ...string) (map[string]any, error) {
	out := map[string]any{}
	var bad []string
	for _, k := range slices.Sorted(maps.Keys(c.Keywords)) {
		if strings.HasPrefix(k, "__") {
			continue
		}
		out[k] = c.Keywords[k]
		if !slices.Contains(known, k) {
			bad = append(bad, k+"="+pytext.Str(c.Keywords[k]))
		}
	}
	if bad != nil {
		return nil, modules.Usagef("The following keyword arguments are not valid: %s", strings.Join(bad, ", "))
	}
	return out, nil
}

// Kept returns the job's cached value for a key about installed packages, which must begin with "pkg.list_pkgs". The
// first call of a job gets the value from read.
func Kept[T any](c *modules.Call, key string, read func() (T, error)) (T, error) {
	if v, _ := c.Context().Get(key); v != nil {
		if t, ok := v.(T); ok {
			return t, nil
		}
	}
	t, err := read()
	if err == nil {
		c.Context().Set(key, t)
	}
	return t, err
}

// Forget drops the job's cached list of installed packages.
func Forget(c *modules.Call) { c.Context().Set("pkg.list_pkgs", nil) }

// WithoutJob returns keyword arguments without the fields of the job.
func WithoutJob(kw map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range kw {
		if !strings.HasPrefix(k, "__") {
			out[k] = v
		}
	}
	return out
}

// VersionOf implements pkg.version.
func VersionOf(ctx context.Context, c *modules.Call) (any, error) {
	return c.ExecKw(ctx, "pkg_resource.version", c.Extra, WithoutJob(c.Keywords))
}

// Names returns the positional arguments beyond the parameters, as texts.
func Names(c *modules.Call) []string {
	names := make([]string, len(c.Extra))
	for i, x := range c.Extra {
		names[i] = pytext.Str(x)
	}
	return names
}

// Truth returns the truth of an argument as Salt's is_true determines it, or otherwise if the argument was not given.
func Truth(c *modules.Call, name string, otherwise bool) bool {
	if v, ok := c.Keywords[name]; ok {
		return pytext.IsTrue(v)
	}
	if v := c.Value(name); v != nil {
		return pytext.IsTrue(v)
	}
	return otherwise
}

// Keyword returns a keyword argument as text, or "" if it was not given.
func Keyword(c *modules.Call, name string) string {
	if v := c.Keywords[name]; v != nil {
		return pytext.Str(v)
	}
	return ""
}

// Full joins epoch, version and release into one version.
func Full(epoch, version, release string) string {
	if epoch != "" {
		version = epoch + ":" + version
	}
	if release != "" {
		version += "-" + release
	}
	return version
}
