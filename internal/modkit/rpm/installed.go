package rpm

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
)

// Installed maps each installed package to a list of maps, one for each version.
type Installed map[string]any

// Versions returns the full versions of each package.
func (i Installed) Versions() pkglist.List {
	list := pkglist.List{}
	for name, v := range i {
		for _, x := range v.([]any) {
			m := x.(map[string]any)
			text := func(k string) string { s, _ := m[k].(string); return s }
			list.Add(name, pkglist.Full(text("epoch"), text("version"), text("release")))
		}
	}
	return list
}

// List returns the packages that rpm -qa lists for the system, or for the one below root.
func List(ctx context.Context, c *modules.Call, root string, flags ...string) (Installed, error) {
	osarch := pytext.Str(c.Grain("osarch"))
	cmd := []string{"rpm"}
	if root != "" {
		cmd = append(cmd, "--root", root)
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{
		Args: slices.Concat(cmd, []string{"-qa"}, flags, []string{"--queryformat", Format("(none)") + "\n"}), Merge: true,
	})
	if err != nil {
		return nil, err
	}
	ret := Installed{}
	for _, line := range out.Lines() {
		p := Parse(line, osarch)
		if p == nil {
			continue
		}
		one := map[string]any{"epoch": nil, "release": nil, "arch": p.Arch, "install_date": nil, "install_date_time_t": nil}
		if p.Date != "" {
			one["install_date"], one["install_date_time_t"] = p.Date, p.Time
		}
		ver := p.Version
		if epoch, rest, ok := strings.Cut(ver, ":"); ok {
			one["epoch"], ver = epoch, rest
		}
		if v, release, ok := strings.Cut(ver, "-"); ok {
			ver, one["release"] = v, release
		}
		one["version"] = ver
		list, _ := ret[p.Name].([]any)
		ret[p.Name] = append(list, one)
	}
	for _, v := range ret {
		sorting.Stable(v.([]any), func(a, b any) int {
			return strings.Compare(a.(map[string]any)["version"].(string), b.(map[string]any)["version"].(string))
		})
	}
	return ret, nil
}
