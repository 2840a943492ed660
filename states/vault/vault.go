// Package vault is Salt's state module "vault": policies of a server of HashiCorp Vault or OpenBao (salt/states/vault.py).
package vault

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/python/difflib"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "vault".
var Module = &states.Module{Name: "vault", Doc: "Policies of a server of HashiCorp Vault or OpenBao.", Funcs: []states.Def{
	{Name: "policy_absent", Doc: "Have no policy of this name.", Params: []modules.Param{{Name: "name"}}, Run: policyAbsent},
	{Name: "policy_present", Doc: `Have a policy with these rules.

rules
    the rules, in HCL`, Params: []modules.Param{{Name: "name"}, {Name: "rules"}}, Run: policyPresent},
}}

// fetch returns the rules of a policy, or nil if it is missing. If that fails, done is the result.
func fetch(ctx context.Context, c *states.Call) (rules any, done *states.Result, err error) {
	rules, err = c.Exec(ctx, "vault.policy_fetch", c.Name())
	if modules.IsExecError(err) {
		done, err = c.Result().As(states.False, "Failed to read policy: "+err.Error())
	}
	return rules, done, err
}

func policyPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	old, done, err := fetch(ctx, c)
	if done != nil || err != nil {
		return done, err
	}
	ret, rules := c.Result(), c.Value("rules")
	if old == rules && old != nil {
		return ret.As(states.True, "Policy exists, and has the correct content")
	}
	text, ok := rules.(string)
	if !ok {
		return nil, &modules.PythonError{Type: "AttributeError", Msg: "'" + modules.TypeName(rules) + "' object has no attribute 'splitlines'"}
	}
	before, _ := old.(string)
	ret.Changes[c.Name()] = strings.Join(difflib.UnifiedLines(pytext.SplitLines(before, true), pytext.SplitLines(text, true), "", ""), "")
	verb := "updated"
	if old == nil {
		verb = "created"
	}
	if c.Test() {
		return ret.As(states.None, "Policy would be "+verb)
	}
	if _, err := c.Exec(ctx, "vault.policy_write", c.Name(), rules); modules.IsExecError(err) {
		return c.Result().As(states.False, "Failed to write policy: "+err.Error())
	} else if err != nil {
		return nil, err
	}
	return ret.As(states.True, "Policy has been "+verb)
}

func policyAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	old, done, err := fetch(ctx, c)
	if done != nil || err != nil {
		return done, err
	}
	ret := c.Result()
	if old == nil {
		return ret.As(states.True, "Policy is already absent")
	}
	ret.Changes["deleted"] = c.Name()
	if c.Test() {
		return ret.As(states.None, "Policy would be deleted")
	}
	deleted, err := c.Exec(ctx, "vault.policy_delete", c.Name())
	if err == nil && !pytext.Truth(deleted) {
		err = modules.Errorf("Policy was initially reported as existent, but seemed to be absent while deleting.")
	}
	if modules.IsExecError(err) {
		return c.Result().As(states.False, "Failed to delete policy: "+err.Error())
	}
	if err != nil {
		return nil, err
	}
	return ret.As(states.True, "Policy has been deleted")
}
