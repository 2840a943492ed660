package states_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/growth"
	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
	"github.com/brine-salt/brine/states/test"
)

// TestGrowth runs states that name each other, in ways that once cost the square of their number. What is allocated
// may grow as n log n does; "make bench" bounds the processor time.
func TestGrowth(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs thousands of states")
	}
	each := func(format string) func(i, n int) string {
		return func(i, n int) string {
			if i == 0 {
				return ""
			}
			return fmt.Sprintf(format, i-1)
		}
	}
	list := func(n int, format string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(all, ", ")
	}
	last := func(format string) func(i, n int) string {
		return func(i, n int) string {
			if i < n-1 {
				return ""
			}
			return fmt.Sprintf(format, list(n-1, "{test: s%d}"))
		}
	}
	for name, more := range map[string]func(i, n int) string{
		"require":           each("{require: [{test: s%d}]}"),
		"require of all":    last("{require: [%s]}"),
		"require_in of all": last("{require_in: [%s]}"),
		"prereq of all":     last("{prereq: [%s]}"),
		"use":               each("{use: [{test: s%d}]}"),
		"require_any": func(i, n int) string {
			if i < 3 {
				return ""
			}
			return fmt.Sprintf("{require_any: [{test: s%d}, {test: s%d}, {test: s%d}]}", i-1, i-2, i-3)
		},
		"require_any of all":   last("{require_any: [%s]}"),
		"onchanges_any of all": last("{onchanges_any: [%s]}"),
		"listen":               each("{listen: [{test: s%d}]}"),
		"listen_in":            each("{listen_in: [{test: s%d}]}"),
		"listen of a name":     each("{listen: [s%d]}"),
		"watch_in": func(i, n int) string {
			if i == n-1 {
				return ""
			}
			return fmt.Sprintf("{watch_in: [{test: s%d}]}", i+1)
		},
		"names": func(i, n int) string {
			if i < n-1 {
				return ""
			}
			return "{names: [" + list(n, "x%d") + "]}"
		},
		"names with arguments": func(i, n int) string {
			if i < n-1 {
				return ""
			}
			return "{names: [" + list(n, "{x%d: [{y: z}]}") + "]}"
		},
	} {
		t.Run(name, func(t *testing.T) {
			growth.Bound(t, growth.Linear, []int{200, 800, 3200}, func(n int) func() {
				var text strings.Builder
				for i := range n {
					fmt.Fprintf(&text, "s%d: {test: [succeed_with_changes, {x: y}, %s]}\n", i, more(i, n))
				}
				high := parse(t, strings.ReplaceAll(text.String(), ", ]", "]"))
				e := bare(t)
				return func() {
					if got, _ := apply(t, e, high, states.Options{}); len(got) < n {
						t.Fatalf("%d of %d states ran", len(got), n)
					}
				}
			})
		})
	}
}

// TestGrowthOfFiles compiles what many state files, or a top file for many minions, say.
func TestGrowthOfFiles(t *testing.T) {
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	all := func(n int) int { return n }
	one := func(int) int { return 1 }
	parts := func(n int, body string) map[string]string {
		files := map[string]string{"top.sls": "base: {'*': [all]}", "all.sls": "include:\n" + list(n, "- p%d\n")}
		for i := range n {
			files[fmt.Sprintf("p%d.sls", i)] = fmt.Sprintf(body, i)
		}
		return files
	}
	for _, c := range []struct {
		name   string
		files  func(n int) map[string]string
		states func(n int) int
	}{
		{"include", func(n int) map[string]string { return parts(n, "s%d: {test.nop: []}") }, all},
		{"include of the same", func(n int) map[string]string {
			files := parts(n, "include: [same]\ns%d: {test.nop: []}")
			files["same.sls"] = "same: {test.nop: []}"
			return files
		}, func(n int) int { return n + 1 }},
		{"include with a glob", func(n int) map[string]string {
			files := parts(n, "s%d: {test.nop: []}")
			files["all.sls"] = "include: ['p*']"
			return files
		}, all},
		{"extend", func(n int) map[string]string {
			return map[string]string{"top.sls": "base: {'*': [all]}", "other.sls": list(n, "s%d: {test.nop: []}\n"),
				"all.sls": "include: [other]\nextend:\n" + list(n, "  s%d: {test: [{x: y}]}\n")}
		}, all},
		{"exclude", func(n int) map[string]string {
			return map[string]string{"top.sls": "base: {'*': [all]}", "all.sls": "exclude:\n" + list(n-1, "- id: s%d\n") +
				list(n, "s%d: {test.nop: []}\n")}
		}, one},
		{"files of the top file", func(n int) map[string]string {
			files := parts(n, "s%d: {test.nop: []}")
			files["top.sls"] = "base:\n  '*':\n" + list(n, "  - p%d\n")
			return files
		}, all},
		{"minions of the top file", func(n int) map[string]string {
			return map[string]string{"top.sls": "base:\n  m: [mine]\n" + list(n, "  minion%[1]d: [p%[1]d]\n"), "mine.sls": "s: {test.nop: []}"}
		}, one},
		{"grains of the top file", func(n int) map[string]string {
			return map[string]string{"top.sls": "base:\n  m: [mine]\n" + list(n, "  'role:r%[1]d': [{match: grain}, p%[1]d]\n"),
				"mine.sls": "s: {test.nop: []}"}
		}, one},
	} {
		t.Run(c.name, func(t *testing.T) {
			growth.Bound(t, growth.Linear, []int{25, 100, 400}, func(n int) func() {
				dir, e := t.TempDir(), bare(t)
				for name, text := range c.files(n) {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				e.Files = fileclient.New(fileclient.Options{Roots: map[string][]string{"base": {dir}}, CacheDir: t.TempDir()})
				e.Opts = func() map[string]any {
					return map[string]any{"id": "m", "cachedir": dir, "renderer": "jinja|yaml", "state_auto_order": true, "state_top": "top.sls"}
				}
				return func() {
					res := within(t, e, func(ctx context.Context, c *modules.Call) (any, error) {
						h, err := states.NewHighState(ctx, c, states.Options{Registry: states.NewRegistry(test.Module)})
						if err != nil {
							return nil, err
						}
						low, errs, err := h.CompileLow(ctx)
						return int64(len(low)), errors.Join(err, joinTexts(errs))
					})
					if res.Err != nil || res.Return != int64(c.states(n)) {
						t.Fatalf("%v states, want %d: %v", res.Return, c.states(n), res.Err)
					}
				}
			})
		})
	}
}

// joinTexts returns the texts as an error, nil if there are none.
func joinTexts(texts []string) error {
	if len(texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(texts, "\n"))
}
