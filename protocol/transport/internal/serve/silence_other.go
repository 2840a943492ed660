//go:build !linux

package serve

import (
	"net"
	"time"
)

// telling: only Linux tells how a connection fares; elsewhere it ends when the path is dead.
const telling = false

func unheard(net.Conn) (time.Duration, bool, bool) { return 0, false, false }
