package serve

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// hasUnread reports whether bytes from the peer are waiting to be read.
func hasUnread(c net.Conn) bool {
	s, ok := belowTLS(c).(syscall.Conn)
	if !ok {
		return false
	}
	rc, err := s.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	err = rc.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return err == nil && n > 0
}
