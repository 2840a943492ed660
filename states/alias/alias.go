// Package alias is Salt's state module "alias": aliases of mail addresses (salt/states/alias.py).
package alias

import (
	"context"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "alias".
var Module = &states.Module{Name: "alias", Doc: "Aliases of mail addresses.", Funcs: []states.Def{
	{Name: "absent", Doc: absentDoc, Params: []modules.Param{{Name: "name"}}, Run: absent},
	{Name: "present", Doc: presentDoc, Params: []modules.Param{{Name: "name"}, {Name: "target"}}, Run: present},
}}

const (
	absentDoc = `Have no such alias.

name
    the alias`
	presentDoc = `Have an alias that leads to this target.

name
    the alias
target
    where its mail goes`
)

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	what := c.Name() + " -> " + pytext.Str(c.Value("target"))
	there, err := c.Exec(ctx, "aliases.has_target", c.Value("name"), c.Value("target"))
	if err != nil {
		return nil, err
	}
	if pytext.Truth(there) {
		return ret.As(states.True, "Alias "+c.Name()+" already present")
	}
	if c.Test() {
		return ret.As(states.None, "Alias "+what+" is set to be added")
	}
	done, err := c.Exec(ctx, "aliases.set_target", c.Value("name"), c.Value("target"))
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(done) {
		return ret.As(states.False, "Failed to set alias "+what)
	}
	ret.Changes["alias"] = c.Value("name")
	return ret.As(states.True, "Set email alias "+what)
}

func absent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	have, err := c.Exec(ctx, "aliases.get_target", c.Value("name"))
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(have) {
		return ret.As(states.True, "Alias "+c.Name()+" already absent")
	}
	if c.Test() {
		return ret.As(states.None, "Alias "+c.Name()+" is set to be removed")
	}
	done, err := c.Exec(ctx, "aliases.rm_alias", c.Value("name"))
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(done) {
		return ret.As(states.False, "Failed to remove alias "+c.Name())
	}
	ret.Changes["alias"] = c.Value("name")
	return ret.As(states.True, "Removed alias "+c.Name())
}
