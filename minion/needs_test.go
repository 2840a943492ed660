package minion

import (
	"context"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/configmod"
	"github.com/brine-salt/brine/modules/state"
	_ "github.com/brine-salt/brine/states/etcd_mod"
	_ "github.com/brine-salt/brine/states/mysql"
	_ "github.com/brine-salt/brine/states/postgres"
	_ "github.com/brine-salt/brine/states/rabbitmq"
	_ "github.com/brine-salt/brine/states/redismod"
)

// TestStatesNeedModulesOfTheirMinion: a state module that needs an execution module asks the registry of its minion for it. The default registry of
// this program has none of the modules, so that a minion that has them could not use the states if that one were asked.
func TestStatesNeedModulesOfTheirMinion(t *testing.T) {
	for fun, c := range map[string]struct {
		needs string
		args  []any // beside the name
	}{
		"redis.string":             {"redis.set_key", []any{"value=x"}},
		"etcd.rm":                  {"etcd.set", nil},
		"mysql_database.present":   {"mysql.db_exists", nil},
		"postgres_group.present":   {"postgres.user_exists", nil},
		"rabbitmq_upstream.absent": {"rabbitmq.set_upstream", nil},
	} {
		module, name, _ := strings.Cut(c.needs, ".")
		stub := func() *modules.Module {
			return &modules.Module{Name: module, Funcs: []modules.Def{{Name: name, Run: func(context.Context, *modules.Call) (any, error) { return true, nil }}}}
		}
		for way, site := range map[string]struct {
			opts map[string]any
			has  []*modules.Module
			runs bool
		}{
			"registry with the module":    {nil, []*modules.Module{stub()}, true},
			"registry without the module": {nil, nil, false},
			"disable_modules":             {map[string]any{"disable_modules": []any{module}}, []*modules.Module{stub()}, false},
		} {
			t.Run(fun+"/"+way, func(t *testing.T) {
				if _, err := modules.Default().Lookup(c.needs, &modules.Env{}); err == nil {
					t.Fatalf("the default registry has %s", c.needs)
				}
				opts := map[string]any{"id": "alpha", "grains": map[string]any{"os": "Debian"}, "cachedir": t.TempDir(), "pki_dir": t.TempDir()}
				for k, v := range site.opts {
					opts[k] = v
				}
				m, err := New(Options{Opts: opts, Registry: modules.NewRegistry(append([]*modules.Module{state.Module, configmod.Module}, site.has...)...)})
				if err != nil {
					t.Fatal(err)
				}
				got, err := m.Call(t.Context(), CallOptions{Fun: "state.single", Args: append([]any{fun, "name=x"}, c.args...), Local: true})
				if err != nil {
					t.Fatal(err)
				}
				if text := pytext.Str(got.Return); strings.Contains(text, "Specified state '"+fun+"' was not found") == site.runs {
					t.Errorf("the state is to be available: %v; it returned %s", site.runs, text)
				}
			})
		}
	}
}
