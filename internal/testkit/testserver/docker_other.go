//go:build !linux

package testserver

import "testing"

// Docker fails the test: the daemon for the comparison with stock needs Linux.
func Docker(t testing.TB) string {
	t.Helper()
	t.Fatal("a Docker daemon of its own needs Linux")
	return ""
}

// DockerAfter fails the test, as Docker does.
func DockerAfter(t testing.TB, _ string) (string, int) {
	t.Helper()
	return Docker(t), 0
}
