package jobenv

import "testing"

func TestMap(t *testing.T) {
	t.Setenv("BRINE_KEEP", "a=b")
	t.Setenv("BRINE_DROP", "x")
	env := Map([]string{"BRINE_DROP", "BRINE_NEW=", "BRINE_KEEP=c=d"})
	if v, ok := env["BRINE_NEW"]; v != "" || !ok {
		t.Errorf("the new variable is %q, %v", v, ok)
	}
	if _, ok := env["BRINE_DROP"]; ok {
		t.Error("the removed variable is there")
	}
	if env["BRINE_KEEP"] != "c=d" {
		t.Errorf("the changed variable is %q", env["BRINE_KEEP"])
	}
}
