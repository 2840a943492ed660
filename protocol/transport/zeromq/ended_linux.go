package zeromq

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// ended says whether the peer has closed a connection, also if the goroutine that reads it has not seen that yet.
func ended(c net.Conn) bool {
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
