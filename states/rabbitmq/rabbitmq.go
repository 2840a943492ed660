// Package rabbitmq holds Salt's state modules rabbitmq_user, rabbitmq_vhost, rabbitmq_policy, rabbitmq_plugin, rabbitmq_upstream and
// rabbitmq_cluster (salt/states/rabbitmq_*.py). They work through the execution module rabbitmq.
package rabbitmq

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func available(e *modules.Env) (bool, string) {
	return e.Which("rabbitmqctl") != "", "Command not found: rabbitmqctl"
}

// call calls a function of the module rabbitmq as the state's user.
func call(ctx context.Context, c *states.Call, fun string, args ...any) (any, error) {
	return c.ExecKw(ctx, "rabbitmq."+fun, args, map[string]any{"runas": c.Value("runas")})
}

// failed makes the comment of a failed command.
func failed(ret *states.Result, err error) (*states.Result, error) {
	if !modules.IsCommandError(err) {
		return nil, err
	}
	return ret.As(states.False, "Error: "+states.ErrorText(err))
}

// said returns the server's message about a change.
func said(v any, key string) string {
	m, _ := v.(map[string]any)
	return pytext.Str(m[key])
}

func vhostPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	v, err := c.Exec(ctx, "rabbitmq.vhost_exists", name)
	if err != nil {
		return nil, err
	}
	if pytext.Truth(v) {
		return ret.As(states.True, "Virtual Host '"+name+"' already exists.")
	}
	ret.Changes = map[string]any{"old": "", "new": name}
	if c.Test() {
		return ret.As(states.None, "Virtual Host '"+name+"' will be created.")
	}
	if v, err = c.Exec(ctx, "rabbitmq.add_vhost", name); err != nil {
		return nil, err
	}
	return ret.As(states.True, said(v, "Added"))
}

func vhostAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	v, err := c.Exec(ctx, "rabbitmq.vhost_exists", name)
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(v) {
		return ret.As(states.True, "Virtual Host '"+name+"' is not present.")
	}
	ret.Changes = map[string]any{"new": "", "old": name}
	if c.Test() {
		return ret.As(states.None, "Virtual Host '"+name+"' will be removed.")
	}
	if v, err = c.Exec(ctx, "rabbitmq.delete_vhost", name); err != nil {
		return nil, err
	}
	return ret.As(states.True, said(v, "Deleted"))
}

func pluginEnabled(ctx context.Context, c *states.Call) (*states.Result, error) {
	return plugin(ctx, c, true)
}

func pluginDisabled(ctx context.Context, c *states.Call) (*states.Result, error) {
	return plugin(ctx, c, false)
}

func plugin(ctx context.Context, c *states.Call, on bool) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	v, err := call(ctx, c, "plugin_is_enabled", name)
	if err != nil {
		return failed(ret, err)
	}
	fun, word := "disable_plugin", "disabled"
	ret.Changes = map[string]any{"old": name, "new": ""}
	if on {
		fun, word = "enable_plugin", "enabled"
		ret.Changes = map[string]any{"old": "", "new": name}
	}
	if pytext.Truth(v) == on {
		ret.Changes = map[string]any{}
		return ret.As(states.True, "Plugin '"+name+"' is already "+word+".")
	}
	if c.Test() {
		return ret.As(states.None, "Plugin '"+name+"' is set to be "+word+".")
	}
	if _, err := call(ctx, c, fun, name); err != nil {
		ret.Changes = map[string]any{}
		return failed(ret, err)
	}
	return ret.As(states.True, "Plugin '"+name+"' was "+word+".")
}

func joined(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, node := c.Result(), c.Str("user")+"@"+c.Str("host")
	v, err := c.Exec(ctx, "rabbitmq.cluster_status")
	if err != nil {
		return nil, err
	}
	if text, _ := v.(string); strings.Contains(text, node) {
		return ret.As(states.True, "Already in cluster")
	}
	ret.Changes = map[string]any{"old": "", "new": node}
	if c.Test() {
		return ret.As(states.None, "Node is set to join cluster "+node)
	}
	if v, err = call(ctx, c, "join_cluster", c.Value("host"), c.Value("user"), c.Value("ram_node")); err != nil {
		return nil, err
	}
	return ret.As(states.True, said(v, "Join"))
}

// parsed returns a definition as a value, or "" if it is not set.
func parsed(v any) (any, error) {
	if !pytext.Truth(v) {
		return "", nil
	}
	s, ok := v.(string)
	if !ok {
		return nil, &modules.TypeError{Msg: "the JSON object must be str, bytes or bytearray, not " + modules.TypeName(v)}
	}
	x, err := pyjson.Parse([]byte(s))
	if err != nil {
		return nil, &modules.PythonError{Type: "JSONDecodeError", Msg: "Expecting value: line 1 column 1 (char 0)"}
	}
	return x, nil
}

func policyPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name, vhost := c.Result(), c.Name(), c.Str("vhost")
	v, err := c.ExecKw(ctx, "rabbitmq.list_policies", nil, map[string]any{"vhost": c.Value("vhost"), "runas": c.Value("runas")})
	if err != nil {
		return nil, err
	}
	all, _ := v.(map[string]any)
	in, _ := all[vhost].(map[string]any)
	policy, _ := in[name].(map[string]any)
	updates, err := outdated(c, policy)
	if err != nil {
		return nil, err
	}
	title, verb := "Policy "+vhost+" "+name+" is ", "updated"
	switch {
	case len(policy) == 0:
		ret.Changes, verb = map[string]any{"old": map[string]any{}, "new": name}, "created"
	case len(updates) == 0:
		return ret.As(states.True, title+"already present")
	default:
		ret.Changes = map[string]any{"old": policy, "new": updates}
	}
	if c.Test() {
		return ret.As(states.None, title+"set to be "+verb)
	}
	v, err = c.ExecKw(ctx, "rabbitmq.set_policy", []any{c.Value("vhost"), name, c.Value("pattern"), c.Value("definition")}, map[string]any{
		"priority": c.Value("priority"), "runas": c.Value("runas"), "apply_to": c.Value("apply_to"),
	})
	if err != nil {
		return nil, err
	}
	return ret.As(states.True, said(v, "Set"))
}

// outdated returns the parts of a policy that differ from the wanted ones. apply_to counts as different whenever it
// is set: stock looks it up under another name than the execution module returns.
func outdated(c *states.Call, policy map[string]any) ([]any, error) {
	if len(policy) == 0 {
		return nil, nil
	}
	var list []any
	if !nested.Equal(policy["pattern"], c.Value("pattern")) {
		list = append(list, "Pattern")
	}
	is, err := parsed(policy["definition"])
	if err != nil {
		return nil, err
	}
	should, err := parsed(c.Value("definition"))
	if err != nil {
		return nil, err
	}
	if !nested.Equal(is, should) {
		list = append(list, "Definition")
	}
	if c.Bool("apply_to") {
		list = append(list, "Applyto")
	}
	n, err := modules.ToInt(policy["priority"])
	if err != nil {
		return nil, err
	}
	if !nested.Equal(n, c.Value("priority")) {
		list = append(list, "Priority")
	}
	return list, nil
}

func policyAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	title := "Policy '" + c.Str("vhost") + " " + name + "' "
	v, err := call(ctx, c, "policy_exists", c.Value("vhost"), name)
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(v) {
		return ret.As(states.True, title+"is not present.")
	}
	ret.Changes = map[string]any{"new": "", "old": name}
	if c.Test() {
		return ret.As(states.None, title+"will be removed.")
	}
	if _, err := call(ctx, c, "delete_policy", c.Value("vhost"), name); err != nil {
		return nil, err
	}
	return ret.As(states.True, "Deleted")
}

// upstreamOptions returns the names of an upstream's options.
func upstreamOptions() []string {
	return []string{
		"uri", "prefetch_count", "reconnect_delay", "ack_mode", "trust_user_id", "exchange", "max_hops", "expires", "message_ttl",
		"ha_policy", "queue",
	}
}

func upstreamPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	v, err := call(ctx, c, "list_upstreams")
	if err != nil {
		return failed(ret, err)
	}
	want, kw := map[string]any{}, map[string]any{"runas": c.Value("runas")}
	for _, o := range upstreamOptions() {
		kw[o] = c.Value(o)
		if pytext.Truth(kw[o]) {
			want[strings.ReplaceAll(o, "_", "-")] = kw[o]
		}
	}
	action, changes := "create", map[string]any{"old": nil, "new": want}
	all, _ := v.(map[string]any)
	if text, ok := all[name]; ok {
		x, err := parsed(text)
		if err != nil {
			return nil, err
		}
		have, _ := x.(map[string]any)
		if action, changes = "update", difference(have, want); len(changes) == 0 {
			return ret.As(states.True, `Upstream "`+name+`" already present as specified.`)
		}
	}
	if c.Test() {
		return ret.As(states.None, `Upstream "`+name+`" would have been `+action+"d.")
	}
	done, err := c.ExecKw(ctx, "rabbitmq.set_upstream", []any{name}, kw)
	if modules.IsCommandError(err) {
		return ret.As(states.False, "Error trying to "+action+" upstream: "+states.ErrorText(err))
	}
	if err != nil {
		return nil, err
	}
	ret.Changes = changes
	return ret.As(states.OutcomeOf(pytext.Truth(done)), `Upstream "`+name+`" `+action+"d.")
}

// difference returns the differences between two flat maps: the old and the new values.
func difference(have, want map[string]any) map[string]any {
	old, now, ret := map[string]any{}, map[string]any{}, map[string]any{}
	for k, v := range have {
		if w, ok := want[k]; !ok || !nested.Equal(v, w) {
			old[k] = v
		}
	}
	for k, w := range want {
		if v, ok := have[k]; !ok || !nested.Equal(v, w) {
			now[k] = w
		}
	}
	if len(old) > 0 {
		ret["old"] = old
	}
	if len(now) > 0 {
		ret["new"] = now
	}
	return ret
}

func upstreamAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	v, err := call(ctx, c, "upstream_exists", name)
	if err != nil {
		return failed(ret, err)
	}
	if !pytext.Truth(v) {
		return ret.As(states.True, `The upstream "`+name+`" is already absent.`)
	}
	if c.Test() {
		return ret.As(states.None, `Upstream "`+name+`" would have been deleted.`)
	}
	if _, err := call(ctx, c, "delete_upstream", name); err != nil {
		return failed(ret, err)
	}
	ret.Changes = map[string]any{"old": name, "new": nil}
	return ret.As(states.True, `Upstream "`+name+`" has been deleted.`)
}
