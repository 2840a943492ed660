package pytext

import (
	"slices"
	"strings"
	"testing"
)

// TestPretty tests corner cases. The tests of the outputters (internal/output) compare Pretty with Python for
// hundreds of values.
func TestPretty(t *testing.T) {
	for want, v := range map[string]any{
		"{'a': 1, 'b': [True, None]}":                                           map[string]any{"b": []any{true, nil}, "a": int64(1)},
		"('" + strings.Repeat("word ", 15) + "'\n 'word word word word word ')": strings.Repeat("word ", 20),
		"['" + strings.Repeat("x", 75) + "',\n 'y']":                            []any{strings.Repeat("x", 75), "y"},
		"{}": map[any]any{},
	} {
		if got := Pretty(v, 1); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSplitLines(t *testing.T) {
	for s, want := range map[string][]string{
		"": nil, "\n": {""}, "a": {"a"}, "a\n": {"a"}, "a\r\nb\rc\vd\fe": {"a", "b", "c", "d", "e"}, "a\x1cb\u0085c\u2028d": {"a", "b", "c", "d"}, "\n\na": {"", "", "a"},
	} {
		if got := SplitLines(s, false); !slices.Equal(got, want) {
			t.Errorf("%q: %q", s, got)
		}
		if got := strings.Join(SplitLines(s, true), ""); got != s {
			t.Errorf("%q with its ends: %q", s, got)
		}
	}
}

func TestSortKeys(t *testing.T) {
	got := Repr(SortKeys(map[any]any{"b": 0, int64(10): 0, "a": 0, 2.5: 0, true: 0, nil: 0, int64(-1): 0}))
	if want := "[-1, True, 2.5, 10, 'a', 'b', None]"; got != want {
		t.Errorf("got %s", got)
	}
}

func TestRound(t *testing.T) {
	for f, want := range map[float64]float64{2.675: 2.67, 33.333333: 33.33, 100: 100, -0.005: -0.01} {
		if got := Round(f, 2); got != want {
			t.Errorf("%v: %v, want %v", f, got, want)
		}
	}
}
