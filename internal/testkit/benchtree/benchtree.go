// Package benchtree writes a tree of states to measure a minion's speed.
package benchtree

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Write writes the states below dir, the root of a file server:
//
//   - bench.files200 and bench.files2000: that many files below root_dir, with their contents in the state.
//   - bench.formula: 120 states in 30 files that each import a map.
func Write(dir string) error {
	files := map[string]string{"formula/map.jinja": formulaMap}
	for _, n := range []int{200, 2000} {
		files[fmt.Sprintf("files%d.sls", n)] = fmt.Sprintf(`
{%% for i in range(%d) %%}
{{ opts.root_dir }}/bench/{{ i }}:
  file.managed: [{contents: 'file {{ i }}'}, {makedirs: True}]
{%% endfor %%}
`, n)
	}
	var include strings.Builder
	include.WriteString("include:\n")
	for i := range 30 {
		fmt.Fprintf(&include, "  - bench.formula.part%d\n", i)
		files[fmt.Sprintf("formula/part%d.sls", i)] = fmt.Sprintf(`
{%% from 'bench/formula/map.jinja' import settings with context %%}
part %d for {{ settings.service }}:
  test.nop: [{x: {{ settings.conf | json }}}]
{%% if settings.packages | length > 2 %%}
packages %d: {test: [nop, {names: {{ settings.packages | json }}}]}
{%% endif %%}
`, i, i)
	}
	files["formula/init.sls"] = include.String()
	for name, text := range files {
		file := filepath.Join(dir, "bench", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

const formulaMap = `{% set defaults = {'service': 'app', 'conf': {'port': 80, 'hosts': ['a', 'b']}, 'packages': ['x', 'y', 'z']} %}
{% set by_os = salt['grains.filter_by']({'Debian': {'service': 'app-deb'}, 'RedHat': {'service': 'appd'}}, grain='os_family', merge=salt['pillar.get']('app', {})) %}
{% do defaults.update(by_os or {}) %}
{% set settings = defaults %}
`
