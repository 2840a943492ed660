package transport

import (
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// subscriberTimeout is after what time without a sign of life the connection of a subscriber ends. Until then a path that is healed
// finds it as it was: some of Salt's minions never make another one, others after a quarter of an hour.
const subscriberTimeout = 15 * time.Minute

// maxResend is how long the kernel waits at most before it sends unacknowledged bytes again. Its own limit is two minutes, and it waits twice as
// long each time: what is sent over a path that was dead for ten seconds comes six seconds after it is back.
const maxResend = 4 * time.Second

// setUserTimeout bounds how long sent bytes may stay unacknowledged, which keepalive does not look at, and between two attempts.
func setUserTimeout(c *net.TCPConn, d time.Duration) error {
	return control(c, func(fd int) error { return boundUnacknowledged(fd, d) })
}

// boundUnacknowledged is setUserTimeout for a descriptor. Without a limit in time the kernel counts attempts, and those are not made to follow each
// other sooner.
func boundUnacknowledged(fd int, d time.Duration) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds())); err != nil {
		return err
	}
	err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS, int(maxResend.Milliseconds()))
	if errors.Is(err, unix.ENOPROTOOPT) { // before Linux 6.15
		return nil
	}
	return err
}

// inherit sets k on a listener of ours, from which the kernel gives it to the connections: five system calls for each of them are saved.
// false says that each has to be told.
func inherit(ln net.Listener, k KeepAlive) bool {
	t, ok := ln.(*net.TCPListener)
	if !ok {
		return false
	}
	k = k.withDefaults()
	return control(t, func(fd int) error {
		on := 1
		if k.Disabled {
			on = 0
		}
		err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, on)
		for name, v := range map[int]int{unix.TCP_KEEPIDLE: seconds(k.Idle), unix.TCP_KEEPINTVL: seconds(k.Interval), unix.TCP_KEEPCNT: k.Count} {
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

// seconds rounds up, as package net does.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

func control(c syscall.Conn, f func(fd int) error) error {
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

// reuseAddr lets a fixed source port be used again while its last connection lingers in TIME_WAIT, as libzmq does.
func reuseAddr(rc syscall.RawConn) error {
	var serr error
	if err := rc.Control(func(fd uintptr) {
		serr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}); err != nil {
		return err
	}
	return serr
}
