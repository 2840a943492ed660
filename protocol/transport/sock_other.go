//go:build !linux

package transport

import (
	"net"
	"syscall"
	"time"
)

// subscriberTimeout is how long a subscriber's connection may be silent before it ends.
const subscriberTimeout = 14 * time.Second

// setUserTimeout does nothing: only Linux has TCP_USER_TIMEOUT. Elsewhere keepalive and the system's own limit
// apply.
func setUserTimeout(*net.TCPConn, time.Duration) error { return nil }

// reuseAddr does nothing: on this system a fixed source port cannot be bound until the system forgets its old
// connection.
func reuseAddr(syscall.RawConn) error { return nil }

// inheritKeepAlive returns false: each connection must be configured.
func inheritKeepAlive(net.Listener, KeepAlive) bool { return false }
