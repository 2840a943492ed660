package pkgversion

import "testing"

func TestPythonSatisfies(t *testing.T) {
	for _, c := range []struct {
		version, oper, spec string
		want                bool
	}{
		{"1.0", "==", "1.0.0", true}, {"1.0+local", "==", "1.0", true}, {"1.0", "==", "1.0+local", false}, {"1.1", "==", "1.*", true}, {"2.0", "==", "1.*", false},
		{"1.0.1", "==", "1.0.*", true}, {"1.1.0", "==", "1.0.*", false}, {"1.0", "!=", "1.0", false}, {"1.0", "!=", "1.*", false}, {"1.5", ">=", "1.0", true},
		{"1.0rc1", ">=", "1.0", false}, {"1.0rc1", "<", "1.0", false}, {"1.0rc1", "<", "1.0rc2", true}, {"0.9", "<", "1.0", true}, {"1.0.post1", ">", "1.0", false},
		{"1.0.1", ">", "1.0", true}, {"1.0+x", ">", "1.0", false}, {"1.4.5", "~=", "1.4.2", true}, {"1.5", "~=", "1.4.2", false}, {"1.9", "~=", "1.4", true},
		{"2.0", "~=", "1.4", false}, {"1.0", "===", "1.0", true}, {"1.0", "===", "1.0.0", false}, {"1.0", "<=", "1.0", true}, {"1.0", "=", "1.0", false},
		{"1!1.0", "==", "1.0", false}, {"1!1.0", "==", "1!1.*", true}, {"odd", "==", "1.*", false},
	} {
		if got := PythonSatisfies(c.version, c.oper, c.spec); got != c.want {
			t.Errorf("%s %s%s: %v", c.version, c.oper, c.spec, got)
		}
	}
}
