//go:build !windows && !solaris && !aix

package journal

import (
	"os"

	"golang.org/x/sys/unix"
)

// openFlags refuse a link in the file's place: the cache directory may be shared with less trusted tools.
const openFlags = unix.O_NOFOLLOW | unix.O_CLOEXEC

// lock makes sure that only one process uses the journal. It ends with the process.
func lock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
