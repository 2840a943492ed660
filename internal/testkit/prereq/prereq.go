// Package prereq checks what a test needs from its machine. Only tests import it.
package prereq

import (
	"os"
	"testing"
)

// Missing ends a test that needs something its machine lacks. It skips the test on a developer's machine. If the
// variable CI is set it fails the test, so that continuous integration cannot pass by skipping tests.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("missing on this machine: %s", what)
	}
	t.Skip("missing on this machine: " + what)
}

// Root ends a test that needs root's rights and does not have them.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, "the rights of root")
	}
}
