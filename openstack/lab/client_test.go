//go:build linux

package lab

import "testing"

// TestHasEnded checks when waiting for the end of an action stops.
func TestHasEnded(t *testing.T) {
	for _, c := range []struct {
		status, action string
		want           bool
	}{
		{"CREATE_FAILED", "CREATE", true},
		{"CREATE_COMPLETE", "CREATE", true},
		{"CREATE_IN_PROGRESS", "CREATE", false},
		{"CREATE_COMPLETE", "UPDATE", false}, // the update has not begun
		{"UPDATE_FAILED", "UPDATE", true},
		{"DELETE_FAILED", "CREATE", true},
		{"DELETE_FAILED", "UPDATE", true},
		{"DELETE_IN_PROGRESS", "UPDATE", false},
		{"ROLLBACK_FAILED", "CREATE", true},
		{"ROLLBACK_COMPLETE", "UPDATE", false}, // of an earlier update
		{"ROLLBACK_COMPLETE", "ROLLBACK", true},
	} {
		if got := hasEnded(c.status, c.action); got != c.want {
			t.Errorf("hasEnded(%q, %q) = %v", c.status, c.action, got)
		}
	}
}
