package pyre

import "testing"

func TestSearch(t *testing.T) {
	cases := []struct {
		pattern, s string
		want       bool
	}{
		{`b+`, "abbc", true}, {`^b`, "ab", false}, {`c$`, "ab\nc", true}, {`(?i)BC`, "abc", true}, {`(?i)x|BC`, "abc", true},
		{`a|^z`, "xa", true}, {`.sls$`, "dir/x.sls", true}, {`(?:ab)$`, "ab", true}, {``, "", true}, {`(?<=a)b`, "cab", true},
	}
	for _, c := range cases {
		if got, err := Search(c.pattern, c.s); err != nil || got != c.want {
			t.Errorf("Search(%q, %q) = %v, %v", c.pattern, c.s, got, err)
		}
	}
	if _, err := Search("(", "x"); err == nil {
		t.Error("an open group is taken")
	}
}

func TestExpr(t *testing.T) {
	cases := []struct {
		s, expr string
		want    bool
	}{{"web1", "web*", true}, {"web1", `web\d`, true}, {"web12", `web\d`, false}, {"(", "(", true}, {"x", "(", false}, {"db", "web|db", true}}
	for _, c := range cases {
		if got := Expr(c.s, c.expr); got != c.want {
			t.Errorf("Expr(%q, %q) = %v", c.s, c.expr, got)
		}
	}
}
