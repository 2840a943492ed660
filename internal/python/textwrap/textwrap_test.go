package textwrap

import (
	"slices"
	"testing"
)

// TestWrap expects the results of Python 3.11.
func TestWrap(t *testing.T) {
	cases := []struct {
		text  string
		width int
		lines []string
	}{
		{"", 5, []string{}},
		{"  lead and trail  ", 8, []string{"  lead", "and", "trail"}},
		{"a well-known x-y-z word", 8, []string{"a well-", "known", "x-y-z", "word"}},
		{"a\ttab\nand lines", 7, []string{"a", "tab and", "lines"}},
		{"abcdefghij", 4, []string{"abcd", "efgh", "ij"}},
		{"abcd efghijkl", 4, []string{"abcd", "efgh", "ijkl"}},
		{"--option-with-long-name", 10, []string{"--option-", "with-long-", "name"}},
		{"one--two -- three", 5, []string{"one--", "two", "--", "three"}},
		{"état été_à-bc", 6, []string{"état", "été_à-", "bc"}},
		{"1-2 ab-1", 3, []string{"1-2", "ab-", "1"}},
	}
	for _, c := range cases {
		if got := Wrap(c.text, c.width); !slices.Equal(got, c.lines) {
			t.Errorf("%q in %d columns is %q, want %q", c.text, c.width, got, c.lines)
		}
	}
}

func TestNoWidth(t *testing.T) {
	if got := Wrap("ab", -3); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("a width below 1 gives %q", got)
	}
}
