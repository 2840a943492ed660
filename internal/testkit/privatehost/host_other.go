//go:build !linux

package privatehost

import "testing"

// Inside returns false: this system has no namespaces.
func Inside() bool { return false }

// Enter fails the test: this system has no namespaces.
func Enter(t *testing.T, _ ...string) {
	t.Helper()
	t.Error("cases that change the host need Linux")
}

// Host is the machine that a case runs on.
type Host struct {
	// Keep is a process that is not ended after a case.
	Keep int
}

// New fails the test: this system has no namespaces.
func New(t *testing.T) *Host {
	t.Helper()
	t.Fatal("cases that change the host need Linux")
	return nil
}

// Fresh does nothing.
func (*Host) Fresh(*testing.T) {}

// Layers returns nil.
func (*Host) Layers() map[string]string { return nil }

// Undo does nothing.
func (*Host) Undo(*testing.T) {}
