package rpm

import "testing"

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"1.0-1", "1.0-2", -1}, {"1.0", "1.0-2", 0}, {"1:1.0-1", "2.0-1", 1}, {"0:1.0", "1.0", 0}, {"x:1.0", "1.0", 0}, {"", "", 0},
		{"1.0-1.el8", "1.0-1.el9", -1}, {"1.0~rc1-1", "1.0-1", -1},
	} {
		if got, _ := Compare(c.a, c.b); got != c.want {
			t.Errorf("Compare(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
	if got, _ := WithoutEpoch("1:1.0", "1.0"); got != 0 {
		t.Errorf("without epochs they differ: %d", got)
	}
}

func TestParse(t *testing.T) {
	p := Parse("zlib_|-1_|-1.2_|-3.el9_|-i686_|-none_|-1700000000", "x86_64")
	if want := (Package{"zlib.i686", "1:1.2-3.el9", "i686", "none", "2023-11-14T22:13:20Z", 1700000000}); p == nil || *p != want {
		t.Errorf("%+v", p)
	}
	if Parse("package x is not installed", "x86_64") != nil {
		t.Error("a complaint is a package")
	}
}

func TestSplit(t *testing.T) {
	for name, want := range map[string][2]string{
		"zsh.x86_64": {"zsh", "x86_64"}, "a.b": {"a.b", ""}, "a.noarch": {"a", "noarch"}, "a": {"a", ""},
	} {
		if bare, arch := Split(name); bare != want[0] || arch != want[1] {
			t.Errorf("Split(%q) = %q, %q", name, bare, arch)
		}
	}
}
