package lazyre

import "testing"

func TestGet(t *testing.T) {
	r := &Regexp{Expr: `^a+$`}
	if a, b := r.Get(), r.Get(); a != b || !a.MatchString("aa") || a.MatchString("ab") {
		t.Errorf("%v, %v", a, b)
	}
}
