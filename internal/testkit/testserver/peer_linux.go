package testserver

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// isOurs reports whether this process is the client of a connection. It returns true if that is unknown, as on TCP.
func isOurs(c net.Conn) bool {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return true
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return false
	}
	var cred *unix.Ucred
	err = raw.Control(func(fd uintptr) { cred, _ = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return err == nil && cred != nil && int(cred.Pid) == os.Getpid()
}
