package serve

import (
	"net"
	"time"
)

// silence is how long subscribers may give no sign of life.
type silence struct {
	look  time.Duration // the pause between two looks
	after time.Duration // until they count as out of reach
	bytes time.Duration // until what is on the way to them is taken back, with the connection
}

// inReach finds within 18 seconds that a path is dead. What was sent may come a minute late, but not a quarter of an hour.
var inReach = silence{look: 4 * time.Second, after: 14 * time.Second, bytes: time.Minute}

// listenForLife notes which subscribers are out of reach and which are back, until the group is closed. A connection whose path is dead
// stays: when the path is healed it is as good as ever, and not every minion would make another one.
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
			for _, m := range b.Roster.members() {
				b.hear(m)
			}
		}
	})
}

// hear looks whether a subscriber gives signs of life.
func (b *Base) hear(m *Member) {
	quiet, pending, ok := unheard(m.conn)
	if !ok {
		return
	}
	silent := quiet >= b.silence.after
	if b.Roster.Silence(m, silent) {
		b.Options.Log.Debug("Subscriber out of reach or back", "peer", m.peer, "silent", quiet)
		b.Options.Subscriber(m.peer, !silent)
	}
	if pending && quiet >= b.silence.bytes {
		abort(m.conn)
	}
}

// below is the connection under TLS, if there is any.
func below(c net.Conn) net.Conn {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return c
}

// abort ends a connection and takes back what is on the way.
func abort(c net.Conn) {
	c = below(c)
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	c.Close()
}
