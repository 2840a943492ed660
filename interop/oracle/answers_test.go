package oracle

import "testing"

// TestSaysOtherwise: only a program that is asked the same can say something else than on the host of the answers.
func TestSaysOtherwise(t *testing.T) {
	ip := Program{Args: []string{"ip", "link"}, Stdout: "1: lo"}
	other, missing, failed := ip, ip, ip
	other.Stdout = "1: lo\n2: eth0"
	missing.Missing = true
	failed.Exit = 1
	asked := Program{Args: []string{"ip", "-6", "link"}, Stdout: "2: eth0"}
	fed := Program{Args: ip.Args, Stdin: "x", Stdout: "2: eth0"}
	for name, tt := range map[string]struct {
		old, now []Program
		want     bool
	}{
		"the same":                  {[]Program{ip, other}, []Program{ip, other}, false},
		"in another order":          {[]Program{ip, other}, []Program{other, ip}, true},
		"other output":              {[]Program{ip}, []Program{other}, true},
		"not installed":             {[]Program{ip}, []Program{missing}, true},
		"another exit status":       {[]Program{ip}, []Program{failed}, true},
		"asked with other words":    {[]Program{ip}, []Program{asked}, false},
		"with other standard input": {[]Program{ip}, []Program{fed}, false},
		"once more":                 {[]Program{ip}, []Program{ip, other}, false},
		"not asked any more":        {[]Program{ip}, nil, false},
	} {
		if got := saysOtherwise(tt.old, tt.now); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestSameJSON: what is another text in each run makes no answer stale.
func TestSameJSON(t *testing.T) {
	for _, tt := range []struct {
		a, b any
		want bool
	}{
		{map[string]any{"m": "<object at 0x7fcf7d2fbf70>"}, map[string]any{"m": "<object at 0x7f22339e84f0>"}, true},
		{"{'pid': 10360, 'retcode': 1}", "{'pid': 28476, 'retcode': 1}", true},
		{"{'pid': 10360, 'retcode': 1}", "{'pid': 28476, 'retcode': 2}", false},
		{"/tmp/__salt.tmp.abc", "/tmp/__salt.tmp.xyz", true},
		{"0x1f", "0x2f", false},
	} {
		if got := sameJSON(tt.a, tt.b); got != tt.want {
			t.Errorf("%v and %v: %t", tt.a, tt.b, got)
		}
	}
}
