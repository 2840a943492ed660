package transport

import (
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// subscriberTimeout is after how long without a sign of life a subscriber's connection ends. Until then a path that
// works again finds the connection as it was. Some of Salt's minions never make another one, others only after a
// quarter of an hour.
const subscriberTimeout = 15 * time.Minute

// maxResend limits how long the kernel waits before it sends unacknowledged bytes again. By default it doubles the
// wait up to two minutes, so bytes sent while a path was dead for ten seconds arrive six seconds after it works
// again.
const maxResend = 4 * time.Second

// setUserTimeout limits how long sent bytes may stay unacknowledged, and the time between two attempts.
func setUserTimeout(c *net.TCPConn, d time.Duration) error {
	return controlSocket(c, func(fd int) error { return boundUnacknowledged(fd, d) })
}

// boundUnacknowledged is like setUserTimeout for a descriptor. It sets the time limit as well: without one the kernel
// counts attempts, and more frequent attempts would end the connection sooner.
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

// inheritKeepAlive sets k on a listener, from which the kernel copies it to connections. That saves five system
// calls per connection. It returns false if each connection must be configured.
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

// reuseAddr allows a fixed source port to be used again while its last connection is in TIME_WAIT, as libzmq does.
func reuseAddr(rc syscall.RawConn) error {
	var serr error
	if err := rc.Control(func(fd uintptr) {
		serr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}); err != nil {
		return err
	}
	return serr
}
