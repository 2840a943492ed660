// Package prereq declares what a test needs of its machine. Only tests import it.
package prereq

import (
	"os"
	"testing"
)

// Missing ends a test whose machine lacks what it needs: it is skipped on a developer's machine, and fails where the variable
// CI is set, so that continuous integration never passes by not testing.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("missing on this machine: %s", what)
	}
	t.Skip("missing on this machine: " + what)
}

// Root needs the rights of root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, "the rights of root")
	}
}
