//go:build !windows && !solaris && !aix

package journal

import (
	"os"

	"golang.org/x/sys/unix"
)

// openFlags refuse a symbolic link in place of the file, because less trusted tools may share the cache directory.
const openFlags = unix.O_NOFOLLOW | unix.O_CLOEXEC

// lockFile locks the file, so that only one process uses the journal. The lock ends with the process.
func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
