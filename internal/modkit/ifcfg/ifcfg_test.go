package ifcfg

import "testing"

func TestTruth(t *testing.T) {
	for _, x := range []struct {
		v         any
		value, ok bool
	}{
		{"yes", true, true}, {int64(1), true, true}, {true, true, true}, {"off", false, true}, {int64(0), false, true},
		{"Yes", false, false}, {nil, false, false}, {int64(2), false, false},
	} {
		if value, ok := Truth(x.v); value != x.value || ok != x.ok {
			t.Errorf("Truth(%v) = %v, %v", x.v, value, ok)
		}
	}
}

func TestIsAddr(t *testing.T) {
	for _, x := range []struct {
		v    any
		v4   bool
		want bool
	}{
		{"10.0.0.1", true, true}, {"10.0.0.1/24", true, true}, {"10.0.0.1/33", true, false}, {"10.0.0.1/0", true, false},
		{"fd00::1", true, false}, {"fd00::1/64", false, true}, {"fe80::1%eth0", false, false}, {int64(5), true, false},
	} {
		if got := IsAddr(x.v, x.v4); got != x.want {
			t.Errorf("IsAddr(%v, %v) = %v", x.v, x.v4, got)
		}
	}
}

func TestIsMAC(t *testing.T) {
	for text, want := range map[string]bool{"02:00:00:00:00:0A": true, "2-0-0-0-0-1": true, "02.00.00.00.00.01": true, "02:00-00:00:00:01": false, "": false} {
		if got, err := IsMAC(text); got != want || err != nil {
			t.Errorf("IsMAC(%q) = %v, %v", text, got, err)
		}
	}
	if _, err := IsMAC(nil); err == nil {
		t.Error("IsMAC(nil) is no error")
	}
}
