package pillar_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/growth"
	"github.com/brine-salt/brine/master/pillar"
)

// TestGrowth: a pillar is compiled at the same cost for each key of a file, for each file, for each file that it
// includes and for each minion of the top file, however many there are.
func TestGrowth(t *testing.T) {
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	parts := func(n int, top, all string) map[string]string {
		files := map[string]string{"top.sls": top, "all.sls": all}
		for i := range n {
			files[fmt.Sprintf("p%d.sls", i)] = fmt.Sprintf("key%d: {a: 1}", i)
		}
		return files
	}
	for _, c := range []struct {
		name  string
		sizes []int
		files func(n int) map[string]string
		keys  func(n int) int
	}{
		{"KB", []int{10, 100, 1000}, func(n int) map[string]string {
			body := list(10*n, "key%06[1]d:\n  name: %-50[1]d\n  list: [1, 2, a, b]\n  on: true\n") // a hundred bytes each
			return map[string]string{"top.sls": "base: {'*': [data]}", "data.sls": body}
		}, func(n int) int { return 10 * n }},
		{"files", []int{20, 80, 320}, func(n int) map[string]string {
			return parts(n, "base:\n  '*':\n"+list(n, "  - p%d\n"), "")
		}, func(n int) int { return n }},
		{"includes", []int{20, 80, 320}, func(n int) map[string]string {
			return parts(n, "base: {'*': [all]}", "include:\n"+list(n, "- p%d\n"))
		}, func(n int) int { return n }},
		{"minions", []int{100, 1000, 10_000}, func(n int) map[string]string {
			return map[string]string{"top.sls": "base:\n  m: [mine]\n" + list(n, "  minion%[1]d: [p%[1]d]\n"), "mine.sls": "a: 1"}
		}, func(int) int { return 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			growth.Bound(t, growth.Linear, c.sizes, func(n int) func() {
				r := roots(t, base(c.files(n)), pillar.RootsOptions{})
				return func() {
					got, err := r.Pillar(t.Context(), pillar.Request{ID: "m", Grains: object{"id": "m"}})
					if err != nil || len(got) != c.keys(n) || got["_errors"] != nil {
						t.Fatal(len(got), got["_errors"], err)
					}
				}
			})
		})
	}
}
