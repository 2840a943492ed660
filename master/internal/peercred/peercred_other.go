//go:build !linux && !darwin && !freebsd

package peercred

import "net"

// Supported reports whether this system can identify peers.
const Supported = false

func of(*net.UnixConn) (Cred, error) { return Cred{}, ErrUnsupported }
