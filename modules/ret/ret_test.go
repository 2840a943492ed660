package ret

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func TestAsksTheReturner(t *testing.T) {
	e := modulestest.Env(t)
	e.Others = func(kind string) []*modules.Module {
		if kind != "returners" {
			return nil
		}
		return []*modules.Module{{Name: "kept", Funcs: []modules.Def{{Name: "get_jid", Params: []modules.Param{{Name: "jid"}},
			Run: func(_ context.Context, c *modules.Call) (any, error) {
				return map[string]any{"web1": c.Value("jid")}, nil
			}}}}}
	}
	r := modules.NewRegistry(Module)
	res := r.Run(t.Context(), e, modules.Request{Fun: "ret.get_jid", Args: []any{"kept", "1"}})
	if diff := cmp.Diff(map[string]any{"web1": "1"}, res.Return); diff != "" || res.Err != nil {
		t.Error(diff, res.Err)
	}
	res = r.Run(t.Context(), e, modules.Request{Fun: "ret.get_jids", Args: []any{"kept"}})
	var python *modules.PythonError
	if !errors.As(res.Err, &python) || python.Type != "KeyError" || python.Msg != "'kept.get_jids'" {
		t.Errorf("a function that a returner lacks: %v", res.Err)
	}
}
