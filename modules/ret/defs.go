// Package ret is Salt's execution module "ret": what returners have kept. Salt's source: salt/modules/ret.py.
package ret

import (
	"context"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

// ask calls a function of a returner.
func ask(ctx context.Context, c *modules.Call, function string, params ...string) (any, error) {
	var all []*modules.Module
	if c.Others != nil {
		all = c.Others("returners")
	}
	r := modules.NewRegistryOf(modules.Returner, all...)
	fun := c.Str("returner") + "." + function
	if _, err := r.Lookup(fun, c.Env); err != nil {
		return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(fun)}
	}
	var args []any
	for _, p := range params {
		args = append(args, c.Value(p))
	}
	res := r.Run(ctx, c.Env, modules.Request{Fun: fun, Args: args})
	return res.Return, res.Err
}

// Module is Salt's "ret": what returners have kept.
var Module = &modules.Module{Name: "ret", Doc: "What returners have kept.", Funcs: []modules.Def{
	{Name: "get_fun", Doc: "Show the last return of a function for each minion.", Example: "salt '*' ret.get_fun mysql network.interfaces", Params: []modules.Param{{Name: "returner"}, {Name: "fun"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return ask(ctx, c, "get_fun", "fun") }},
	{Name: "get_jid", Doc: "Show the returns of a job.", Example: "salt '*' ret.get_jid redis 20421104181954700505", Params: []modules.Param{{Name: "returner"}, {Name: "jid"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return ask(ctx, c, "get_jid", "jid") }},
	{Name: "get_jids", Doc: "List the jobs.", Example: "salt '*' ret.get_jids mysql", Params: []modules.Param{{Name: "returner"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return ask(ctx, c, "get_jids") }},
	{Name: "get_minions", Doc: "List the minions that have returned something.", Example: "salt '*' ret.get_minions mysql", Params: []modules.Param{{Name: "returner"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return ask(ctx, c, "get_minions") }},
}}
