package serve

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/brine-salt/brine/protocol/transport"
)

// Allowance is the memory that the requests of one connection may take, one after the other: large ones of a peer that nobody vouched for
// come out of the budget.
type Allowance struct {
	Base *Base
	Conn net.Conn // closed when the budget wants its share back

	approved atomic.Bool
	mu       sync.Mutex // guards share: Approve may be called late, from any goroutine
	share    *Share     // what the message being received or handled holds of the budget
	total    int64      // bytes of the budget asked for, for this message
}

// Context is the one of the connection's requests, in which the handler may vouch for the peer.
func (a *Allowance) Context() context.Context {
	return transport.WithApprove(a.Base.Group.Context(), a.approve)
}

// Grant asks for memory for a message that has total bytes so far.
func (a *Allowance) Grant(total int64) error {
	if a.approved.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(a.Base.Group.Context(), a.Base.Options.ReadTimeout)
	defer cancel()
	a.mu.Lock()
	share, more := a.share, total-a.total
	a.mu.Unlock()
	a.Base.Group.Bytes(a.Conn, more)
	share, err := a.Base.Budget.Grow(ctx, share, a.Conn, more)
	a.mu.Lock()
	a.share, a.total = share, total
	a.mu.Unlock()
	return err
}

func (a *Allowance) approve() {
	if a.approved.CompareAndSwap(false, true) {
		a.Base.Prove(a.Conn)
		a.Release()
	}
}

// Release gives back what a message holds.
func (a *Allowance) Release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.share.Release()
	a.share, a.total = nil, 0
}
