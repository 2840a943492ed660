//go:build !unix

package gitfs

// isRunning returns true: without knowing better, a lock stays until it is removed.
func isRunning(int) bool { return true }
