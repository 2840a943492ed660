//go:build windows || solaris || aix

package journal

import "os"

const openFlags = 0

// lockFile does nothing: on this system the lock of the pki directory protects the journal, and an open file cannot
// be replaced.
func lockFile(*os.File) error { return nil }
