//go:build !linux

package transport

import (
	"net"
	"syscall"
	"time"
)

// subscriberTimeout is after how long without a sign of life a subscriber's connection ends.
const subscriberTimeout = 14 * time.Second

// setUserTimeout does nothing: only Linux has TCP_USER_TIMEOUT. Elsewhere keepalive and the system's own limit
// apply.
func setUserTimeout(*net.TCPConn, time.Duration) error { return nil }

// reuseAddr does nothing: on this system a fixed source port must wait until its old connection is forgotten.
func reuseAddr(syscall.RawConn) error { return nil }

// inheritKeepAlive returns false: each connection must be configured.
func inheritKeepAlive(net.Listener, KeepAlive) bool { return false }
