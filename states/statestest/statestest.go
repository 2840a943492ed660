// Package statestest is the suite that every state module passes: declarations that make sense, documentation, no panic on
// missing or odd arguments, and an end soon after the context ends. The functions really run, in test mode and not, in the
// environment of package modulestest.
//
//	func TestModule(t *testing.T) { statestest.Run(t, mymodule.Module) }
package statestest

import (
	"context"
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/states"
)

// Run checks a state module.
func Run(t *testing.T, m *states.Module) {
	t.Helper()
	for _, test := range []bool{false, true} {
		title := "for real"
		if test {
			title = "in test mode"
		}
		t.Run(title, func(t *testing.T) { modulestest.Run(t, executable(m, test)) })
	}
}

// executable returns the state module as an execution module whose functions apply the states.
func executable(m *states.Module, test bool) *modules.Module {
	decl := *m
	decl.Init, decl.Aggregate, decl.RunsCheckCmd = nil, nil, false
	out := decl.Declare()
	for i := range out.Funcs {
		d := &out.Funcs[i]
		fun := m.Called() + "." + d.Name
		d.Example = "salt '*' state.single " + fun
		d.Run = func(ctx context.Context, c *modules.Call) (any, error) {
			kwargs := map[string]any{}
			for _, p := range d.Params {
				if c.Given(p.Name) {
					kwargs[p.Name] = c.Value(p.Name)
				}
			}
			for k, v := range c.Keywords {
				kwargs[k] = v
			}
			return apply(ctx, c, m, fun, kwargs, test)
		}
	}
	return out
}

func apply(ctx context.Context, c *modules.Call, m *states.Module, fun string, kwargs map[string]any, test bool) (any, error) {
	opts := map[string]any{"test": test}
	for k, v := range c.Config() {
		if k != "test" {
			opts[k] = v
		}
	}
	run := states.New(c, states.Options{Registry: states.NewRegistry(m), Opts: opts})
	low := map[string]any{}
	for k, v := range kwargs {
		low[k] = v
	}
	low["state"], low["fun"] = m.Called(), fun[len(m.Called())+1:]
	if _, ok := low["name"]; !ok {
		low["name"] = "name"
	}
	low["__id__"], low["__sls__"], low["__env__"] = "id", "sls", "base"
	rec, err := run.Call(ctx, states.NewLow(low))
	return rec, err
}

// Apply applies one state ("file.managed") of a module in the environment, with the given execution modules, and gives what
// state.single would have: result, comment, changes and the rest. kwargs has name.
func Apply(t *testing.T, e *modules.Env, m *states.Module, fun string, kwargs map[string]any, test bool, exec ...*modules.Module) map[string]any {
	t.Helper()
	door := &modules.Module{Name: "statestest", Funcs: []modules.Def{{Name: "apply", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return apply(ctx, c, m, fun, kwargs, test)
	}}}}
	reg := modules.NewRegistry(append([]*modules.Module{door}, exec...)...)
	res := reg.Run(t.Context(), e, modules.Request{Fun: "statestest.apply"})
	rec, ok := res.Return.(map[string]any)
	if !ok {
		t.Fatalf("%s: %v", fun, res.Return)
	}
	return rec
}
