package configmod

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func TestTheStrongestPlaceWins(t *testing.T) {
	e := modulestest.Env(t)
	data := func(from string) func() map[string]any {
		return func() map[string]any {
			m := map[string]any{"all": from, "nested": map[string]any{"all": from, from: true}}
			if from == "pillar" {
				m["master"] = map[string]any{"all": "master", "only.master": true, "nested": map[string]any{"master": true}}
			}
			return m
		}
	}
	e.Opts, e.Grains, e.Pillar = data("opts"), data("grains"), data("pillar")
	r := modules.NewRegistry(Module)
	cases := map[string]struct {
		fun    string
		key    string
		kwargs map[string]any
		want   any
	}{
		"opts":             {"get", "all", nil, "opts"},
		"grains":           {"get", "all", map[string]any{"omit_opts": true}, "grains"},
		"pillar":           {"get", "all", map[string]any{"omit_opts": true, "omit_grains": true}, "pillar"},
		"master":           {"get", "all", map[string]any{"omit_opts": true, "omit_grains": true, "omit_pillar": true}, "master"},
		"nothing":          {"get", "no", map[string]any{"default": int64(3)}, int64(3)},
		"built in":         {"get", "redis.port", nil, int64(6379)},
		"pillar in opts":   {"get", "pillar:all", nil, "pillar"},
		"merged":           {"get", "nested", map[string]any{"merge": "recurse"}, map[string]any{"all": "opts", "opts": true, "grains": true, "pillar": true, "master": true}},
		"replaced":         {"get", "nested", map[string]any{"merge": "overwrite"}, map[string]any{"all": "opts", "opts": true}},
		"option":           {"option", "only.master", nil, true},
		"option, omitted":  {"option", "only.master", map[string]any{"omit_all": true}, ""},
		"option, wildcard": {"option", "all*", map[string]any{"wildcard": true}, map[string]any{"all": "opts"}},
		"merge":            {"merge", "nested", nil, map[string]any{"all": "opts", "opts": true, "master": true, "pillar": true}},
		"dots":             {"dot_vals", "only", nil, map[string]any{"only.master": true}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			res := r.Run(t.Context(), e, modules.Request{Fun: "config." + c.fun, Args: []any{c.key}, Kwargs: c.kwargs})
			if diff := cmp.Diff(c.want, res.Return); diff != "" || res.Err != nil {
				t.Errorf("%v %s", res.Err, diff)
			}
		})
	}
}
