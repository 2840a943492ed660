package master

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// lifecycle is how far a master has come: it is made, it serves, it has ended.
type lifecycle struct {
	started atomic.Bool // Serve or Close was called
	serving atomic.Bool
	ready   chan struct{} // closed when the master listens, or never will
	failed  error         // why Serve did not come to listen; set before ready is closed
	ended   chan struct{}

	quit     chan struct{} // closed by Drain
	quitOnce sync.Once
}

func newLifecycle() *lifecycle {
	return &lifecycle{ready: make(chan struct{}), ended: make(chan struct{}), quit: make(chan struct{})}
}

// notServing is ErrNotServing, with the reason if the master has never served.
func (l *lifecycle) notServing() error {
	select {
	case <-l.ready:
		if l.failed != nil {
			return fmt.Errorf("%w: %w", ErrNotServing, l.failed)
		}
	default:
	}
	return ErrNotServing
}

// isReady reports whether the master listens, or did.
func (l *lifecycle) isReady() bool {
	select {
	case <-l.ready:
		return true
	default:
		return false
	}
}
