// Package peercred identifies the process at the other end of a unix socket by what the kernel knows about it: the user
// and the groups that it had when it connected. Linux, macOS and FreeBSD report them; other systems are not supported.
package peercred

import (
	"errors"
	"net"
)

// ErrUnsupported is the error of [Of] for a connection that is not a unix socket, and on systems that do not report
// peers.
var ErrUnsupported = errors.New("the kernel does not report the peer of this connection")

// ErrForeign is the error of [Of] for a peer in another user namespace. The kernel shows the same user id for
// all of those.
var ErrForeign = errors.New("the peer's user has no id in this user namespace")

// Cred describes a peer at the time it connected.
type Cred struct {
	UID uint32
	// GIDs are its effective group and its supplementary groups, without duplicates.
	GIDs []uint32
}

// Of returns the credentials of a connection's peer. It looks through connections that wrap another one and have a
// method NetConn.
func Of(c net.Conn) (Cred, error) {
	for {
		switch x := c.(type) {
		case *net.UnixConn:
			return of(x)
		case interface{ NetConn() net.Conn }:
			c = x.NetConn()
		default:
			return Cred{}, ErrUnsupported
		}
	}
}

// distinct returns the group ids without repetition, in their order.
func distinct(gids []uint32) []uint32 {
	seen := make(map[uint32]bool, len(gids))
	out := make([]uint32, 0, len(gids))
	for _, g := range gids {
		if !seen[g] {
			seen[g] = true
			out = append(out, g)
		}
	}
	return out
}
