//go:build !linux

package ipc

import "net"

// wantsPrefix is not known here; Options.Framing has to say.
func wantsPrefix(net.Conn) bool { return false }

// overlooks is not known here.
func overlooks(net.Conn) bool { return false }

// takesPlain is not known here: late patch levels read prefixed frames, and so does ours.
func takesPlain(net.Conn) bool { return false }
