//go:build !linux

package zeromq

import "net"

// ended is not known elsewhere before it is read.
func ended(net.Conn) bool { return false }
