//go:build windows || solaris || aix

package journal

import "os"

const openFlags = 0

// lockFile does nothing: on this system the lock of the pki directory protects the journal, and an open file cannot
// be renamed over anyway.
func lockFile(*os.File) error { return nil }
