package beacon

import "testing"

// TestKindsWithoutValidation checks that a program's own kind may leave out Validate, and that its panic does not end
// the minion.
func TestKindsWithoutValidation(t *testing.T) {
	if ok, comment := (&Kind{Name: "own"}).valid(nil, nil); !ok || comment != "" {
		t.Error(ok, comment)
	}
	broken := &Kind{Name: "own", Validate: func(*Host, any) (bool, string) { panic("no") }}
	if ok, comment := broken.valid(nil, nil); ok || comment != "its validation failed: no" {
		t.Error(ok, comment)
	}
}
