package minion

import (
	"fmt"
	"sync"
	"time"

	"github.com/brine-salt/brine/protocol"
)

// progress sends the items that a function reports before it returns, in order. The function waits only while
// the queue is full.
type progress struct {
	mu    sync.Mutex
	items chan any      // guarded by mu; nil until the first item
	stop  chan struct{} // guarded by mu
	done  chan struct{} // guarded by mu
	shut  bool          // guarded by mu
}

// progressQueue is how many items may wait. A function that reports faster than the master accepts them waits.
const progressQueue = 64

// progressWait is how long the return of a job waits for its progress events.
const progressWait = 10 * time.Second

func (p *progress) send(j *job, item any) {
	if j.link == nil {
		return
	}
	p.mu.Lock()
	if p.shut {
		p.mu.Unlock()
		return
	}
	if p.items == nil {
		p.items, p.stop, p.done = make(chan any, progressQueue), make(chan struct{}),
			make(chan struct{})
		items, stop, done := p.items, p.stop, p.done
		j.link.m.wg.Go(func() {
			defer close(done)
			p.run(j, items, stop)
		})
	}
	items, stop := p.items, p.stop
	p.mu.Unlock()
	select {
	case items <- item:
	case <-stop:
	case <-j.ctx.Done():
	}
}

func (p *progress) run(j *job, items <-chan any, stop <-chan struct{}) {
	for n := 0; ; n++ {
		var item any
		select {
		case item = <-items:
		case <-stop:
			select {
			case item = <-items:
			default:
				return
			}
		}
		tag := protocol.Tagify("job", string(j.JID), "prog", j.link.m.ID(), fmt.Sprint(n))
		if err := j.link.fire(j.link.m.ctx, tag, map[string]any{"return": item}, nil); err != nil {
			j.link.log.Info("Cannot report progress", "jid", string(j.JID), "err", err)
		}
	}
}

// close refuses further items and waits up to progressWait until the reported ones are sent.
func (p *progress) close() {
	p.mu.Lock()
	started := p.items != nil && !p.shut
	p.shut = true
	stop, done := p.stop, p.done
	p.mu.Unlock()
	if !started {
		return
	}
	close(stop)
	t := time.NewTimer(progressWait)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}
