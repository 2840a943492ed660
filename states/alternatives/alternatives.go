// Package alternatives is Salt's state module "alternatives": which of several programs a generic name stands for
// (salt/states/alternatives.py).
package alternatives

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "alternatives".
var Module = &states.Module{
	Name: "alternatives", Doc: "Which of several programs a generic name stands for.",
	Needs: "alternatives.auto", Otherwise: "alernatives module could not be loaded",
	Funcs: []states.Def{
		{Name: "auto", Doc: autoDoc, Params: []modules.Param{{Name: "name"}}, Run: auto},
		{Name: "install", Doc: installDoc, Params: []modules.Param{{Name: "name"}, {Name: "link"}, {Name: "path"}, {Name: "priority"}}, Run: install},
		{Name: "remove", Doc: removeDoc, Params: []modules.Param{{Name: "name"}, {Name: "path"}}, Run: remove},
		{Name: "set", Python: "set_", Doc: setDoc, Params: []modules.Param{{Name: "name"}, {Name: "path"}}, Run: set},
	},
}

const (
	installDoc = `Have a program among the alternatives for a name.

name
    the generic name
link
    the link that stands for it
path
    the program
priority
    the program with the highest number is chosen, where nobody has chosen another`
	removeDoc = `Have a program not among the alternatives for a name.

name
    the generic name
path
    the program`
	autoDoc = `Have the alternative with the highest priority chosen.

name
    the generic name`
	setDoc = `Have a certain alternative chosen.

name
    the generic name
path
    the program`
)

// group is a generic name while a state about it runs.
type group struct {
	*states.Call
	ctx context.Context
	ret *states.Result
}

// of begins a state; keys are arguments that the result shows.
func of(ctx context.Context, c *states.Call, keys ...string) *group {
	g := &group{Call: c, ctx: ctx, ret: c.Result()}
	g.ret.Result = states.True
	for _, key := range keys {
		if g.ret.Extra == nil {
			g.ret.Extra = map[string]any{}
		}
		g.ret.Extra[key] = c.Value(key)
	}
	return g
}

func (g *group) ask(fun string, args ...any) (any, error) {
	return g.Exec(g.ctx, "alternatives."+fun, append([]any{g.Value("name")}, args...)...)
}

// yes asks a question about the program.
func (g *group) yes(fun string) (bool, error) {
	v, err := g.ask(fun, g.Value("path"))
	return pytext.Truth(v), err
}

func install(ctx context.Context, c *states.Call) (*states.Result, error) {
	g := of(ctx, c, "link", "path", "priority")
	name, path, priority := c.Str("name"), c.Str("path"), c.Str("priority")
	there, err := g.yes("check_exists")
	switch {
	case err != nil:
		return nil, err
	case there:
		return g.ret.As(states.True, "Alternative "+path+" for "+name+" is already registered")
	case c.Test():
		return g.ret.As(states.None, "Alternative will be set for "+name+" to "+path+" with priority "+priority)
	}
	out, err := g.ask("install", c.Value("link"), c.Value("path"), c.Value("priority"))
	if err != nil {
		return nil, err
	}
	if there, err = g.yes("check_exists"); err != nil {
		return nil, err
	}
	if !there {
		return g.ret.As(states.False, "Alternative for "+name+" not installed: "+pytext.Str(out))
	}
	chosen, err := g.yes("check_installed")
	if err != nil {
		return nil, err
	}
	g.ret.Changes = map[string]any{"name": c.Value("name"), "link": c.Value("link"), "path": c.Value("path"), "priority": c.Value("priority")}
	if chosen {
		return g.ret.As(states.True, "Alternative for "+name+" set to path "+path+" with priority "+priority)
	}
	return g.ret.As(states.True, "Alternative "+path+" for "+name+" registered with priority "+priority+" and not set to default")
}

func remove(ctx context.Context, c *states.Call) (*states.Result, error) {
	g := of(ctx, c, "path")
	name := c.Str("name")
	there, err := g.yes("check_exists")
	if err != nil {
		return nil, err
	}
	if there && c.Test() {
		return g.ret.As(states.None, "Alternative for "+name+" will be removed")
	}
	if there {
		if _, err := g.ask("remove", c.Value("path")); err != nil {
			return nil, err
		}
	}
	current, err := g.ask("show_current")
	switch {
	case err != nil:
		return nil, err
	case there && pytext.Truth(current):
		g.ret.Changes["path"] = current
		return g.ret.As(states.True, "Alternative for "+name+" removed. Falling back to path "+pytext.Str(current))
	case there:
		return g.ret.As(states.True, "Alternative for "+name+" removed")
	case pytext.Truth(current):
		return g.ret.As(states.True, "Alternative for "+name+" is set to it's default path "+pytext.Str(current))
	}
	return g.ret.As(states.False, "Alternative for "+name+" doesn't exist")
}

// display returns the lines that update-alternatives prints about the name.
func (g *group) display() ([]string, error) {
	v, err := g.ask("display")
	if err != nil {
		return nil, err
	}
	text, ok := v.(string)
	if !ok {
		return nil, modules.NoAttribute(v, "splitlines")
	}
	return pytext.SplitLines(text, false), nil
}

func auto(ctx context.Context, c *states.Call) (*states.Result, error) {
	g := of(ctx, c)
	lines, err := g.display()
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, modules.IndexError()
	}
	switch {
	case strings.HasSuffix(lines[0], " auto mode"):
		return g.ret.As(states.True, c.Str("name")+" already in auto mode")
	case c.Test():
		return g.ret.As(states.None, c.Str("name")+" will be put in auto mode")
	}
	g.ret.Changes["result"], err = g.ask("auto")
	return g.ret, err
}

func set(ctx context.Context, c *states.Call) (*states.Result, error) {
	g := of(ctx, c, "path")
	name, path := c.Str("name"), c.Str("path")
	current, err := g.ask("show_current")
	if err != nil {
		return nil, err
	}
	if current == c.Value("path") {
		return g.ret.As(states.True, "Alternative for "+name+" already set to "+path)
	}
	lines, err := g.display()
	if err != nil {
		return nil, err
	}
	there := false
	for _, line := range lines {
		there = there || strings.HasPrefix(line, path)
	}
	if !there {
		return g.ret.As(states.False, "Alternative "+path+" for "+name+" doesn't exist")
	}
	if c.Test() {
		return g.ret.As(states.None, "Alternative for "+name+" will be set to path "+path)
	}
	if _, err := g.ask("set", c.Value("path")); err != nil {
		return nil, err
	}
	if current, err = g.ask("show_current"); err != nil {
		return nil, err
	}
	if current != c.Value("path") {
		return g.ret.As(states.True, "Alternative for "+name+" not updated")
	}
	g.ret.Changes["path"] = current
	return g.ret.As(states.True, "Alternative for "+name+" set to path "+path)
}
