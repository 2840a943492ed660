// Package pkgresource is Salt's execution module "pkg_resource": what the modules of all package managers share. Salt's source:
// salt/modules/pkg_resource.py; ours is mostly in internal/modkit/pkglist.
package pkgresource

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// pkg_resource.add_pkg, pkg_resource.sort_pkglist, pkg_resource.stringify differ: values are handed over, not shared, so that the map of the caller stays as it was; they only check their arguments.

func version(ctx context.Context, c *modules.Call) (any, error) {
	kw := map[string]any{}
	for k, v := range c.Keywords {
		if k != "versions_as_list" && !strings.HasPrefix(k, "__") {
			kw[k] = v
		}
	}
	asList := pytext.IsTrue(c.Keywords["versions_as_list"])
	found, glob := map[string]any{}, false
	if len(c.Extra) > 0 {
		kw["versions_as_list"] = true
		v, err := c.ExecKw(ctx, "pkg.list_pkgs", nil, kw)
		if err != nil {
			return nil, err
		}
		pkgs, _ := v.(map[string]any)
		for _, name := range pkglist.Names(c) {
			if !strings.Contains(name, "*") {
				found[name] = pkgs[name]
				continue
			}
			glob = true
			for pkg, versions := range pkgs {
				if fnmatch.Match(name, pkg) {
					found[pkg] = versions
				}
			}
		}
	}
	var last any
	for name, v := range found {
		list, _ := v.([]any)
		last = append([]any{}, list...)
		if !asList {
			last = join(list)
		}
		found[name] = last
	}
	if len(found) == 1 && !glob {
		return last, nil
	}
	return found, nil
}

func join(list []any) string {
	var texts []string
	for _, x := range list {
		texts = append(texts, pytext.Str(x))
	}
	return strings.Join(texts, ",")
}

func packSources(ctx context.Context, c *modules.Call) (any, error) {
	list, err := pkglist.Sources(ctx, c, c.Value("sources"), c.Bool("normalize"))
	ret := map[string]any{}
	for _, t := range list {
		ret[t.Name] = t.Version
	}
	return ret, err
}

func parseTargets(ctx context.Context, c *modules.Call) (any, error) {
	t, err := pkglist.Parse(ctx, c, pkglist.Query{
		Name: c.Value("name"), Pkgs: c.Value("pkgs"), Sources: c.Value("sources"), Saltenv: c.Str("saltenv"),
		Normalize: c.Bool("normalize"), Keywords: c.Keywords,
	})
	return t.Plain(), err
}

func addPkg(_ context.Context, c *modules.Call) (any, error) {
	if _, ok := c.Value("pkgs").(map[string]any); !ok {
		c.Logger().Error("A list of packages must be a dictionary", "type", modules.TypeName(c.Value("pkgs")))
	}
	return nil, nil
}

// lists checks that packages come with lists of versions.
func lists(_ context.Context, c *modules.Call) (any, error) {
	switch pkgs := c.Value("pkgs").(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(pkgs)) {
			switch v := pkgs[name].(type) {
			case []any, string, map[string]any:
			default:
				return nil, &modules.TypeError{Msg: "'" + modules.TypeName(v) + "' object is not iterable"}
			}
		}
	case []any:
		if len(pkgs) > 0 {
			return nil, &modules.TypeError{Msg: "list indices must be integers or slices, not " + modules.TypeName(pkgs[0])}
		}
	case string:
		if pkgs != "" {
			return nil, &modules.TypeError{Msg: "string indices must be integers, not 'str'"}
		}
	case nil, bool, int64, float64:
		return nil, &modules.TypeError{Msg: "'" + modules.TypeName(pkgs) + "' object is not iterable"}
	}
	return nil, nil
}

func versionClean(ctx context.Context, c *modules.Call) (any, error) {
	v := c.Value("verstr")
	if pytext.Truth(v) && pkglist.Has(c, "pkg.version_clean") {
		return c.Exec(ctx, "pkg.version_clean", v)
	}
	return v, nil
}

func versionCompare(_ context.Context, c *modules.Call) (any, error) {
	a, b := pytext.Str(c.Value("ver1")), pytext.Str(c.Value("ver2"))
	if c.Bool("ignore_epoch") {
		a, b = pkgversion.WithoutEpoch(a), pkgversion.WithoutEpoch(b)
	}
	return pkgversion.Holds(a, c.Str("oper"), b, pkgversion.Loose), nil
}

func checkExtraRequirements(ctx context.Context, c *modules.Call) (any, error) {
	if pytext.Truth(c.Value("pkgver")) && pkglist.Has(c, "pkg.check_extra_requirements") {
		return c.Exec(ctx, "pkg.check_extra_requirements", c.Value("pkgname"), c.Value("pkgver"))
	}
	return true, nil
}

func formatPkgList(ctx context.Context, c *modules.Call) (any, error) {
	pkgs, err := c.Map("packages")
	if err != nil {
		return nil, err
	}
	return pkglist.Format(ctx, c, pkgs, pytext.Truth(c.Value("versions_as_list")), c.Value("attr"))
}

func formatVersion(_ context.Context, c *modules.Call) (any, error) {
	part := func(name string) string {
		if !c.Bool(name) && name != "version" {
			return ""
		}
		return pytext.Str(c.Value(name))
	}
	return pkglist.Full(part("epoch"), part("version"), part("release")), nil
}
