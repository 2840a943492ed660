package checks

import "testing"

func TestEach(t *testing.T) {
	empty := func(s string) bool { return s == "" }
	if err := Each([]string{"a", "b"}, empty, "name %d is empty"); err != nil {
		t.Error(err)
	}
	err := Each([]string{"a", "", ""}, empty, "name %d is empty")
	if err == nil || err.Error() != "name 2 is empty" {
		t.Error(err)
	}
}
