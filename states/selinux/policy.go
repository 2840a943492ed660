package selinux

import (
	"context"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/states"
)

// ask calls a function of the module selinux with arguments of the state, by their names.
func ask(ctx context.Context, c *states.Call, fun string, more map[string]any, names ...string) (map[string]any, error) {
	kw := map[string]any{}
	for _, name := range names {
		kw[name] = c.Value(name)
	}
	for k, v := range more {
		kw[k] = v
	}
	v, err := c.ExecKw(ctx, "selinux."+fun, nil, kw)
	m, _ := v.(map[string]any)
	return m, err
}

// failed reports whether a program failed; the result then shows what it left.
func failed(ret *states.Result, out map[string]any, what string) bool {
	if out["retcode"] == int64(0) {
		return false
	}
	ret.Comment = what + pytext.Str(out)
	return true
}

func contextPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	kind, err := c.Exec(ctx, "selinux.filetype_id_to_string", c.Value("filetype"))
	if err != nil {
		return nil, err
	}
	names := []string{"name", "filetype", "sel_type", "sel_user", "sel_level"}
	now, err := ask(ctx, c, "fcontext_get_policy", nil, names...)
	if err != nil {
		return nil, err
	}
	name, want := c.Name(), c.Value("sel_type")
	before, after := map[string]any{}, map[string]any{name: map[string]any{"filetype": kind, "sel_type": want}}
	if len(now) > 0 {
		if now["sel_type"] == want {
			return ret.As(states.True, `SELinux policy for "`+name+`" already present with specified filetype "`+pytext.Str(kind)+
				`" and sel_type "`+pytext.Str(want)+`".`)
		}
		before[name] = map[string]any{"sel_type": now["sel_type"]}
		after[name] = map[string]any{"sel_type": want}
	}
	if c.Test() {
		return ret.As(states.None, "")
	}
	out, err := ask(ctx, c, "fcontext_add_policy", nil, names...)
	if err != nil {
		return nil, err
	}
	if failed(ret, out, "Error adding new rule: ") {
		return ret, nil
	}
	ret.Changes["old"], ret.Changes["new"] = before, after
	return ret.As(states.True, "")
}

func contextAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	name := c.Name()
	now, err := ask(ctx, c, "fcontext_get_policy", nil, "name", "filetype", "sel_type", "sel_user", "sel_level")
	if err != nil {
		return nil, err
	}
	if len(now) == 0 {
		return ret.As(states.True, `SELinux policy for "`+name+`" already absent with specified filetype "`+pytext.Str(c.Value("filetype"))+
			`" and sel_type "`+pytext.Str(c.Value("sel_type"))+`".`)
	}
	ret.Changes["old"], ret.Changes["new"] = map[string]any{name: now}, map[string]any{}
	if c.Test() {
		return ret.As(states.None, "")
	}
	kind := c.Value("sel_type")
	if !pytext.Truth(kind) {
		kind = now["sel_type"]
	}
	out, err := ask(ctx, c, "fcontext_delete_policy", map[string]any{"sel_type": kind}, "name", "filetype", "sel_user", "sel_level")
	if err != nil {
		return nil, err
	}
	if !failed(ret, out, "Error removing policy: ") {
		ret.Result = states.True
	}
	return ret, nil
}

func contextApplied(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	text, err := c.Exec(ctx, "selinux.fcontext_policy_is_applied", c.Value("name"), c.Value("recursive"))
	if err != nil {
		return nil, err
	}
	if text == "" {
		return ret.As(states.True, `SElinux policies are already applied for filespec "`+c.Name()+`"`)
	}
	if c.Test() {
		return ret.As(states.None, "")
	}
	v, err := c.Exec(ctx, "selinux.fcontext_apply_policy", c.Value("name"), c.Value("recursive"))
	if err != nil {
		return nil, err
	}
	out, _ := v.(map[string]any)
	if out["retcode"] != int64(0) {
		ret.Extra = map[string]any{"comment": v}
		return ret, nil
	}
	ret.Result = states.True
	if changes, ok := out["changes"].(map[string]any); ok {
		ret.Changes = changes
	} else {
		ret.Extra = map[string]any{"changes": out["changes"]}
	}
	return ret, nil
}

// portWords returns the comment about an existing policy for ports.
func portWords(c *states.Call, state string) string {
	return `SELinux policy for "` + c.Name() + `" already ` + state + ` with specified sel_type "` + pytext.Str(c.Value("sel_type")) +
		`", protocol "` + pytext.Str(c.Value("protocol")) + `" and port "` + pytext.Str(c.Value("port")) + `".`
}

func portPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	names := []string{"name", "sel_type", "protocol", "port"}
	now, err := ask(ctx, c, "port_get_policy", nil, names...)
	if err != nil {
		return nil, err
	}
	if len(now) > 0 {
		return ret.As(states.True, portWords(c, "present"))
	}
	if c.Test() {
		return ret.As(states.None, "")
	}
	before, err := c.ExecKw(ctx, "selinux.port_get_policy", nil, map[string]any{"name": c.Value("name"), "protocol": c.Value("protocol"), "port": c.Value("port")})
	if err != nil {
		return nil, err
	}
	fun := "port_add_policy"
	if pytext.Truth(before) {
		fun = "port_modify_policy"
	}
	out, err := ask(ctx, c, fun, nil, append(names, "sel_range")...)
	if err != nil {
		return nil, err
	}
	if failed(ret, out, "Error adding new policy: ") {
		return ret, nil
	}
	return ret, portChanges(ctx, c, ret, before, names)
}

// portChanges notes what the policy was and is.
func portChanges(ctx context.Context, c *states.Call, ret *states.Result, before any, names []string) error {
	kw := map[string]any{}
	for _, name := range names {
		kw[name] = c.Value(name)
	}
	after, err := c.ExecKw(ctx, "selinux.port_get_policy", nil, kw)
	ret.Result = states.True
	ret.Changes["old"], ret.Changes["new"] = before, after
	return err
}

func portAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	names := []string{"name", "sel_type", "protocol", "port"}
	now, err := ask(ctx, c, "port_get_policy", nil, names...)
	if err != nil {
		return nil, err
	}
	if len(now) == 0 {
		return ret.As(states.True, portWords(c, "absent"))
	}
	if c.Test() {
		return ret.As(states.None, "")
	}
	out, err := ask(ctx, c, "port_delete_policy", nil, "name", "protocol", "port")
	if err != nil {
		return nil, err
	}
	if failed(ret, out, "Error deleting policy: ") {
		return ret, nil
	}
	return ret, portChanges(ctx, c, ret, now, names)
}
