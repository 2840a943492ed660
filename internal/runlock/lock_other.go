//go:build windows || solaris || aix

package runlock

import (
	"errors"
	"io/fs"
	"os"
)

// lock creates the file again after removing it: Windows does not remove a file that a process has open. On the other
// systems, which lack flock, a second process is not detected.
func lock(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errHeld
	}
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}

// unlock releases the lock.
func unlock(f *os.File) { _ = f.Close() }
