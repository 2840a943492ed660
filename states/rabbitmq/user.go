package rabbitmq

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func userPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	v, err := call(ctx, c, "user_exists", name)
	if err != nil {
		return failed(ret, err)
	}
	exists, other := pytext.Truth(v), false
	if exists && c.Value("password") != nil {
		same, err := call(ctx, c, "check_password", name, c.Value("password"))
		if err != nil {
			return failed(ret, err)
		}
		other = !pytext.Truth(same)
	}
	switch {
	case exists && !c.Bool("force") && !c.Bool("perms") && !c.Bool("tags") && !other:
		return ret.As(states.True, "User '"+name+"' is already present.")
	case !exists:
		ret.Changes["user"] = map[string]any{"old": "", "new": name}
		if c.Test() {
			return ret.As(states.None, "User '"+name+"' is set to be created.")
		}
		_, err = call(ctx, c, "add_user", name, c.Value("password"))
	case c.Bool("force") || other:
		err = setPassword(ctx, c, ret)
	}
	if err == nil {
		err = setTags(ctx, c, ret)
	}
	if err == nil {
		err = setPermissions(ctx, c, ret)
	}
	switch {
	case err != nil:
		return failed(ret, err)
	case len(ret.Changes) == 0:
		return ret.As(states.True, "'"+name+"' is already in the desired state.")
	case c.Test():
		return ret.As(states.None, "Configuration for '"+name+"' will change.")
	}
	return ret.As(states.True, "'"+name+"' was configured.")
}

// setPassword gives the user the password of the state, or takes its own away.
func setPassword(ctx context.Context, c *states.Call, ret *states.Result) error {
	fun, args, change := "clear_password", []any{c.Name()}, map[string]any{"old": "Removed password.", "new": ""}
	if c.Value("password") != nil {
		fun, args, change = "change_password", append(args, c.Value("password")), map[string]any{"old": "", "new": "Set password."}
	}
	if !c.Test() {
		if _, err := call(ctx, c, fun, args...); err != nil {
			return err
		}
	}
	ret.Changes["password"] = change
	return nil
}

func setTags(ctx context.Context, c *states.Call, ret *states.Result) error {
	v := c.Value("tags")
	if v == nil {
		return nil
	}
	have := []any{}
	if users, err := call(ctx, c, "list_users"); err == nil {
		m, _ := users.(map[string]any)
		own, ok := m[c.Name()]
		if !ok {
			return &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(c.Name())}
		}
		have, _ = own.([]any)
	} else if !modules.IsCommandError(err) {
		return err
	}
	tags, ok := v.([]any)
	if !ok {
		tags = []any{}
		for _, w := range strings.Fields(pytext.Str(v)) {
			tags = append(tags, w)
		}
	}
	missing := func(a, b []any) bool {
		return slices.ContainsFunc(a, func(x any) bool { return !nested.Contains(b, x) })
	}
	if !missing(tags, have) && !missing(have, tags) {
		return nil
	}
	if !c.Test() {
		if _, err := call(ctx, c, "set_user_tags", c.Name(), tags); err != nil {
			return err
		}
	}
	ret.Changes["tags"] = map[string]any{"old": have, "new": tags}
	return nil
}

// grant are the permissions on a virtual host.
type grant struct {
	vhost string
	perms []any
}

func (g grant) plain() map[string]any {
	return map[string]any{"configure": g.perms[0], "write": g.perms[1], "read": g.perms[2]}
}

// grants returns the permissions of the state: a list of maps from a virtual host to three patterns.
func grants(c *states.Call) ([]grant, error) {
	v := c.Value("perms")
	list, ok := v.([]any)
	if !ok && pytext.Truth(v) {
		switch v.(type) {
		case string, map[string]any, map[any]any:
			return nil, modules.NoAttribute("", "items")
		}
		return nil, &modules.TypeError{Msg: "'" + modules.TypeName(v) + "' object is not iterable"}
	}
	var out []grant
	for _, x := range list {
		m, ok := x.(map[string]any)
		if !ok {
			return nil, modules.NoAttribute(x, "items")
		}
		for _, vhost := range slices.Sorted(maps.Keys(m)) {
			perms, _ := m[vhost].([]any)
			if len(perms) < 3 {
				return nil, modules.IndexError()
			}
			out = append(out, grant{vhost, perms})
		}
	}
	return out, nil
}

func setPermissions(ctx context.Context, c *states.Call, ret *states.Result) error {
	v, err := call(ctx, c, "list_user_permissions", c.Name())
	if err != nil {
		return err
	}
	have, _ := v.(map[string]any)
	want, err := grants(c)
	if err != nil || !slices.ContainsFunc(want, func(g grant) bool { return !nested.Equal(have[g.vhost], g.plain()) }) {
		return err
	}
	for _, g := range want {
		if !c.Test() {
			if _, err := call(ctx, c, "set_permissions", g.vhost, c.Name(), g.perms[0], g.perms[1], g.perms[2]); err != nil {
				return err
			}
		}
		old, ok := have[g.vhost].(map[string]any)
		if !ok {
			ret.Changes["perms"] = map[string]any{"new": map[string]any{g.vhost: g.plain()}}
			continue
		}
		if nested.Equal(old, g.plain()) {
			continue
		}
		perms, _ := ret.Changes["perms"].(map[string]any)
		if perms == nil {
			perms = map[string]any{"old": map[string]any{}, "new": map[string]any{}}
			ret.Changes["perms"] = perms
		}
		before, ok := perms["old"].(map[string]any)
		if !ok {
			return &modules.PythonError{Type: "KeyError", Msg: "'old'"}
		}
		maps.Copy(before, old)
		perms["new"].(map[string]any)[g.vhost] = g.plain()
	}
	return nil
}

func userAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	v, err := call(ctx, c, "user_exists", name)
	if err != nil {
		return failed(ret, err)
	}
	if !pytext.Truth(v) {
		return ret.As(states.True, "The user '"+name+"' is not present.")
	}
	if !c.Test() {
		if _, err := call(ctx, c, "delete_user", name); err != nil {
			return failed(ret, err)
		}
	}
	ret.Changes["name"] = map[string]any{"old": name, "new": ""}
	if c.Test() {
		return ret.As(states.None, "The user '"+name+"' will be removed.")
	}
	return ret.As(states.True, "The user '"+name+"' was removed.")
}
