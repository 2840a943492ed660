package serve

import (
	"net"
	"time"
)

// silence holds how long subscribers may be silent.
type silence struct {
	look  time.Duration // the interval of checks
	after time.Duration // when a subscriber counts as silent
	bytes time.Duration // when unacknowledged bytes are discarded, with the connection
}

// inReach detects a dead path within 18 seconds. Messages may arrive up to a minute late, but not a quarter of an
// hour.
var inReach = silence{look: 4 * time.Second, after: 14 * time.Second, bytes: time.Minute}

// listenForLife checks which subscribers become silent and which return, until the group is closed. A connection with
// a dead path is kept: it works again when the path does, and not every minion would reconnect.
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

// belowTLS returns the connection below TLS, or c itself without TLS.
func belowTLS(c net.Conn) net.Conn {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return c
}

// abortConn closes a connection and discards unsent bytes.
func abortConn(c net.Conn) {
	c = belowTLS(c)
	if t, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = t.SetLinger(0)
	}
	c.Close()
}
