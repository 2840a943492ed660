//go:build !linux

package transport

import (
	"net"
	"syscall"
	"time"
)

// subscriberTimeout is after what time without a sign of life the connection of a subscriber ends.
const subscriberTimeout = 14 * time.Second

// setUserTimeout: only Linux has TCP_USER_TIMEOUT under this name; elsewhere keepalive and the system's own limit do.
func setUserTimeout(*net.TCPConn, time.Duration) error { return nil }

// reuseAddr: elsewhere a fixed source port has to wait for its old connection to be forgotten.
func reuseAddr(syscall.RawConn) error { return nil }

// inherit is for systems where connections take over what their listener was told.
func inherit(net.Listener, KeepAlive) bool { return false }
