// Package lifecycle is how far something that serves has come:
//
//	made ──Start──▶ started ──Listening──▶ serving ──Stop──▶ stopping ──End──▶ ended
//	                   └──────Fail──────────────────────────────────────────▶
//
// Quit asks it to stop, in any state. All methods may be called from any goroutine.
package lifecycle

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Lifecycle is one such life. Make it with New.
type Lifecycle struct {
	started, serving atomic.Bool
	failed           error         // why it did not come to listen; set before ready is closed
	ready            chan struct{} // closed when it listens, or never will
	ended, quit      chan struct{}
	quitOnce         sync.Once
}

// New returns a life that has not started.
func New() *Lifecycle {
	return &Lifecycle{ready: make(chan struct{}), ended: make(chan struct{}),
		quit: make(chan struct{})}
}

// Start reports whether this is the first start. Who gets true calls Listening or Fail, and then End.
func (l *Lifecycle) Start() bool { return l.started.CompareAndSwap(false, true) }

// Started reports whether Start was called.
func (l *Lifecycle) Started() bool { return l.started.Load() }

// Listening says that it serves from now on.
func (l *Lifecycle) Listening() {
	l.serving.Store(true)
	close(l.ready)
}

// Fail says why it will never serve.
func (l *Lifecycle) Fail(err error) {
	l.failed = err
	close(l.ready)
}

// Stop says that it does not serve any more.
func (l *Lifecycle) Stop() { l.serving.Store(false) }

// End says that nothing of it runs any more.
func (l *Lifecycle) End() { close(l.ended) }

// Quit asks it to stop.
func (l *Lifecycle) Quit() { l.quitOnce.Do(func() { close(l.quit) }) }

// Serving reports whether it serves.
func (l *Lifecycle) Serving() bool { return l.serving.Load() }

// Ready is closed when it listens, or never will.
func (l *Lifecycle) Ready() <-chan struct{} { return l.ready }

// Ended is closed when nothing of it runs any more.
func (l *Lifecycle) Ended() <-chan struct{} { return l.ended }

// Quitting is closed when it is asked to stop.
func (l *Lifecycle) Quitting() <-chan struct{} { return l.quit }

// HasListened reports whether it listens, or has listened or failed.
func (l *Lifecycle) HasListened() bool {
	select {
	case <-l.ready:
		return true
	default:
		return false
	}
}

// Failure is why it never served, nil if it did. It may be called when Ready is closed.
func (l *Lifecycle) Failure() error { return l.failed }

// NotServing wraps the error of what does not serve with the reason, if it has never served.
func (l *Lifecycle) NotServing(err error) error {
	if l.HasListened() && l.failed != nil {
		return fmt.Errorf("%w: %w", err, l.failed)
	}
	return err
}
