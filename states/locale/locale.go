// Package locale is Salt's state module "locale": the host's locale, and which ones it has (salt/states/locale.py).
package locale

import (
	"context"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "locale".
var Module = &states.Module{
	Name: "locale", Doc: "The host's locale, and which ones it has.",
	Needs: "locale.get_locale", Otherwise: "'locale.get_locale' is not available.",
	Funcs: []states.Def{
		{Name: "present", Doc: presentDoc, Params: []modules.Param{{Name: "name"}}, Run: present},
		{Name: "system", Doc: systemDoc, Params: []modules.Param{{Name: "name"}}, Run: system},
	},
}

const (
	systemDoc = `Have a locale as that of the host.

name
    the locale`
	presentDoc = `Have a locale that can be used, and generate it if necessary.

name
    the locale`
)

func system(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	name := c.Str("name")
	caught := func(err error) (*states.Result, error) {
		if modules.IsExecError(err) {
			return ret.As(states.False, "Failed to set system locale: "+states.ErrorText(err))
		}
		return nil, err
	}
	now, err := c.Exec(ctx, "locale.get_locale")
	switch {
	case err != nil:
		return caught(err)
	case now == c.Value("name"):
		return ret.As(states.True, "System locale "+name+" already set")
	case c.Test():
		return ret.As(states.None, "System locale "+name+" needs to be set")
	}
	done, err := c.Exec(ctx, "locale.set_locale", c.Value("name"))
	if err != nil {
		return caught(err)
	}
	if !pytext.Truth(done) {
		return ret.As(states.False, "Failed to set system locale to "+name)
	}
	ret.Changes["locale"] = c.Value("name")
	return ret.As(states.True, "Set system locale "+name)
}

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	name := c.Str("name")
	there, err := c.Exec(ctx, "locale.avail", c.Value("name"))
	switch {
	case err != nil:
		return nil, err
	case pytext.Truth(there):
		return ret.As(states.True, "Locale "+name+" is already present")
	case c.Test():
		return ret.As(states.None, "Locale "+name+" needs to be generated")
	}
	done, err := c.Exec(ctx, "locale.gen_locale", c.Value("name"))
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(done) {
		return ret.As(states.False, "Failed to generate locale "+name)
	}
	ret.Changes["locale"] = c.Value("name")
	return ret.As(states.True, "Generated locale "+name)
}
