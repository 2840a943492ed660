//go:build bench

package interop

import (
	"fmt"
	"testing"
	"time"
)

// benchStates writes states for a minion's speed: files that are as they should be, and a formula of 30 files that each import
// a map.
func benchStates(t *testing.T, dir string) {
	t.Helper()
	for _, n := range []int{200, 2000} {
		write(t, fmt.Sprintf("%s/srv/bench/files%d.sls", dir, n), fmt.Sprintf(`
{%% for i in range(%d) %%}
{{ opts.root_dir }}/bench/{{ i }}:
  file.managed: [{contents: 'file {{ i }}'}, {makedirs: True}]
{%% endfor %%}
`, n))
	}
	include := "include:\n"
	for i := range 30 {
		include += fmt.Sprintf("  - bench.formula.part%d\n", i)
		write(t, fmt.Sprintf("%s/srv/bench/formula/part%d.sls", dir, i), fmt.Sprintf(`
{%% from 'bench/formula/map.jinja' import settings with context %%}
part %d for {{ settings.service }}:
  test.nop: [{x: {{ settings.conf | json }}}]
{%% if settings.packages | length > 2 %%}
packages %d: {test: [nop, {names: {{ settings.packages | json }}}]}
{%% endif %%}
`, i, i))
	}
	write(t, dir+"/srv/bench/formula/init.sls", include)
	write(t, dir+"/srv/bench/formula/map.jinja", `{% set defaults = {'service': 'app', 'conf': {'port': 80, 'hosts': ['a', 'b']}, 'packages': ['x', 'y', 'z']} %}
{% set by_os = salt['grains.filter_by']({'Debian': {'service': 'app-deb'}, 'RedHat': {'service': 'appd'}}, grain='os_family', merge=salt['pillar.get']('app', {})) %}
{% do defaults.update(by_os or {}) %}
{% set settings = defaults %}
`)
}

// stateRuns measures state runs under one stock master: the whole job, from the command to the answer.
func stateRuns(t *testing.T, m *stockMaster, row func(what, ours, stock string)) {
	t.Helper()
	benchStates(t, m.dir)
	for _, c := range []struct {
		what, sls string
		states    int
		rounds    map[string]int
	}{
		{"state.apply: 200 files, unchanged", "bench.files200", 200, map[string]int{"ours": 5, "stock": 2}},
		{"state.apply: 2,000 files, unchanged", "bench.files2000", 2000, map[string]int{"ours": 3, "stock": 1}},
		{"state.apply: formula of 30 files, 120 states", "bench.formula", 120, map[string]int{"ours": 5, "stock": 2}},
	} {
		took := map[string]string{}
		for _, id := range []string{"ours", "stock"} {
			apply := func() time.Duration {
				begin := time.Now()
				ret, _ := m.must("cmd", query{"tgt": id, "fun": "state.apply", "arg": []any{c.sls}, "timeout": 600}).(map[string]any)
				took := time.Since(begin)
				one, _ := ret[id].(map[string]any)
				states, _ := one["ret"].(map[string]any)
				if len(states) != c.states || one["retcode"] != 0.0 {
					t.Fatalf("%s: %s gave %d states: %.500v", id, c.sls, len(states), one)
				}
				return took
			}
			apply() // makes the files
			var all []time.Duration
			for range c.rounds[id] {
				all = append(all, apply())
			}
			took[id] = median(all)
		}
		row(c.what, took["ours"], took["stock"])
	}
}

// TestStateSpeed prints the rows of state runs alone.
func TestStateSpeed(t *testing.T) {
	m := startStockMaster(t, "3007", "zeromq", "auto_accept: True")
	mark := m.bus.mark()
	start(t, stock(t, "3007", "salt-minion"), "-c", m.minion(t, "stock", ""))
	start(t, ours("salt-minion"), "-c", m.minion(t, "ours", ""))
	m.bus.wait(mark, "salt/minion/stock/start")
	m.bus.wait(mark, "salt/minion/ours/start")
	stateRuns(t, m, func(what, ours, stock string) { t.Logf("%s: %s, stock %s", what, ours, stock) })
}
