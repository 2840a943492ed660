// Package environ is Salt's execution module "environ": environment variables of the job. Salt's source:
// salt/modules/environ.py.
//
// Stock changes the environment of the process that runs the job; here jobs share a process, so that what a job sets is seen
// by the rest of the job and by the programs that it starts.
package environ

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/jobenv"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// environ.setval differs: on Windows permanent is not supported; nothing is written to the registry.
// environ.setenv differs: on Windows permanent is not supported; nothing is written to the registry.
// environ.setenv differs: update_minion has no effect beyond the job.

func setval(_ context.Context, c *modules.Call) (any, error) {
	key, ok := c.Value("key").(string)
	if !ok {
		return false, nil
	}
	return set(c, key, c.Value("val"), c.Value("false_unsets") == any(true)), nil
}

// set changes one variable and returns its new value, or false if that is not possible.
func set(c *modules.Call, key string, val any, unset bool) any {
	if val == any(false) {
		if unset {
			if strings.IndexByte(key, 0) >= 0 {
				return false
			}
			c.Context().Unsetenv(key)
			return nil
		}
		val = ""
	}
	text, ok := val.(string)
	if !ok || key == "" || strings.ContainsAny(key, "=\x00") || strings.IndexByte(text, 0) >= 0 {
		return false
	}
	c.Context().Setenv(key, text)
	return text
}

func setenv(_ context.Context, c *modules.Call) (any, error) {
	vars, ok := c.Value("environ").(map[string]any)
	if !ok {
		return false, nil
	}
	unset, ret := c.Value("false_unsets") == any(true), map[string]any{}
	if c.Value("clear_all") == any(true) {
		for name := range jobenv.Map(c.Context().Environ()) {
			if _, keep := vars[name]; !keep {
				ret[name] = set(c, name, false, unset)
			}
		}
	}
	for name, val := range vars {
		if _, isText := val.(string); !isText && val != any(false) {
			return false, nil
		}
		ret[name] = set(c, name, val, unset)
	}
	if c.Value("update_minion") == any(true) {
		c.Logger().Warn("update_minion is not supported; the variables are those of this job")
	}
	return ret, nil
}

func get(_ context.Context, c *modules.Call) (any, error) {
	key, ok := c.Value("key").(string)
	if !ok {
		return false, nil
	}
	return lookup(c, key, c.Value("default")), nil
}

func lookup(c *modules.Call, key string, def any) any {
	if v, ok := c.Context().Getenv(key); ok {
		return v
	}
	return def
}

func hasValue(_ context.Context, c *modules.Call) (any, error) {
	key, ok := c.Value("key").(string)
	if !ok {
		return false, nil
	}
	v, ok := c.Context().Getenv(key)
	return ok && (c.Value("value") == nil || c.Value("value") == any(v)), nil
}

func item(_ context.Context, c *modules.Call) (any, error) {
	ret := map[string]any{}
	list, _ := c.Value("keys").([]any)
	if key, ok := c.Value("keys").(string); ok {
		list = []any{key}
	}
	for _, k := range list {
		key, ok := k.(string)
		if !ok {
			return nil, &modules.TypeError{Msg: "str expected, not " + modules.TypeName(k)}
		}
		ret[key] = lookup(c, key, c.Value("default"))
	}
	return ret, nil
}

func items(_ context.Context, c *modules.Call) (any, error) {
	ret := map[string]any{}
	for k, v := range jobenv.Map(c.Context().Environ()) {
		ret[k] = v
	}
	return ret, nil
}
