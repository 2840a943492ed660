package jinja_test

import (
	"fmt"
	"testing"

	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/jinja"
)

// BenchmarkRounds renders 1000 rounds of a loop with filters, attributes, arithmetic and a method call.
func BenchmarkRounds(b *testing.B) {
	rows := &pyobj.List{}
	for i := range 1000 {
		rows.Items = append(rows.Items, pyobj.NewDict("name", fmt.Sprintf("n%d", i), "n", int64(i), "tags", pyobj.NewList("a", "b", "c")))
	}
	t, err := jinja.NewEnv().Compile("rounds", "", "{% for r in rows %}{{ loop.index }} {{ r.name|upper|replace('N', 'x') }} {{ r.n + 1 }} "+
		"{{ r.tags|join(',') }} {{ r.get('none', 'd') }}\n{% endfor %}")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := t.Render(b.Context(), map[string]any{"rows": rows}); err != nil {
			b.Fatal(err)
		}
	}
}
