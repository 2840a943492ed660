package serve

import (
	"container/list"
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

const (
	// budgetGrace is how long a large message of an unapproved peer may take while others wait for its place, smallGrace the same for
	// one of up to transport.SmallMessage bytes.
	budgetGrace, smallGrace = 30 * time.Second, 2 * time.Second
	// smallBudget is the memory in bytes for messages of up to transport.SmallMessage of unapproved peers.
	smallBudget = 32 << 20
	// collectFrom is the size in bytes from which a share is free again only after a garbage collection: until then its
	// memory is still in use.
	collectFrom = 8 << 20
)

// Budget is the memory that messages of unapproved peers may fill at one time. It has two pools, so that large messages do not
// keep sign-ins out. A message that needs more than is free waits; the holder of the oldest share loses its connection once it
// is older than the grace, so a peer that claims much and sends nothing cannot keep others out for long. The oldest may grow
// beyond what is free, so that two that grow step by step never wait for each other.
type Budget struct {
	mu           sync.Mutex // guards the fields below
	small, large pool
	changed      chan struct{} // closed and replaced when shares come back
}

// pool is the memory for messages of one kind.
type pool struct {
	free    int64
	holders list.List // of *Share, oldest first
	grace   time.Duration
}

// Share is what one message holds.
type Share struct {
	b     *Budget
	p     *pool
	n     int64
	since time.Time
	conn  io.Closer
	el    *list.Element
}

// NewBudget has n bytes for large messages, and smallBudget for small ones.
func NewBudget(n int64) *Budget {
	return &Budget{small: pool{free: smallBudget, grace: smallGrace}, large: pool{free: n, grace: budgetGrace},
		changed: make(chan struct{})}
}

// SetGrace changes how long a share may be held while others wait. For tests.
func (b *Budget) SetGrace(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.small.grace, b.large.grace = d, d
}

// Grow adds n bytes to s, which may be nil for a new share of the connection conn, and waits until they are free or ctx ends.
func (b *Budget) Grow(ctx context.Context, s *Share, conn io.Closer, n int64) (*Share, error) {
	for {
		b.mu.Lock()
		if grown := b.grow(s, conn, n); grown != nil {
			b.mu.Unlock()
			return grown, nil
		}
		changed, wait := b.changed, b.pool(s, n).evict(s)
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

// pool returns the pool for s with n more bytes.
func (b *Budget) pool(s *Share, n int64) *pool {
	if s != nil {
		n += s.n
	}
	if n <= transport.SmallMessage {
		return &b.small
	}
	return &b.large
}

// grow is Grow without waiting: it returns nil if there is not enough. The caller holds mu.
func (b *Budget) grow(s *Share, conn io.Closer, n int64) *Share {
	p, need := b.pool(s, n), n
	if s != nil && s.p != p {
		need += s.n
	}
	if need > p.free && (s == nil || s.p != p || s.el != p.holders.Front()) {
		return nil
	}
	if s == nil {
		s = &Share{b: b, since: time.Now(), conn: conn}
	}
	if s.p != p {
		if s.p != nil {
			s.p.holders.Remove(s.el)
			s.p.free += s.n
			b.notify()
		}
		s.p, s.el = p, p.holders.PushBack(s)
	}
	p.free -= need
	s.n += n
	return s
}

// evict closes the oldest holder if its grace is over, and returns when to look again. The caller holds mu.
func (p *pool) evict(but *Share) time.Duration {
	for el := p.holders.Front(); el != nil; el = el.Next() {
		s := el.Value.(*Share)
		if s == but || s.conn == nil {
			continue
		}
		age := time.Since(s.since)
		if age < p.grace {
			return p.grace - age
		}
		go s.conn.Close() // Close of a TLS connection may wait for its peer
		s.conn = nil      // its share comes back when its goroutine notices
	}
	return p.grace
}

// notify wakes those that wait for memory. The caller holds mu.
func (b *Budget) notify() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Release gives a share back; nil is fine. The memory of a large message counts until it was collected.
func (s *Share) Release() {
	if s == nil {
		return
	}
	s.b.mu.Lock()
	large := s.el != nil && s.n >= collectFrom
	s.b.mu.Unlock()
	if !large {
		s.release()
		return
	}
	go func() {
		runtime.GC()
		s.release()
	}()
}

func (s *Share) release() {
	b := s.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.el == nil {
		return
	}
	s.p.holders.Remove(s.el)
	s.el = nil
	s.p.free += s.n
	b.notify()
}
