//go:build !linux

package testserver

import "testing"

// Docker ends the test: the daemon of the comparison with stock runs on Linux.
func Docker(t testing.TB) string {
	t.Helper()
	t.Fatal("a Docker daemon of its own needs Linux")
	return ""
}
