//go:build unix

package zypperpkg

import (
	"errors"
	"os"
	"syscall"

	"github.com/brine-salt/brine/modules"
)

// rpmLocked reports whether another process holds the lock of rpm's database.
func rpmLocked(c *modules.Call) bool {
	f, err := os.OpenFile(c.Path("/var/lib/rpm/.rpm.lock"), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	// The lock ends when the file is closed.
	err = syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK})
	return errors.Is(err, syscall.EAGAIN)
}
