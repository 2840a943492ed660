package serve

import (
	"net"
	"time"
)

// silence is how long subscribers may show no sign of life.
type silence struct {
	look  time.Duration // the interval between checks
	after time.Duration // when a subscriber counts as silent
	bytes time.Duration // when the bytes on the way to it are discarded, with its connection
}

// inReach finds a dead path within 18 seconds. What was sent may arrive a minute late, but not a quarter of an hour
// late.
var inReach = silence{look: 4 * time.Second, after: 14 * time.Second, bytes: time.Minute}

// listenForLife notes which subscribers become silent and which return, until the group is closed. A connection
// with a dead path is kept: when the path works again, so does the connection, and not every minion would make a
// new one.
func (b *Base) listenForLife() {
	if !telling {
		return
	}
	b.Group.mu.Lock()
	defer b.Group.mu.Unlock()
	if b.Group.closed {
		return
	}
	b.Group.wg.Go(func() {
		for b.Group.sleep(b.silence.look) {
			for _, m := range b.Roster.allMembers() {
				b.checkMember(m)
			}
		}
	})
}

// checkMember checks whether a subscriber shows signs of life.
func (b *Base) checkMember(m *Member) {
	quiet, pending, ok := unheardFor(m.conn)
	if !ok {
		return
	}
	silent := quiet >= b.silence.after
	if b.Roster.Silence(m, silent) {
		b.Options.Log.Debug("Subscriber out of reach or back", "peer", m.peer, "silent", quiet)
		b.Options.Subscriber(m.peer, !silent)
	}
	if pending && quiet >= b.silence.bytes {
		abortConn(m.conn)
	}
}

// belowTLS returns the connection below TLS, c itself if there is none.
func belowTLS(c net.Conn) net.Conn {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return c
}

// abortConn ends a connection and discards what is on the way.
func abortConn(c net.Conn) {
	c = belowTLS(c)
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	c.Close()
}
