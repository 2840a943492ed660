package serve

import (
	"container/list"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

// budgetGrace is how long a large message of an unapproved peer may take while others wait for its place.
const budgetGrace = 30 * time.Second

// Budget is the memory that large messages of unapproved peers may fill at one time. Who asks for more than is free waits; the holder
// of the oldest share loses its connection once it is older than the grace, so a peer that claims much and sends nothing
// cannot keep others out for long. The oldest may grow beyond what is free, so that two that grow step by step never wait for each other.
type Budget struct {
	mu      sync.Mutex // guards the fields below
	free    int64
	holders list.List     // of *Share, oldest first
	changed chan struct{} // closed and replaced when shares come back
	grace   time.Duration
}

// Share is what one message holds.
type Share struct {
	b     *Budget
	n     int64
	since time.Time
	conn  io.Closer
	el    *list.Element
}

// NewBudget has n bytes.
func NewBudget(n int64) *Budget {
	return &Budget{free: n, changed: make(chan struct{}), grace: budgetGrace}
}

// SetGrace changes how long a share may be held while others wait. For tests.
func (b *Budget) SetGrace(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.grace = d
}

// Grow adds n bytes to s, which may be nil for a new share of the connection conn, and waits until they are free or ctx ends.
func (b *Budget) Grow(ctx context.Context, s *Share, conn io.Closer, n int64) (*Share, error) {
	for {
		b.mu.Lock()
		if n <= b.free || s != nil && s.el == b.holders.Front() {
			b.free -= n
			if s == nil {
				s = &Share{b: b, since: time.Now(), conn: conn}
				s.el = b.holders.PushBack(s)
			}
			s.n += n
			b.mu.Unlock()
			return s, nil
		}
		changed, wait := b.changed, b.evict(s)
		b.mu.Unlock()
		t := time.NewTimer(wait)
		select {
		case <-changed:
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return s, fmt.Errorf("transport: no memory for %d more bytes of unapproved peers: %w", n, transport.ErrTooBig)
		}
		t.Stop()
	}
}

// evict closes the oldest holder if its grace is over, and says when to look again. The caller holds mu.
func (b *Budget) evict(but *Share) time.Duration {
	for el := b.holders.Front(); el != nil; el = el.Next() {
		s := el.Value.(*Share)
		if s == but || s.conn == nil {
			continue
		}
		age := time.Since(s.since)
		if age < b.grace {
			return b.grace - age
		}
		go s.conn.Close() // Close of a TLS connection may wait for its peer
		s.conn = nil      // its share comes back when its goroutine notices
	}
	return b.grace
}

// Release gives a share back; nil is fine.
func (s *Share) Release() {
	if s == nil {
		return
	}
	b := s.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.el == nil {
		return
	}
	b.holders.Remove(s.el)
	s.el = nil
	b.free += s.n
	close(b.changed)
	b.changed = make(chan struct{})
}
