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
	// budgetGrace is how long a large message of an unapproved peer may take while others wait for its memory.
	// smallGrace is the same for messages of up to transport.SmallMessage bytes.
	budgetGrace, smallGrace = 30 * time.Second, 2 * time.Second
	// smallBudget is the memory for the small messages of unapproved peers, in bytes.
	smallBudget = 32 << 20
	// collectFrom is the size in bytes of shares whose memory counts as free only after a garbage collection. Until
	// then the memory is still in use, and counting it as free would let the process grow to twice the budget.
	collectFrom = 8 << 20
)

// A Budget limits the memory that messages of unapproved peers occupy at any moment. It has two pools, so that large
// messages do not keep sign-ins out. A message waits if it needs more than is free. If others wait, the holder of the
// oldest share loses its connection after the grace, so a peer that announces much and sends nothing cannot keep
// others out for long. The oldest share may exceed what is free, so that two messages that grow step by step never
// wait for each other.
type Budget struct {
	mu           sync.Mutex // guards the fields below
	small, large pool
	changed      chan struct{} // closed and replaced when shares are returned
}

// A pool is the memory for messages of one kind.
type pool struct {
	free    int64
	holders list.List // of *Share, oldest first
	grace   time.Duration
}

// A Share is one message's part of the budget.
type Share struct {
	b     *Budget
	p     *pool
	n     int64
	since time.Time
	conn  io.Closer
	el    *list.Element
}

// NewBudget returns a budget of n bytes for large messages, and smallBudget for small ones.
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

// Grow adds n bytes to s and waits until they are free or ctx ends. If s is nil it returns a new share of the
// connection conn.
func (b *Budget) Grow(ctx context.Context, s *Share, conn io.Closer, n int64) (*Share, error) {
	for {
		b.mu.Lock()
		if grown := b.tryGrow(s, conn, n); grown != nil {
			b.mu.Unlock()
			return grown, nil
		}
		changed, wait := b.changed, b.poolFor(s, n).evictOldest(s)
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

// poolFor returns the pool for s with n more bytes.
func (b *Budget) poolFor(s *Share, n int64) *pool {
	if s != nil {
		n += s.n
	}
	if n <= transport.SmallMessage {
		return &b.small
	}
	return &b.large
}

// tryGrow is like Grow without waiting. It returns nil if there is not enough memory. The caller holds mu.
func (b *Budget) tryGrow(s *Share, conn io.Closer, n int64) *Share {
	p, need := b.poolFor(s, n), n
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
			b.notifyWaiters()
		}
		s.p, s.el = p, p.holders.PushBack(s)
	}
	p.free -= need
	s.n += n
	return s
}

// evictOldest closes the connections of holders whose grace is over, except but. It returns when to check again. The
// caller holds mu.
func (p *pool) evictOldest(but *Share) time.Duration {
	for el := p.holders.Front(); el != nil; el = el.Next() {
		s := el.Value.(*Share)
		if s == but || s.conn == nil {
			continue
		}
		age := time.Since(s.since)
		if age < p.grace {
			return p.grace - age
		}
		go s.conn.Close() // closing a TLS connection may wait for its peer
		s.conn = nil      // the share is returned when the connection's goroutine notices
	}
	return p.grace
}

// notifyWaiters wakes the messages that wait for memory. The caller holds mu.
func (b *Budget) notifyWaiters() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Release returns a share to the budget; s may be nil. The memory of a large message counts until it is collected.
func (s *Share) Release() {
	if s == nil {
		return
	}
	s.b.mu.Lock()
	large := s.el != nil && s.n >= collectFrom
	s.b.mu.Unlock()
	if !large {
		s.returnShare()
		return
	}
	go func() {
		runtime.GC()
		s.returnShare()
	}()
}

// returnShare frees the bytes of a share, once.
func (s *Share) returnShare() {
	b := s.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.el == nil {
		return
	}
	s.p.holders.Remove(s.el)
	s.el = nil
	s.p.free += s.n
	b.notifyWaiters()
}
