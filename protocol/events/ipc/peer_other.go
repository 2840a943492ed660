//go:build !linux

package ipc

import "net"

// wantsPrefix is unknown on this system; set Options.Framing.
func wantsPrefix(net.Conn) bool { return false }

// overlooks is unknown on this system.
func overlooks(net.Conn) bool { return false }

// takesPlain is unknown on this system. Late patch levels read prefixed frames, and so does ours.
func takesPlain(net.Conn) bool { return false }
