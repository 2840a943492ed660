// Package redismod is Salt's state module "redis": keys of a Redis server (salt/states/redismod.py). It works through the
// execution module redis. As in stock, test mode does not keep the functions string and absent from changing anything.
package redismod

import (
	"context"
	"maps"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// call calls a function of the module redis with the connection that the state's further arguments describe.
func call(ctx context.Context, c *states.Call, fun string, args ...any) (any, error) {
	return c.ExecKw(ctx, "redis."+fun, args, c.Keywords)
}

func text(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	ret.Result, ret.Comment = states.True, "Key already set to defined value"
	have, err := call(ctx, c, "get_key", name)
	if err != nil {
		return nil, err
	}
	if !nested.Equal(have, c.Value("value")) {
		if _, err := call(ctx, c, "set_key", name, c.Value("value")); err != nil {
			return nil, err
		}
		ret.Changes[name], ret.Comment = "Value updated", "Key updated to new value"
	}
	switch {
	case c.Bool("expireat"):
		if _, err := call(ctx, c, "expireat", name, c.Value("expireat")); err != nil {
			return nil, err
		}
		ret.Changes["expireat"] = "Key expires at " + c.Str("expireat")
	case c.Bool("expire"):
		if _, err := call(ctx, c, "expire", name, c.Value("expire")); err != nil {
			return nil, err
		}
		ret.Changes["expire"] = "TTL set to " + c.Str("expire") + " seconds"
	}
	return ret, nil
}

func absent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	keys, done := []any{c.Value("name")}, "Key deleted"
	if c.Bool("keys") {
		list, ok := c.Value("keys").([]any)
		if !ok {
			return ret.As(states.False, "`keys` not formed as a list type")
		}
		keys, done = list, "Keys deleted"
	}
	there := []any{}
	for _, key := range keys {
		v, err := call(ctx, c, "exists", key)
		if err != nil {
			return nil, err
		}
		if pytext.Truth(v) {
			there = append(there, key)
		}
	}
	if len(there) == 0 {
		return ret.As(states.True, "Key(s) specified already absent")
	}
	if _, err := call(ctx, c, "delete", there...); err != nil {
		return nil, err
	}
	ret.Changes["deleted"] = there
	return ret.As(states.True, done)
}

func slaveof(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	v, err := c.Exec(ctx, "redis.sentinel_get_master_ip", name, c.Value("sentinel_host"), c.Value("sentinel_port"), c.Value("sentinel_password"))
	if err != nil {
		return nil, err
	}
	master, _ := v.(map[string]any)
	own, err := c.Exec(ctx, "network.ip_addrs")
	if err != nil {
		return nil, err
	}
	if list, _ := own.([]any); nested.Contains(list, master["master_host"]) {
		return ret.As(states.True, "Minion is the master: "+name)
	}
	first, err := call(ctx, c, "get_master_ip")
	if err != nil {
		return nil, err
	}
	if nested.Equal(first, master) {
		return ret.As(states.True, "Minion already slave of master: "+name)
	}
	if c.Test() {
		// Stock's own text for this case asks the address for a key that it has not.
		return nil, &modules.PythonError{Type: "KeyError", Msg: "'host'"}
	}
	kw := maps.Clone(c.Keywords)
	if kw == nil {
		kw = map[string]any{}
	}
	maps.Copy(kw, master)
	if _, err := c.ExecKw(ctx, "redis.slaveof", nil, kw); err != nil {
		return nil, err
	}
	now, err := call(ctx, c, "get_master_ip")
	if err != nil {
		return nil, err
	}
	if !nested.Equal(now, master) {
		return ret.As(states.False, "Failed to setup slave")
	}
	ret.Changes = map[string]any{"old": first, "new": now}
	return ret.As(states.True, "Minion successfully connected to master: "+name)
}
