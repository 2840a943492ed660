package posixpath

import "testing"

// TestText expects Python's results.
func TestText(t *testing.T) {
	norm := map[string]string{"": ".", "/": "/", "//": "//", "///": "/", "a//b/./c": "a/b/c", "a/../..": "..", "/..": "/", "//a/..": "//", "a/b/..": "a", "../a": "../a"}
	for in, want := range norm {
		if got := Norm(in); got != want {
			t.Errorf("Norm(%q) = %q, want %q", in, got, want)
		}
	}
	split := map[string][2]string{"": {"", ""}, "a": {"", "a"}, "/a": {"/", "a"}, "a/": {"a", ""}, "//a": {"//", "a"}, "a//b": {"a", "b"}, "/": {"/", ""}}
	for in, want := range split {
		if head, tail := Split(in); [2]string{head, tail} != want {
			t.Errorf("Split(%q) = %q, %q", in, head, tail)
		}
	}
	for _, c := range [][4]string{{"a", "b", "", "a/b/"}, {"a/", "/b", "c", "/b/c"}, {"", "", "", ""}, {"a", "", "b", "a/b"}} {
		if got := Join(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("Join(%q) = %q", c[:3], got)
		}
	}
	for _, c := range [][3]string{{"/a/b", "/a", "b"}, {"/a", "/a/b", ".."}, {"/x/y", "/a/b", "../../x/y"}, {"/a", "/a/", "."}} {
		if got := Rel(c[0], c[1]); got != c[2] {
			t.Errorf("Rel(%q, %q) = %q", c[0], c[1], got)
		}
	}
	env := func(n string) (string, bool) { return "<" + n + ">", n == "A" }
	for in, want := range map[string]string{"$A/$B": "<A>/$B", "${A}x": "<A>x", "$": "$", "${": "${", "$A$A": "<A><A>", "${}": "${}"} {
		if got := Vars(in, env); got != want {
			t.Errorf("Vars(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestReal(t *testing.T) {
	links := map[string]string{"/l": "d/e", "/d/up": "..", "/loop": "loop", "/a": "b", "/b": "a", "/abs": "/l/x"}
	for in, want := range map[string]string{
		"/l/f": "/d/e/f", "/d/up/l": "/d/e", "/loop/x": "/loop/x", "/abs": "/d/e/x", "/no/such": "/no/such", "/": "/", "/d/../..": "/", "/a/c": "/a/c",
	} {
		if got := Real(in, func(p string) string { return links[p] }); got != want {
			t.Errorf("Real(%q) = %q, want %q", in, got, want)
		}
	}
}
