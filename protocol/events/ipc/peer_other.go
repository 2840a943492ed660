//go:build !linux

package ipc

import "net"

// wantsPrefix is not known here; Options.Framing has to say.
func wantsPrefix(net.Conn) bool { return false }
