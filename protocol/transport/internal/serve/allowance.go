package serve

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/brine-salt/brine/protocol/transport"
)

// An Allowance is the memory for the requests of one connection, which arrive one after another. Large requests of an
// unauthenticated peer count against the budget; those of an approved peer do not.
type Allowance struct {
	Base *Base
	Conn net.Conn // closed when the budget takes the share back

	approved atomic.Bool
	mu       sync.Mutex // guards share; Approve may be called late and from any goroutine
	share    *Share     // the current message's share of the budget
	total    int64      // bytes granted for the current message
}

// Context returns the context of the connection's requests. A handler that calls transport.Approve with it approves
// the peer.
func (a *Allowance) Context() context.Context {
	return a.Base.RequestContext(a.Conn, a.approvePeer)
}

// RequestContext returns the context of the requests of a connection. approve is what transport.Approve calls.
func (b *Base) RequestContext(c net.Conn, approve func()) context.Context {
	ctx := transport.WithApprove(b.Group.Context(), approve)
	return transport.WithLeft(ctx, func() bool { return hasLeft(c) })
}

// Grant reserves memory for a message that has total bytes so far. It waits for memory up to ReadTimeout.
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

// approvePeer is what transport.Approve calls.
func (a *Allowance) approvePeer() {
	if a.approved.CompareAndSwap(false, true) {
		a.Base.Prove(a.Conn)
		a.Release()
	}
}

// Release returns the memory of the current message.
func (a *Allowance) Release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.share.Release()
	a.share, a.total = nil, 0
}
