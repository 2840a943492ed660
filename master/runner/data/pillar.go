package data

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/master/runner/host"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/payload"
)

// pillarModule declares the runner pillar (salt/runners/pillar.py).
func (f funcs) pillarModule() *modules.Module {
	return &modules.Module{Name: "pillar", Doc: "The pillar that minions get.",
		Funcs: []modules.Def{
			{Name: "show_pillar", Doc: `The pillar of a minion, compiled now.

minion
    A minion's id. Further keyword arguments are grains, but for saltenv and pillarenv.

    salt-run pillar.show_pillar web1
    salt-run pillar.show_pillar web1 pillarenv=dev os=Debian`, Params: []modules.Param{{Name: "minion", Default: "*"}}, Kwargs: "kwargs", Run: f.showPillar},
			{Name: "show_top", Doc: `The top files of the pillar, merged, or what is wrong with them.

minion
    A minion's id, whose grains templates see.

    salt-run pillar.show_top
    salt-run pillar.show_top web1 saltenv=dev`, Params: []modules.Param{{Name: "minion", Optional: true}, {Name: "saltenv", Default: "base"}}, Run: f.showTop},
			{Name: "clear_pillar_cache", Doc: `Forget the pillars that the master keeps for a time (pillar_cache). The answer is what is left of them: nothing, or False if the
master keeps none. With pillar_cache_backend: memory they are the running master's, and salt-run does not reach them.

minion
    Which minions, as a glob.

    salt-run pillar.clear_pillar_cache 'web*'`, Params: []modules.Param{{Name: "minion", Default: "*"}}, Kwargs: "kwargs", Run: f.clearPillars},
			{Name: "show_pillar_cache", Doc: `The pillars that the master keeps for a time (pillar_cache), by minion, and those that are too old to be given as well; False if the
master keeps none. With pillar_cache_backend: memory they are the running master's, and salt-run does not see them.

minion
    Which minions, as a glob. A keyword argument pillarenv names the environment.

    salt-run pillar.show_pillar_cache web1`, Params: []modules.Param{{Name: "minion", Default: "*"}}, Kwargs: "kwargs", Run: f.keptPillars},
		}}
}

// keptFor returns the targeted minions and the environment.
func (f funcs) keptFor(c *modules.Call) (ids []string, pillarenv string, err error) {
	if f.Match != nil {
		ids, err = f.Match("glob", c.Str("minion"))
	}
	if env := c.Keywords["pillarenv"]; env != nil {
		pillarenv = pytext.Str(env)
	}
	return ids, pillarenv, err
}

// keptPillars returns the pillars cached with the option pillar_cache, or false without it.
func (f funcs) keptPillars(_ context.Context, c *modules.Call) (any, error) {
	if f.KeptPillars == nil {
		return false, nil
	}
	ids, pillarenv, err := f.keptFor(c)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, id := range ids {
		if p, ok := f.KeptPillars.Shown(id, pillarenv); ok {
			out[id] = p
		}
	}
	return out, nil
}

// clearPillars empties that cache, so that pillars are compiled again at the next request.
func (f funcs) clearPillars(_ context.Context, c *modules.Call) (any, error) {
	if f.KeptPillars == nil {
		return false, nil
	}
	ids, _, err := f.keptFor(c)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := f.KeptPillars.Clear(id); err != nil {
			return nil, modules.Errorf("cannot forget the pillar of %s: %s", id, err)
		}
	}
	return map[string]any{}, nil
}

// showTop is pillar.show_top, which returns the pillar top file for one minion, or for a minion without grains.
// Rendering errors are part of the answer.
func (f funcs) showTop(ctx context.Context, c *modules.Call) (any, error) {
	if f.PillarTop == nil {
		return map[string]any{}, nil
	}
	r := pillar.Request{ID: host.Text(c, "minion"), Saltenv: c.Str("saltenv"),
		Grains: map[string]any{}}
	if f.Cache != nil && r.ID != "" {
		if d, ok := f.Cache.Ordered(r.ID); ok && d.Grains != nil {
			r.Grains, r.GrainsOrder = d.Plain().Grains, d.Grains
		}
	}
	top, errs, err := f.PillarTop(ctx, r)
	if err != nil || len(errs) == 0 {
		return top, err
	}
	c.Progress(map[string]any{"data": nested.Anys(errs), "outputter": "nested"})
	return nested.Anys(errs), nil
}

// showPillar is pillar.show_pillar, which compiles the pillar of a minion with its cached grains. Keyword
// arguments are additional grains, which shows the pillar of a minion that does not exist yet.
func (f funcs) showPillar(ctx context.Context, c *modules.Call) (any, error) {
	if f.Pillar == nil {
		return map[string]any{}, nil
	}
	id := c.Str("minion")
	r := pillar.Request{ID: id, Grains: map[string]any{"fqdn": id}, Saltenv: "base"}
	if f.Match != nil && f.Cache != nil {
		// As in Salt, the first minion that matches the name as a glob.
		ids, err := f.Match("glob", id)
		if err == nil && len(ids) > 0 {
			if d, ok := f.Cache.Ordered(ids[0]); ok && len(d.Grains) > 0 {
				r.ID, r.Grains, r.GrainsOrder = ids[0], d.Plain().Grains, d.Grains
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Keywords)) {
		v := c.Keywords[name]
		switch {
		case strings.HasPrefix(name, "__"):
		case name == "saltenv":
			r.Saltenv = pytext.Str(v)
		case name == "pillarenv":
			r.Pillarenv = pytext.Str(v)
		default:
			r.Grains[name] = payload.Plain(v)
			if r.GrainsOrder != nil {
				r.GrainsOrder = r.GrainsOrder.Set(name, v)
			}
		}
	}
	return f.Pillar(ctx, r)
}
