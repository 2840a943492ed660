// Package keyboard is Salt's state module "keyboard": the layouts of the console and of X (salt/states/keyboard.py).
package keyboard

import (
	"context"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "keyboard".
var Module = &states.Module{
	Name: "keyboard", Doc: "The layouts of the console and of X.",
	Needs: "keyboard.get_sys", Otherwise: "keyboard module could not be loaded",
	Funcs: []states.Def{
		{Name: "system", Doc: systemDoc, Params: []modules.Param{{Name: "name"}}, Run: system},
		{Name: "xorg", Doc: xorgDoc, Params: []modules.Param{{Name: "name"}}, Run: xorg},
	},
}

const (
	systemDoc = `Have a layout for the keyboard of the console.

name
    the layout`
	xorgDoc = `Have a layout for the keyboard under X.

name
    the layout`
)

func system(ctx context.Context, c *states.Call) (*states.Result, error) {
	return layout(ctx, c, "sys", "System layout", "system")
}

func xorg(ctx context.Context, c *states.Call) (*states.Result, error) {
	return layout(ctx, c, "x", "XOrg layout", "XOrg")
}

func layout(ctx context.Context, c *states.Call, fun, what, kind string) (*states.Result, error) {
	ret := c.Result()
	name := c.Str("name")
	now, err := c.Exec(ctx, "keyboard.get_"+fun)
	switch {
	case err != nil:
		return nil, err
	case now == c.Value("name"):
		return ret.As(states.True, what+" "+name+" already set")
	case c.Test():
		return ret.As(states.None, what+" "+name+" needs to be set")
	}
	done, err := c.Exec(ctx, "keyboard.set_"+fun, c.Value("name"))
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(done) {
		return ret.As(states.False, "Failed to set "+kind+" keyboard layout")
	}
	ret.Changes["layout"] = c.Value("name")
	return ret.As(states.True, "Set "+kind+" keyboard layout "+name)
}
