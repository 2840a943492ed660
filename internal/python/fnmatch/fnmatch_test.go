package fnmatch

import (
	"strings"
	"testing"
	"time"
)

// TestMatch expects the results of Python 3.11's fnmatch.fnmatchcase.
func TestMatch(t *testing.T) {
	cases := []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a/b\nc", true}, {"a*c", "abbc", true}, {"a*c", "abbd", false},
		{"*.*", "test.ping", true}, {"?", "é", true}, {"?", "", false}, {"[abc]x", "bx", true}, {"[!abc]x", "bx", false},
		{"[!abc]x", "dx", true}, {"[a-c]", "b", true}, {"[a-c]", "-", false}, {"[a-]", "-", true}, {"[]]", "]", true},
		{"[!]]", "]", false}, {"[!]]", "a", true}, {"[", "[", true}, {"[a", "[a", true}, {"[!", "[!", true}, {"[]", "[]", true},
		{"[^a]", "a", true}, {"[^a]", "^", true}, {"[^a]", "b", false}, {"a\\*", "a\\x", true}, {"a\\*", "a*", false},
		{"*a*b*c", "xxaxxbxxc", true}, {"*a*b*c", "xxaxxbxx", false}, {"web[0-9]*", "web7.example", true}, {"A", "a", false},
	}
	for _, c := range cases {
		if got := Match(c.pattern, c.name); got != c.want {
			t.Errorf("%q against %q: %v", c.pattern, c.name, got)
		}
	}
}

func TestNoPatternIsSlow(t *testing.T) {
	begin := time.Now()
	if Match(strings.Repeat("a*", 200)+"b", strings.Repeat("a", 5000)) {
		t.Error("matched")
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("[!a-]*?", "xé")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		Match(pattern, name)
		if !strings.ContainsAny(name, "*?[") && !Match(name, name) {
			t.Errorf("%q does not match itself", name)
		}
	})
}
