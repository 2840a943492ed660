package transport

import (
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// subscriberTimeout is how long a subscriber's connection may be silent before it ends. If the path works again
// within that time, the connection still exists. Some of Salt's minions never reconnect, others only after a quarter
// of an hour.
const subscriberTimeout = 15 * time.Minute

// maxResend is the longest time before the kernel sends unacknowledged bytes again. By default the kernel doubles it
// up to two minutes, so bytes sent while a path was dead for ten seconds would arrive six seconds after it works
// again.
const maxResend = 4 * time.Second

// setUserTimeout limits how long sent bytes may stay unacknowledged, and the time between two retransmissions.
func setUserTimeout(c *net.TCPConn, d time.Duration) error {
	return controlSocket(c, func(fd int) error { return boundUnacknowledged(fd, d) })
}

// boundUnacknowledged is like setUserTimeout for a descriptor. Both limits are needed: without the first, the kernel
// counts retransmissions, and more frequent ones would end the connection sooner.
func boundUnacknowledged(fd int, d time.Duration) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds())); err != nil {
		return err
	}
	err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS, int(maxResend.Milliseconds()))
	if errors.Is(err, unix.ENOPROTOOPT) { // Linux before 6.15
		return nil
	}
	return err
}

// inheritKeepAlive sets k on a listener, whose connections inherit it from the kernel. That saves five system calls
// per connection. It returns false if each connection must be configured.
func inheritKeepAlive(ln net.Listener, k KeepAlive) bool {
	t, ok := ln.(*net.TCPListener)
	if !ok {
		return false
	}
	k = k.withDefaults()
	return controlSocket(t, func(fd int) error {
		on := 1
		if k.Disabled {
			on = 0
		}
		err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, on)
		for name, v := range map[int]int{unix.TCP_KEEPIDLE: wholeSeconds(k.Idle), unix.TCP_KEEPINTVL: wholeSeconds(k.Interval), unix.TCP_KEEPCNT: k.Count} {
			if v > 0 && err == nil {
				err = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, name, v)
			}
		}
		if k.UserTimeout > 0 && err == nil {
			err = boundUnacknowledged(fd, k.UserTimeout)
		}
		return err
	}) == nil
}

// wholeSeconds rounds up, as package net does.
func wholeSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// controlSocket calls f with the descriptor of c.
func controlSocket(c syscall.Conn, f func(fd int) error) error {
	rc, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	if err := rc.Control(func(fd uintptr) { serr = f(int(fd)) }); err != nil {
		return err
	}
	return serr
}

// reuseAddr allows binding a fixed source port while its last connection is in TIME_WAIT, as libzmq does.
func reuseAddr(rc syscall.RawConn) error {
	var serr error
	if err := rc.Control(func(fd uintptr) {
		serr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}); err != nil {
		return err
	}
	return serr
}
