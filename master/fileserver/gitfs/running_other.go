//go:build !unix

package gitfs

// running cannot be found out: a lock stays until somebody removes it.
func running(int) bool { return true }
