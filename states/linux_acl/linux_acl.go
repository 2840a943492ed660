package linux_acl

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// acl.present differs: X is a permission, as in 3008.

const (
	settled     = "Permissions are in the desired state"
	unknownType = "ACL Type does not exist"
	removing    = "Removing permissions"
)

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	l, ok, err := look(ctx, c, ret, map[string]any{"recursive": c.Value("recurse")})
	if !ok {
		return ret, err
	}
	if !l.known() {
		return ret.As(states.False, unknownType)
	}
	name, perms := c.Str("acl_name"), pytext.Str(c.Value("perms"))
	search := name
	if search == "" {
		search = l.owner()
	}
	entry := find(l.current[l.kind], search)
	ret.Changes = map[string]any{"new": map[string]any{"acl_name": c.Value("acl_name"), "acl_type": c.Value("acl_type"), "perms": c.Value("perms")}}
	will, done := "New permissions will be applied for "+name+": "+perms, "Applied new permissions for "+name
	if entry != nil {
		want, err := octal(c.Value("perms"), lettersAndX)
		if err != nil {
			return nil, err
		}
		have, _ := entry["octal"].(int64)
		if pytext.Truth(c.Value("recurse")) && !l.differs(c, search, want) || !pytext.Truth(c.Value("recurse")) && have == want {
			ret.Changes = map[string]any{}
			return ret.As(states.True, settled)
		}
		ret.Changes["old"] = map[string]any{"acl_name": c.Value("acl_name"), "acl_type": c.Value("acl_type"), "perms": text(have)}
		will, done = "Updated permissions will be applied for "+name+": "+text(have)+" -> "+perms, "Updated permissions for "+name
	}
	if c.Test() {
		return ret.As(states.None, will)
	}
	if err := set(ctx, c, []any{c.Value("acl_name")}); modules.IsExecError(err) {
		ret.Changes = map[string]any{}
		return ret.As(states.False, "Error updating permissions for "+name+": "+err.Error())
	} else if err != nil {
		return nil, err
	}
	return ret.As(states.True, done)
}

// differs reports whether one of the files lacks the entry. A file that no user may execute satisfies X.
func (l *lists) differs(c *states.Call, name string, want int64) bool {
	perms, _ := c.Value("perms").(string)
	for path, v := range l.all {
		entries, _ := v.(map[string]any)
		if l.isDefault {
			if info, err := os.Stat(c.Path(path)); err != nil || !info.IsDir() {
				continue
			}
			entries, _ = entries["defaults"].(map[string]any)
		}
		list, _ := entries[l.kind].([]any)
		if !slices.ContainsFunc(list, func(x any) bool {
			e, ok := x.(map[string]any)[name].(map[string]any)
			if !ok {
				return false
			}
			have, _ := e["octal"].(int64)
			return have == want || strings.HasSuffix(perms, "X") && have%2 == 0 && have == want-1
		}) {
			return true
		}
	}
	return false
}

func absent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	l, ok, err := look(ctx, c, ret, map[string]any{"recursive": c.Value("recurse")})
	if !ok {
		return ret, err
	}
	if !l.known() {
		return ret.As(states.False, unknownType)
	}
	name := c.Str("acl_name")
	if name == "" {
		name = l.owner()
	}
	there := find(l.current[l.kind], name) != nil
	for _, v := range l.all { // Salt looks at what is no default here
		entries, _ := v.(map[string]any)
		there = there || find(entries[l.kind], name) != nil
	}
	switch {
	case !there:
		return ret.As(states.True, settled)
	case c.Test():
		return ret.As(states.None, removing)
	}
	// The permissions are one more file for delfacl, in Salt as well.
	_, err = c.ExecKw(ctx, "acl.delfacl", []any{c.Value("acl_type"), c.Value("acl_name"), c.Value("perms"), c.Value("name")}, map[string]any{"recursive": c.Value("recurse")})
	if err != nil {
		return nil, err
	}
	return ret.As(states.True, removing)
}

// names returns the users or groups of the call. As in Python a text is a list of its characters.
func names(c *states.Call) ([]any, error) {
	if c.Value("acl_names") == nil {
		return nil, nil
	}
	return iterate(c.Value("acl_names"))
}

func listPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	want, err := octal(c.Value("perms"), letters)
	if err != nil {
		return nil, err
	}
	l, ok, err := look(ctx, c, ret, nil)
	if !ok {
		return ret, err
	}
	if _, ok := l.current[l.kind]; !ok && !l.isDefault {
		return nil, keyError(l.kind)
	}
	list, err := names(c)
	if err != nil {
		return nil, err
	}
	if !l.known() {
		return ret.As(states.False, unknownType)
	}
	joined, err := join(list)
	if err != nil {
		return nil, err
	}
	wanted := func(name string) bool { return slices.Contains(list, any(name)) }
	search := list
	if s, ok := c.Value("acl_names").(string); ok {
		if s == "" {
			s = l.owner()
			search, _ = iterate(s)
		}
		wanted = func(name string) bool { return strings.Contains(s, name) }
	}
	shown := pytext.Str(c.Value("acl_names"))
	if c.Value("acl_names") == nil {
		shown = "[]"
	}
	have := l.octals(wanted)
	side := func(perms any) map[string]any {
		return map[string]any{"acl_name": joined, "acl_type": c.Value("acl_type"), "perms": perms}
	}
	apply := func(changes map[string]any, will, done string) (end bool, err error) {
		if c.Test() {
			ret.Result, ret.Comment, ret.Changes = states.None, will, changes
			return true, nil
		}
		if err := set(ctx, c, list); modules.IsExecError(err) {
			ret.Result, ret.Comment = states.False, "Error updating permissions for "+shown+": "+err.Error()
			return false, nil
		} else if err != nil {
			return true, err
		}
		ret.Result, ret.Comment, ret.Changes = states.True, done, changes
		return false, nil
	}
	perms := pytext.Str(c.Value("perms"))
	fresh := func() (bool, error) {
		return apply(map[string]any{"new": side(c.Value("perms"))}, "New permissions will be applied for "+shown+": "+perms, "Applied new permissions for "+joined)
	}
	ret.Result = states.True
	if len(have) == 0 {
		if _, err := fresh(); err != nil {
			return nil, err
		}
		return ret, nil
	}
	for _, name := range search {
		key, _ := name.(string)
		now, there := have[key]
		end := false
		switch {
		case !there:
			end, err = fresh()
		case now == want:
			ret.Comment = settled
		default:
			old := pytext.Str(now)
			end, err = apply(map[string]any{"new": side(want), "old": side(old)}, "Updated permissions will be applied for "+shown+": "+old+" -> "+perms, "Updated permissions for "+shown)
		}
		if err != nil {
			return nil, err
		}
		if end {
			break
		}
	}
	return ret, nil
}

// octals returns the permissions of the wanted entries.
func (l *lists) octals(wanted func(name string) bool) map[string]int64 {
	have := map[string]int64{}
	entries, _ := l.current[l.kind].([]any)
	for _, x := range entries {
		for name, e := range x.(map[string]any) {
			if wanted(name) {
				have[name], _ = e.(map[string]any)["octal"].(int64)
			}
		}
	}
	return have
}

// join implements Python's ", ".join.
func join(list []any) (string, error) {
	words := make([]string, len(list))
	for i, x := range list {
		s, ok := x.(string)
		if !ok {
			return "", &modules.TypeError{Msg: "sequence item " + pytext.Str(int64(i)) + ": expected str instance, " + modules.TypeName(x) + " found"}
		}
		words[i] = s
	}
	return strings.Join(words, ", "), nil
}

func listAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	l, ok, err := look(ctx, c, ret, nil)
	if !ok {
		return ret, err
	}
	list, err := names(c)
	if err != nil {
		return nil, err
	}
	if !l.known() {
		return ret.As(states.False, unknownType)
	}
	search := list
	if len(list) == 0 {
		search, _ = iterate(l.owner()) // Salt takes the name apart
	}
	switch {
	case len(l.octals(func(name string) bool { return slices.Contains(search, any(name)) })) == 0:
		return ret.As(states.True, settled)
	case c.Test():
		return ret.As(states.None, removing)
	}
	for _, name := range list {
		if _, err := c.ExecKw(ctx, "acl.delfacl", []any{c.Value("acl_type"), name, c.Value("name")}, map[string]any{"recursive": c.Value("recurse")}); err != nil {
			return nil, err
		}
	}
	return ret.As(states.True, removing)
}
