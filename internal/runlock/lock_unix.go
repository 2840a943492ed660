//go:build !windows && !solaris && !aix

package runlock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock opens the file and locks it. It does not follow a symbolic link.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errHeld
	}
	return nil, err
}

// unlock releases the lock. Closing the file alone would not, as long as a program that is being started has a copy of
// the descriptor.
func unlock(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	_ = f.Close()
}
