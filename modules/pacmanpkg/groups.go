package pacmanpkg

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/modules"
)

// members returns the packages of groups, from pacman's listing.
func members(ctx context.Context, c *modules.Call, args ...string) (map[string][]string, error) {
	out, err := merged(ctx, c, args...)
	ret := map[string][]string{}
	for _, line := range out {
		if cols := strings.Fields(line); len(cols) >= 2 {
			ret[cols[0]] = append(ret[cols[0]], cols[1])
		}
	}
	return ret, err
}

func groupList(ctx context.Context, c *modules.Call) (any, error) {
	known, err := members(ctx, c, "-Sgg")
	if err != nil {
		return nil, err
	}
	have, err := members(ctx, c, "-Qg")
	if err != nil {
		return nil, err
	}
	var whole, part []string
	for _, group := range slices.Sorted(maps.Keys(have)) {
		all, ok := known[group]
		switch {
		case !ok:
			c.Logger().Error("An installed group is not among the available ones", "group", group)
			continue
		case len(all) == len(have[group]):
			whole = append(whole, group)
		default:
			part = append(part, group)
		}
		delete(known, group)
	}
	return map[string]any{
		"installed": nested.Anys(whole), "partially_installed": nested.Anys(part), "available": nested.Anys(slices.Sorted(maps.Keys(known))),
	}, nil
}

func groupInfo(ctx context.Context, c *modules.Call) (any, error) {
	out, err := merged(ctx, c, "-Sgg", c.Str("name"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, line := range out {
		cols := strings.Fields(line)
		if line == "" {
			continue
		}
		if len(cols) < 2 {
			return nil, modules.IndexError()
		}
		names = append(names, cols[1])
	}
	slices.Sort(names)
	return map[string]any{"mandatory": []any{}, "optional": []any{}, "default": nested.Anys(slices.Compact(names)), "conditional": []any{}}, nil
}

func groupDiff(ctx context.Context, c *modules.Call) (any, error) {
	have, err := listing(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	v, err := c.Exec(ctx, "pkg.group_info", c.Str("name"))
	if err != nil {
		return nil, err
	}
	info, _ := v.(map[string]any)
	ret := map[string]any{}
	for _, kind := range [...]string{"mandatory", "optional", "default", "conditional"} {
		in, out := []any{}, []any{}
		list, _ := info[kind].([]any)
		for _, x := range list {
			name, _ := x.(string)
			if _, ok := have[name]; ok {
				in = append(in, name)
			} else {
				out = append(out, name)
			}
		}
		ret[kind] = map[string]any{"installed": in, "not installed": out}
	}
	return ret, nil
}
