package states_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/growth"
	"github.com/brine-salt/brine/states"
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
		"listen":            each("{listen: [{test: s%d}]}"),
		"listen_in":         each("{listen_in: [{test: s%d}]}"),
		"listen of a name":  each("{listen: [s%d]}"),
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
