package serve

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// tcpEstablished is the kernel's state of a connection that neither side has closed (TCP_ESTABLISHED).
const tcpEstablished = 1

// hasLeft reports whether the peer of a connection has closed it, even if no goroutine reads it. A reply would be
// lost.
func hasLeft(c net.Conn) bool {
	s, ok := belowTLS(c).(syscall.Conn)
	if !ok {
		return false
	}
	rc, err := s.SyscallConn()
	if err != nil {
		return true // closed on this side
	}
	var info *unix.TCPInfo
	if rc.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	}) != nil {
		return true // closed on this side
	}
	return err == nil && info.State != tcpEstablished
}
