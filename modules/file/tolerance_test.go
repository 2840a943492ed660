//go:build unix

package file

import "testing"

func TestTolerance(t *testing.T) {
	const moved = "--- \n+++ \n@@ -1,2 +1,2 @@\n-a\n b\n+a\n"
	for _, c := range []struct {
		t    tolerance
		diff string
		want bool
	}{
		{tolerance{}, moved, true},
		{tolerance{}, "", false},
		{tolerance{on: true}, moved, false},
		{tolerance{on: true}, "--- \n+++ \n@@ -1 +1 @@\n-a\n+ a\n", true},
		{tolerance{on: true, whitespace: true}, "--- \n+++ \n@@ -1 +1 @@\n-a\n+ a\n+\n", false},
		{tolerance{on: true, comments: []string{"#"}}, "--- \n+++ \n@@ -1 +1 @@\n-a # b\n+a # c\n", false},
		{tolerance{on: true, comments: []string{"#", ";"}}, "--- \n+++ \n@@ -1 +1 @@\n-# b\n+;c\n", false},
		{tolerance{on: true, comments: []string{"#"}}, "--- \n+++ \n@@ -1 +1 @@\n-x # b\n+y # b\n", true},
		{tolerance{on: true}, "Replace binary file", true},
	} {
		if got := c.t.counts(c.diff); got != c.want {
			t.Errorf("%+v, %q: %v", c.t, c.diff, got)
		}
	}
}
