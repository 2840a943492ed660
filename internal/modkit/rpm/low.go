package rpm

import (
	"context"
	"os"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// These functions of pkg are the same for all package managers that use rpm packages.

// FileList implements pkg.file_list.
func FileList(ctx context.Context, c *modules.Call) (any, error) {
	return c.Exec(ctx, "lowpkg.file_list", c.Extra...)
}

// FileDict implements pkg.file_dict.
func FileDict(ctx context.Context, c *modules.Call) (any, error) {
	return c.Exec(ctx, "lowpkg.file_dict", c.Extra...)
}

// Owner implements pkg.owner.
func Owner(ctx context.Context, c *modules.Call) (any, error) {
	return c.Exec(ctx, "lowpkg.owner", c.Extra...)
}

// Verify implements pkg.verify.
func Verify(ctx context.Context, c *modules.Call) (any, error) {
	return c.ExecKw(ctx, "lowpkg.verify", c.Extra, pkglist.WithoutJob(c.Keywords))
}

// Modified implements pkg.modified.
func Modified(ctx context.Context, c *modules.Call) (any, error) {
	return c.ExecKw(ctx, "lowpkg.modified", c.Extra, pkglist.WithoutJob(c.Keywords))
}

// InfoInstalled implements pkg.info_installed.
func InfoInstalled(ctx context.Context, c *modules.Call) (any, error) {
	v, err := c.ExecKw(ctx, "lowpkg.info", c.Extra, pkglist.WithoutJob(c.Keywords))
	if err != nil {
		return nil, err
	}
	rename := func(x any) any {
		m, _ := x.(map[string]any)
		if source, ok := m["source_rpm"]; ok {
			m["source"] = source
			delete(m, "source_rpm")
		}
		return m
	}
	ret := map[string]any{}
	all, _ := v.(map[string]any)
	for name, x := range all {
		if list, ok := x.([]any); ok {
			for i := range list {
				list[i] = rename(list[i])
			}
			ret[name] = list
			continue
		}
		ret[name] = rename(x)
	}
	return ret, nil
}

// NormalizeName implements pkg.normalize_name.
func NormalizeName(_ context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	bare, arch := Split(name)
	if arch != "" && Resolve(bare, arch, pytext.Str(c.Grain("osarch"))) == bare {
		return bare, nil
	}
	return name, nil
}

// ParseArch implements pkg.parse_arch.
func ParseArch(_ context.Context, c *modules.Call) (any, error) {
	bare, arch := Split(c.Str("name"))
	if arch == "" {
		return map[string]any{"name": bare, "arch": nil}, nil
	}
	return map[string]any{"name": bare, "arch": arch}, nil
}

// Diff implements pkg.diff. download fetches packages to the minion and returns the path of each.
func Diff(ctx context.Context, c *modules.Call, download func(names []string) (map[string]any, error)) (any, error) {
	ret, byPackage := map[string]any{}, map[string][]string{}
	var names []string
	for _, path := range pkglist.Names(c) {
		v, err := c.Exec(ctx, "lowpkg.owner", path)
		if err != nil {
			return nil, err
		}
		pkg, _ := v.(string)
		if pkg == "" {
			ret[path] = "N/A"
			if _, err := os.Stat(c.Path(path)); err == nil {
				ret[path] = "Not managed"
			}
			continue
		}
		if byPackage[pkg] == nil {
			names = append(names, pkg)
		}
		byPackage[pkg] = append(byPackage[pkg], path)
	}
	if len(names) == 0 {
		return ret, nil
	}
	local, err := download(names)
	if err != nil {
		return nil, err
	}
	for pkg, paths := range byPackage {
		for _, path := range paths {
			v, err := c.Exec(ctx, "lowpkg.diff", local[pkg], path)
			if err != nil {
				return nil, err
			}
			if !pytext.Truth(v) {
				v = "Unchanged"
			}
			ret[path] = v
		}
	}
	return ret, nil
}
