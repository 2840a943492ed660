//go:build !windows && !solaris && !aix

package minion

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// lockDir makes sure that only one minion uses a directory. It locks the directory itself. The lock ends with
// the process, so no stale lock file can remain.
func lockDir(dir string) (release func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot lock %q: %w", dir, err)
	}
	err = unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		d.Close()
		return nil, fmt.Errorf("%w: %q", ErrRunning, dir)
	}
	if err != nil {
		d.Close()
		return nil, fmt.Errorf("cannot lock %q: %w", dir, err)
	}
	return func() { d.Close() }, nil
}

// ownerIDs returns the user ids that may own the minion's files: that of the configured user.
func ownerIDs(name string) []int {
	if name == "" || name == "root" {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil
	}
	id, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil
	}
	return []int{id}
}
