// Package lifecycle tracks the state of a server:
//
//	made ──Start──▶ started ──Listening──▶ serving ──Stop──▶ stopping ──End──▶ ended
//	                   └──────Fail──────────────────────────────────────────▶
//
// Quit asks it to stop, in any state. All methods are safe for concurrent use.
package lifecycle

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Lifecycle is the state of one server. Create it with New.
type Lifecycle struct {
	started, serving atomic.Bool
	failed           error         // why it never listened; set before ready is closed
	ready            chan struct{} // closed when it listens, or never will
	ended, quit      chan struct{}
	quitOnce         sync.Once
}

// New returns a Lifecycle that has not started.
func New() *Lifecycle {
	return &Lifecycle{ready: make(chan struct{}), ended: make(chan struct{}),
		quit: make(chan struct{})}
}

// Start reports whether this is the first start. A caller that gets true must call Listening or Fail, and then
// End.
func (l *Lifecycle) Start() bool { return l.started.CompareAndSwap(false, true) }

// Started reports whether Start was called.
func (l *Lifecycle) Started() bool { return l.started.Load() }

// Listening records that it serves from now on.
func (l *Lifecycle) Listening() {
	l.serving.Store(true)
	close(l.ready)
}

// Fail records why it will never serve.
func (l *Lifecycle) Fail(err error) {
	l.failed = err
	close(l.ready)
}

// Stop records that it no longer serves.
func (l *Lifecycle) Stop() { l.serving.Store(false) }

// End records that all of its goroutines have ended.
func (l *Lifecycle) End() { close(l.ended) }

// Quit asks it to stop.
func (l *Lifecycle) Quit() { l.quitOnce.Do(func() { close(l.quit) }) }

// Serving reports whether it serves.
func (l *Lifecycle) Serving() bool { return l.serving.Load() }

// Ready returns a channel that is closed when it listens, or never will.
func (l *Lifecycle) Ready() <-chan struct{} { return l.ready }

// Ended returns a channel that is closed when all of its goroutines have ended.
func (l *Lifecycle) Ended() <-chan struct{} { return l.ended }

// Quitting returns a channel that is closed when it is asked to stop.
func (l *Lifecycle) Quitting() <-chan struct{} { return l.quit }

// HasListened reports whether it listens, has listened, or failed.
func (l *Lifecycle) HasListened() bool {
	select {
	case <-l.ready:
		return true
	default:
		return false
	}
}

// Failure returns why it never served, or nil if it did. Call it after Ready is closed.
func (l *Lifecycle) Failure() error { return l.failed }

// NotServing returns err, wrapped with the reason if the server has never served.
func (l *Lifecycle) NotServing(err error) error {
	if l.HasListened() && l.failed != nil {
		return fmt.Errorf("%w: %w", err, l.failed)
	}
	return err
}
