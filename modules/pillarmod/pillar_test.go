package pillarmod

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/modules/pyobj"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func TestWhatTheMasterIsAsked(t *testing.T) {
	cases := map[string]struct {
		fun    string
		args   []any
		kwargs map[string]any
		opts   map[string]any
		want   map[string]any // the request, nil for none
	}{
		"items":             {"items", nil, nil, nil, map[string]any{"pillarenv": ""}},
		"an override":       {"items", nil, map[string]any{"pillar": map[string]any{"x": int64(1)}}, nil, map[string]any{"pillarenv": "", "pillar_override": map[string]any{"x": int64(1)}}},
		"an environment":    {"ls", nil, map[string]any{"pillarenv": "dev"}, nil, map[string]any{"pillarenv": "dev"}},
		"of the options":    {"obfuscate", nil, nil, map[string]any{"pillarenv": "prod"}, map[string]any{"pillarenv": "prod"}},
		"from saltenv":      {"items", nil, map[string]any{"saltenv": "test"}, map[string]any{"pillarenv_from_saltenv": true}, map[string]any{"pillarenv": "test"}},
		"in memory":         {"items", []any{"a"}, nil, nil, nil},
		"get":               {"get", []any{"a"}, nil, nil, nil},
		"get elsewhere":     {"get", []any{"a"}, map[string]any{"pillarenv": "dev"}, nil, map[string]any{"pillarenv": "dev"}},
		"item elsewhere":    {"item", []any{"a"}, map[string]any{"saltenv": "dev"}, map[string]any{"pillarenv_from_saltenv": true}, map[string]any{"pillarenv": "dev"}},
		"raw is in memory":  {"raw", nil, nil, nil, nil},
		"keys is in memory": {"keys", []any{"a"}, nil, nil, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var asked map[string]any
			e := modulestest.Env(t)
			if c.opts != nil {
				e.Opts = func() map[string]any { return c.opts }
			}
			e.FreshPillar = func(_ context.Context, _, pillarenv string, override *pyobj.Dict) (*pyobj.Dict, error) {
				asked = map[string]any{"pillarenv": pillarenv}
				if override != nil {
					asked["pillar_override"] = pyobj.PlainMap(override)
				}
				return pyobj.NewDict("a", "from the master"), nil
			}
			res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: "pillar." + c.fun, Args: c.args, Kwargs: c.kwargs})
			if diff := cmp.Diff(c.want, asked); diff != "" || res.Err != nil {
				t.Errorf("%v %s", res.Err, diff)
			}
		})
	}
}

func TestAMasterThatFails(t *testing.T) {
	e := modulestest.Env(t)
	e.FreshPillar = func(context.Context, string, string, *pyobj.Dict) (*pyobj.Dict, error) {
		return nil, errors.New("no answer")
	}
	for _, fun := range []string{"items", "ls", "obfuscate", "data"} {
		res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: "pillar." + fun})
		if res.Err == nil || res.Err.Error() != "no answer" || res.Success {
			t.Errorf("%s: %v, %v", fun, res.Return, res.Err)
		}
	}
}

func TestThePillarInMemoryStaysAsItIs(t *testing.T) {
	e := modulestest.Env(t)
	pillar := map[string]any{"m": map[string]any{"a": "b"}, "l": []any{"x"}}
	e.Pillar = func() map[string]any { return pillar }
	r := modules.NewRegistry(Module)
	for _, key := range []string{"m", "l"} {
		v := r.Run(t.Context(), e, modules.Request{Fun: "pillar.get", Args: []any{key}}).Return
		switch v := v.(type) {
		case map[string]any:
			v["a"] = "changed"
		case []any:
			v[0] = "changed"
		}
	}
	if diff := cmp.Diff(map[string]any{"m": map[string]any{"a": "b"}, "l": []any{"x"}}, pillar); diff != "" {
		t.Error(diff)
	}
}

// TestObfuscate: types stand in place of the values, and dictionaries stay dictionaries, however deep.
func TestObfuscate(t *testing.T) {
	e := modulestest.Env(t)
	e.FreshPillar = func(context.Context, string, string, *pyobj.Dict) (*pyobj.Dict, error) {
		return pyobj.NewDict("z", "text", "a", pyobj.NewDict("list", &pyobj.List{Items: []any{int64(1), pyobj.NewDict("x", true)}})), nil
	}
	res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: "pillar.obfuscate"})
	want := map[string]any{"z": "<str>", "a": map[string]any{"list": []any{"<int>", map[string]any{"x": "<bool>"}}}}
	if diff := cmp.Diff(any(want), res.Return); diff != "" || res.Err != nil {
		t.Errorf("%v %s", res.Err, diff)
	}
}
