package difflib

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// random is the random number generator of testdata/sums.py.
type random uint64

func (r *random) next(n int) int {
	*r = *r*6364136223846793005 + 1442695040888963407
	return int((uint64(*r) >> 33) % uint64(n))
}

func example(seed int) (a, b []string) {
	r := random(seed)
	words := 2 + r.next(60)
	most := 20
	if seed%3 == 0 {
		most = 900
	}
	a = make([]string, r.next(most))
	for i := range a {
		a[i] = fmt.Sprintf("line %d\n", r.next(words))
	}
	b = slices.Clone(a)
	for range r.next(1 + len(a)/4 + 3) {
		kind, at := r.next(3), r.next(len(b)+1)
		switch {
		case kind == 0:
			b = slices.Insert(b, at, fmt.Sprintf("line %d\n", r.next(words)))
		case kind == 1 && at < len(b):
			b = slices.Delete(b, at, at+1)
		case at < len(b):
			b[at] = fmt.Sprintf("new %d\n", r.next(words))
		}
	}
	return a, b
}

// TestPython compares with the diffs of Python 3.11 for the same texts, which include long texts with popular lines.
func TestPython(t *testing.T) {
	text, err := os.ReadFile("testdata/sums.txt")
	if err != nil {
		t.Fatal(err)
	}
	for seed, want := range strings.Fields(string(text)) {
		a, b := example(seed)
		diff := Unified(a, b, "from", "to")
		sum := sha256.Sum256([]byte(diff))
		if got := hex.EncodeToString(sum[:8]); got != want {
			t.Fatalf("case %d: sum %s, want %s of\n%.2000s", seed, got, want, diff)
		}
	}
}

func TestUnified(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b []string
		want string
	}{
		{"equal", []string{"a\n"}, []string{"a\n"}, ""},
		{"both empty", nil, nil, ""},
		{"from nothing", nil, []string{"a\n", "b\n"}, "--- x\n+++ y\n@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"to nothing", []string{"a\n"}, nil, "--- x\n+++ y\n@@ -1 +0,0 @@\n-a\n"},
		{"no end of line", []string{"a"}, []string{"a\n"}, "--- x\n+++ y\n@@ -1 +1 @@\n-a+a\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Unified(c.a, c.b, "x", "y"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
