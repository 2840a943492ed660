package states

import (
	"context"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// custom returns the state module for a module that the host's owner added. Its functions are declared like
// execution functions and return Salt's maps.
func custom(m *modules.Module) *Module {
	s := &Module{Name: m.Name, Virtual: m.Virtual, Doc: m.Doc, Docs: m.Docs}
	for i := range m.Funcs {
		d := &m.Funcs[i]
		s.Funcs = append(s.Funcs, Def{Name: d.Name, Python: d.Python, Doc: d.Doc, Params: d.Params, Args: d.Args, Kwargs: d.Kwargs,
			Run: func(ctx context.Context, c *Call) (*Result, error) { return callCustom(ctx, c, d) }})
		switch d.Name {
		case "mod_init":
			s.Init = func(ctx context.Context, c *Call) (bool, error) {
				v, err := callHook(ctx, c, d, []any{c.Low.Plain()})
				return pytext.Truth(v), err
			}
		case "mod_aggregate":
			s.Aggregate = func(ctx context.Context, c *Call, chunks []*Low) error { return aggregateCustom(ctx, c, d, chunks) }
		case "mod_run_check_cmd":
			s.RunsCheckCmd = true
		}
	}
	return s
}

// callCustom runs a function. A return value that is not the map of a result is handled as by stock for its own
// functions.
func callCustom(ctx context.Context, c *Call, d *modules.Def) (*Result, error) {
	v, err := d.Run(modules.WithStateRun(ctx, stateRun{c}), c.Call)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, &modules.PythonError{Type: "TypeError", Msg: c.Fun + " answered with a " + modules.TypeName(v) + ", not with a dictionary"}
	}
	res := ResultOf(m)
	for _, key := range [...]string{"name", "result", "changes", "comment"} {
		if _, given := m[key]; !given {
			res.missing = append(res.missing, key)
		}
	}
	return res, nil
}

func callHook(ctx context.Context, c *Call, d *modules.Def, args []any) (any, error) {
	mc, err := c.Foreign(c.Env, c.run.exec, d, c.Fun, args, nil)
	if err != nil {
		return nil, err
	}
	return d.Run(modules.WithStateRun(ctx, stateRun{c}), mc)
}

// aggregateCustom replaces the chunk by the result of mod_aggregate.
func aggregateCustom(ctx context.Context, c *Call, d *modules.Def, chunks []*Low) error {
	v, err := callHook(ctx, c, d, []any{c.Low.Plain(), plainLows(chunks), c.run.running.settled()})
	if err != nil {
		return err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	for _, key := range c.Low.Keys() {
		if _, kept := m[key]; !kept {
			c.Low.Delete(key)
		}
	}
	for key, v := range m {
		if !pyobj.Equal(pyobj.From(v), pyobj.From(c.Low.Value(key))) {
			c.Low.Set(key, v)
		}
	}
	return nil
}

func plainLows(chunks []*Low) []any {
	list := make([]any, len(chunks))
	for i, l := range chunks {
		list[i] = l.Plain()
	}
	return list
}

// stateRun implements [modules.StateRun] for custom functions.
type stateRun struct{ c *Call }

var _ modules.StateRun = stateRun{}

// CallState implements [modules.StateRun].
func (s stateRun) CallState(ctx context.Context, fun string, kwargs map[string]any) (map[string]any, error) {
	res, err := s.c.State(ctx, fun, kwargs)
	if err != nil {
		return nil, err
	}
	rec := s.c.run.resultRecord(res)
	plainSubs(rec)
	return rec, nil
}

// Test implements [modules.StateRun].
func (s stateRun) Test() bool { return s.c.test }

// Global implements [modules.StateRun].
func (s stateRun) Global(name string) any {
	switch name {
	case "__low__":
		return s.c.Low.Plain()
	case "__env__":
		return s.c.saltenv
	case "__instance_id__":
		return s.c.run.instance
	case "__lowstate__":
		return plainLows(s.c.run.chunks)
	case "__running__":
		all := s.c.run.running.settled()
		return nested.Copy(all)
	}
	return nil
}
