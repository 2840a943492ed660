package states

import (
	"context"
	"slices"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// modInit calls mod_init of a state module before the module's first state, until it reports that it is done.
func (r *Run) modInit(ctx context.Context, low *Low) error {
	t := r.findFunction(low.state, low.fun)
	if t.err != nil || t.module.Init == nil || r.inited[low.state] {
		return nil
	}
	c, err := r.hookCall(low, low.state+".mod_init")
	if err != nil {
		return err
	}
	done, err := t.module.Init(ctx, c)
	if err != nil {
		return err
	}
	if done {
		r.inited[low.state] = true
	}
	return nil
}

// hookCall builds the Call of a special function of a module.
func (r *Run) hookCall(low *Low, fun string) (*Call, error) {
	mc, err := r.parent.Foreign(r.env, r.exec, &modules.Def{Name: fun}, fun, nil, nil)
	if err != nil {
		return nil, err
	}
	return &Call{Call: mc, Low: low, run: r, test: pytext.Truth(r.opts["test"]), saltenv: r.chunkSaltenv(low, nil)}, nil
}

// modAggregate lets a state module change a chunk before it runs, if the option state_aggregate or the argument
// aggregate asks for it. pkg uses it to install all packages by one command.
func (r *Run) modAggregate(ctx context.Context, low *Low, chunks []*Low) error {
	if !r.aggregated {
		r.aggregate, r.aggregated = r.configOption(ctx, "state_aggregate"), true
	}
	want := r.aggregate
	if low.Has("aggregate") {
		want = low.Value("aggregate")
	}
	list, _ := want.([]any)
	if want != true && !slices.Contains(list, any(low.state)) || low.Truth("__agg__") {
		return nil
	}
	t := r.findFunction(low.state, low.fun)
	if t.err != nil || t.module.Aggregate == nil {
		return nil
	}
	low.Set("__agg__", true)
	c, err := r.hookCall(low, low.state+".mod_aggregate")
	if err != nil {
		return err
	}
	if err := t.module.Aggregate(ctx, c, chunks); err != nil {
		return err
	}
	// The chunk now does the work of the others, so it also waits for everything that they wait for.
	for _, name := range requisiteKeywords {
		var all *pyobj.List
		for _, chunk := range chunks {
			list, ok := chunk.d.Value(name).(*pyobj.List)
			if !ok || chunk.state != low.state || !chunk.Truth("__agg__") || chunk.name == low.name {
				continue
			}
			if all == nil {
				all = pyobj.NewList()
			}
			all.Items = append(all.Items, list.Items...)
		}
		if all != nil {
			low.Set(name, all)
		}
	}
	return nil
}

// conditionsMet evaluates the option global_state_conditions: at least one of the compound matches for this state
// must hold. A state without such matches always runs.
func (r *Run) conditionsMet(ctx context.Context, low *Low) bool {
	if r.conditions == nil {
		r.conditions, _ = pyobj.From(r.configOption(ctx, "global_state_conditions")).(*pyobj.Dict)
		if r.conditions == nil {
			r.conditions = &pyobj.Dict{}
		}
	}
	asked, ok := false, false
	for k, v := range r.conditions.All() {
		if name := pyobj.Str(k); name != "*" && name != low.state && name != low.state+"."+low.fun {
			continue
		}
		list := listItems(v)
		if s, text := v.(string); text {
			list = []any{s}
		}
		for _, condition := range list {
			asked = true
			matched, err := r.callExec(ctx, "match.compound", []any{condition}, nil)
			ok = ok || err == nil && pytext.Truth(matched)
		}
	}
	return ok || !asked
}
