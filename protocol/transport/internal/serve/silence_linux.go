package serve

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// telling reports whether the kernel shows the state of a connection.
const telling = true

// tries is how many unanswered probes of the kernel in a row count as silence. One is not enough: a host that just
// woke up did not send the earlier ones.
const tries = 2

// unheardFor returns for how long the peer has not acknowledged the kernel's packets, or 0 if it did or none is
// pending, and whether unacknowledged bytes are pending. ok is false for a connection that has ended or is not TCP.
func unheardFor(c net.Conn) (d time.Duration, pending, ok bool) {
	s, ok := belowTLS(c).(syscall.Conn)
	if !ok {
		return 0, false, false
	}
	rc, err := s.SyscallConn()
	if err != nil {
		return 0, false, false
	}
	var info *unix.TCPInfo
	if cerr := rc.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); cerr != nil || err != nil {
		return 0, false, false
	}
	if int(info.Probes)+int(info.Retransmits) < tries {
		return 0, false, true
	}
	return time.Duration(info.Last_ack_recv) * time.Millisecond, info.Unacked > 0, true
}
