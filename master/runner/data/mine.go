package data

import (
	"context"

	"github.com/brine-salt/brine/master/runner/host"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/payload"
)

// mineModule declares the runner mine (salt/runners/mine.py).
func (f funcs) mineModule() *modules.Module {
	return &modules.Module{Name: "mine", Doc: "The mine: what minions publish for others.",
		Funcs: []modules.Def{
			{Name: "get", Doc: `The mine data of minions for functions.

tgt, tgt_type
    The minions.
fun
    A function, or several with commas between or as a list; then the answer is by function.

    salt-run mine.get '*' network.interfaces`, Params: []modules.Param{{Name: "tgt"}, {Name: "fun"}, {Name: "tgt_type", Default: "glob"}}, Run: f.mineGet},
			{Name: "update", Doc: `Let minions send their mine data now.

    salt-run mine.update '*'`, Params: []modules.Param{{Name: "tgt"}, {Name: "tgt_type", Default: "glob"}, {Name: "clear", Default: false, Type: modules.Bool},
				{Name: "mine_functions", Optional: true}}, Run: f.mineUpdate},
		}}
}

// mineGet is mine.get, which returns mine data by minion for one function, and by function and minion for a
// list of functions. Access rules do not apply: callers who may run runners see the whole mine.
func (f funcs) mineGet(_ context.Context, c *modules.Call) (any, error) {
	ids, err := f.Meant(c)
	if err != nil {
		return nil, err
	}
	var names []string
	if s, ok := c.Value("fun").(string); ok {
		names = host.SplitInput(s)
	} else {
		names = c.Strings("fun")
	}
	byFun := map[string]any{}
	for _, fun := range names {
		of := map[string]any{}
		mines := f.Cache.MineReader(ids)
		for _, id := range ids {
			if v, ok := mines.Mine(id)[fun]; ok {
				of[id] = mineValue(v)
			}
		}
		if err := mines.Err(); err != nil {
			return nil, err
		}
		if len(of) > 0 {
			byFun[fun] = of
		}
	}
	if len(names) == 1 {
		if s, ok := c.Value("fun").(string); ok {
			if v, ok := byFun[s]; ok {
				return v, nil
			}
			return map[string]any{}, nil
		}
	}
	return byFun, nil
}

// mineValue unwraps a value with access rules (salt.utils.mine.MINE_ITEM_ACL_DATA).
func mineValue(v any) any {
	if m, ok := payload.Map(v); ok {
		if inner, ok := m["__data__"]; ok {
			return inner
		}
	}
	return v
}

// mineUpdate is mine.update, which makes minions send their mine data now.
func (f funcs) mineUpdate(ctx context.Context, c *modules.Call) (any, error) {
	return f.Values(ctx,
		host.Job{Tgt: c.Value("tgt"), TgtType: c.Str("tgt_type"), Fun: "mine.update",
			Kwargs: map[string]any{"clear": c.Value("clear"),
				"mine_functions": c.Value("mine_functions")}})
}
