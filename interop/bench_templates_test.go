//go:build bench

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render"
)

// benchTemplates returns the templates to render: a state file, a loop with filters, and a table like those of
// formulas.
func benchTemplates() []struct{ name, text string } {
	var table strings.Builder
	table.WriteString("{% set t = {\n")
	for i := range 300 {
		fmt.Fprintf(&table, "  'os%d': {'pkg': 'name%d', 'service': 'svc', 'conf': '/etc/x%d', 'opts': ['a', 'b']},\n", i, i, i)
	}
	table.WriteString("} %}{{ t.os7.pkg }}")
	return []struct{ name, text string }{
		{"template of a state file", `{% set pkgs = ['nginx', 'curl', 'vim'] %}
{% for p in pkgs %}
{{ p }}:
  pkg.installed:
    - refresh: {{ loop.first }}
{% endfor %}
{% if rows|length > 5 %}
/etc/app.conf:
  file.managed:
    - source: salt://app/{{ rows[0].name|lower }}.conf
    - mode: "{{ '%04d' % 644 }}"
    - context: {{ rows[1]|json }}
{% endif %}
`},
		{"template with 1000 rounds and filters", "{% for r in rows %}{{ loop.index }} {{ r.name|upper|replace('N', 'x') }} {{ r.n + 1 }} {{ r.tags|join(',') }} {{ r.get('none', 'd') }}\n{% endfor %}"},
		{"template with a table of 300 entries", table.String()},
	}
}

const stockTemplates = `
import json, sys, time, logging
logging.disable(logging.CRITICAL)
import salt.config, salt.utils.templates
opts = salt.config.minion_config(None)
opts.update(file_client="local", cachedir=sys.argv[1])
rows = [{"name": "n%d" % i, "n": i, "tags": ["a", "b", "c"]} for i in range(1000)]
out = []
for text in json.load(sys.stdin):
    best = None
    for _ in range(5):
        begin = time.perf_counter()
        r = salt.utils.templates.JINJA(text, from_str=True, to_str=True, saltenv="base", opts=opts, salt={}, grains={}, pillar={}, rows=rows)
        took = time.perf_counter() - begin
        best = took if best is None else min(best, took)
    out.append([best, r["data"]])
json.dump(out, sys.stdout)
`

// templates measures how long both programs take to compile and render templates, as they do for every state file.
func templates(t *testing.T, row func(what, ours, stock string)) {
	t.Helper()
	list := benchTemplates()
	var texts []string
	for _, b := range list {
		texts = append(texts, b.text)
	}
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), stock(t, "3007", "python"), "-c", stockTemplates, t.TempDir())
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var theirs [][2]any
	if err := json.Unmarshal(out, &theirs); err != nil {
		t.Fatal(err)
	}
	rows := &pyobj.List{}
	for i := range 1000 {
		rows.Items = append(rows.Items, pyobj.NewDict("name", fmt.Sprintf("n%d", i), "n", int64(i), "tags", pyobj.NewList("a", "b", "c")))
	}
	c := modules.NewRegistry().NewCall(&modules.Env{}, "bench", "", nil)
	for i, b := range list {
		var best time.Duration
		for j := range 20 {
			// An additional line makes every text different for the cache of compiled templates.
			text := b.text + fmt.Sprintf("{# %d #}", j)
			begin := time.Now()
			v, err := render.Render(t.Context(), c, modules.Template{Text: text, Pipe: "jinja", Engine: true, SaltEnv: "base", Vars: map[string]any{"rows": rows}})
			took := time.Since(begin)
			if got, _ := v.(string); err != nil || strings.TrimSpace(got) != strings.TrimSpace(theirs[i][1].(string)) {
				t.Fatalf("%s: %v\n got %.300q\nwant %.300q", b.name, err, got, theirs[i][1])
			}
			if j == 0 || took < best {
				best = took
			}
		}
		python := time.Duration(theirs[i][0].(float64) * float64(time.Second))
		row(b.name+", compiled and rendered", fmt.Sprintf("%.2f ms", best.Seconds()*1000), fmt.Sprintf("%.2f ms", python.Seconds()*1000))
	}
}

// TestTemplateSpeed prints only the rows of templates.
func TestTemplateSpeed(t *testing.T) {
	templates(t, func(what, ours, stock string) { t.Logf("%s: %s, stock %s", what, ours, stock) })
}
