package pkglist

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Format converts packages, each with a list of maps (epoch, version, release, arch, install_date,
// install_date_time_t), to versions. With attr ("all" or a list) it returns maps of those attributes instead.
func Format(ctx context.Context, c *modules.Call, packages map[string]any, asList bool, attr any) (any, error) {
	ret := map[string]any{}
	if pytext.Truth(attr) {
		wanted, err := attributes(attr)
		if err != nil {
			return nil, err
		}
		for name, v := range packages {
			short, arch := name, any(nil)
			if Has(c, "pkg.parse_arch") {
				v, err := c.Exec(ctx, "pkg.parse_arch", name)
				if err != nil {
					return nil, err
				}
				m, _ := v.(map[string]any)
				short, arch = pytext.Str(m["name"]), m["arch"]
			}
			under, versions := name, []any{}
			for _, all := range items(v) {
				one := map[string]any{}
				for _, key := range wanted {
					if x, ok := all[key]; ok {
						one[key] = x
					}
				}
				versions = append(versions, one)
				if short != "" && pytext.Repr(one["arch"]) == pytext.Repr(arch) {
					under = short
				}
			}
			have, _ := ret[under].([]any)
			ret[under] = append(have, versions...)
		}
		return ret, nil
	}
	for name, v := range packages {
		var versions []string
		for _, d := range items(v) {
			for _, key := range [...]string{"epoch", "version", "release"} {
				if _, ok := d[key]; !ok {
					return nil, &modules.PythonError{Type: "KeyError", Msg: "'" + key + "'"}
				}
			}
			text := func(key string) string {
				if !pytext.Truth(d[key]) && key != "version" {
					return ""
				}
				return pytext.Str(d[key])
			}
			versions = append(versions, Full(text("epoch"), text("version"), text("release")))
		}
		ret[name] = strings.Join(versions, ",")
		if asList {
			ret[name] = nested.Anys(versions)
		}
	}
	return ret, nil
}

func items(v any) []map[string]any {
	list, _ := v.([]any)
	var out []map[string]any
	for _, x := range list {
		if m, ok := x.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// attributes returns the requested attributes that exist. version and arch are always among them.
func attributes(attr any) ([]string, error) {
	all := []string{"epoch", "version", "release", "arch", "install_date", "install_date_time_t"}
	if attr == "all" {
		return all, nil
	}
	list, ok := attr.([]any)
	if !ok {
		return nil, &modules.TypeError{Msg: `can only concatenate ` + modules.TypeName(attr) + ` (not "list") to ` + modules.TypeName(attr)}
	}
	return slices.DeleteFunc(all, func(key string) bool {
		return key != "version" && key != "arch" && !slices.Contains(list, any(key))
	}), nil
}

// Attribute converts the argument attr to nil, "all" or a list.
func Attribute(v any) any {
	if v == nil || v == "all" {
		return v
	}
	return nested.Anys(SplitInput(v))
}
