package pathpick_test

import (
	"testing"

	"github.com/brine-salt/brine/internal/modkit/pathpick"
)

func TestWanted(t *testing.T) {
	for _, c := range []struct {
		path             string
		include, exclude any
		want             bool
	}{
		{"a/b.conf", nil, nil, true},
		{"a/b.conf", "*.conf", nil, true},
		{"a/b.conf", "b.conf", nil, false},
		{"a/b.conf", "", "*.conf", false},
		{"a/b.conf", "E@b", "E@^b", true},
		{"a/b.conf", []any{"x", "E@conf$"}, nil, true},
		{"a/b.conf", "*", []any{"x", "a/*"}, false},
	} {
		if got, err := pathpick.Wanted(c.path, c.include, c.exclude); got != c.want || err != nil {
			t.Errorf("%s, %v, %v: %v, %v", c.path, c.include, c.exclude, got, err)
		}
	}
	if _, err := pathpick.Wanted("a", nil, "E@("); err == nil {
		t.Error("a pattern that is none is taken")
	}
}
