package serve

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// telling: the kernel tells how a connection fares.
const telling = true

// tries is how many questions of the kernel in a row must be without an answer: a machine that slept has not asked.
const tries = 2

// unheard is how long the peer of a connection has not answered what the kernel asked or sent, 0 if it did or there is nothing to answer,
// and whether bytes are on the way to it. !ok is a connection that has ended, or is none of TCP.
func unheard(c net.Conn) (d time.Duration, pending, ok bool) {
	s, ok := below(c).(syscall.Conn)
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
