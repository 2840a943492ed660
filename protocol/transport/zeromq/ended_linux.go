package zeromq

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// peerClosed reports whether the peer has closed a connection, even if the goroutine that reads it has not noticed
// yet. A request on a closed connection would be lost and could not be sent again.
func peerClosed(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	rc, err := s.SyscallConn()
	if err != nil {
		return true
	}
	var n int
	var look error
	err = rc.Control(func(fd uintptr) {
		n, _, look = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	if err != nil {
		return true // closed on this side
	}
	return look == nil && n == 0 || look != nil && !errors.Is(look, unix.EAGAIN) && !errors.Is(look, unix.EINTR)
}
