//go:build darwin || freebsd

package peercred

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// Supported reports whether this system can identify peers.
const Supported = true

// solLocal is SOL_LOCAL, the level of LOCAL_PEERCRED, which x/sys does not have for all of these systems.
const solLocal = 0

func of(c *net.UnixConn) (Cred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Cred{}, err
	}
	var x *unix.Xucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		x,
			failed = unix.GetsockoptXucred(int(fd), solLocal, unix.LOCAL_PEERCRED)
	})
	if err = errors.Join(err, failed); err != nil {
		return Cred{}, fmt.Errorf("cannot read LOCAL_PEERCRED: %w", err)
	}
	n := min(max(int(x.Ngroups), 0), len(x.Groups)) // the kernel reports no more than these
	return Cred{UID: x.Uid, GIDs: distinct(x.Groups[:n])}, nil
}
