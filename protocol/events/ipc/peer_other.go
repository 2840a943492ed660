//go:build !linux

package ipc

import "net"

// wantsPrefix returns false: the peer's version is not known on this system. Set Options.Framing if needed.
func wantsPrefix(net.Conn) bool { return false }

// overlooks returns false: the peer's version is not known on this system.
func overlooks(net.Conn) bool { return false }

// takesPlain returns false: late patch levels read prefixed frames, and so does brine.
func takesPlain(net.Conn) bool { return false }
