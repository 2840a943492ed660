//go:build !linux

package serve

import "net"

// A poller is for Linux. Elsewhere each connection waits in a goroutine.
type poller struct{}

func (*poller) close() {}

func (g *Group) watch(c net.Conn) net.Conn { return c }

func park(net.Conn, Session) bool { return false }
