package ipc

import (
	"context"
	"strings"
	"time"

	"github.com/brine-salt/brine/protocol/events"
)

const (
	// newsAge is how long a return is held back after the event of its job, for a salt command of 3007 or later. An
	// event that arrives while such a command handles the previous one may stay in its buffer until the next event, or
	// until its timeout of several seconds. The measurement is at minReturnAge in package minion.
	newsAge = 18 * time.Millisecond
	// maxWaiting is how many events may wait for a client that is paced. Beyond it returns are not delayed.
	maxWaiting = 64
)

// A pacer delays returns that follow the event of their job too closely, for clients that would overlook them.
type pacer struct {
	on   bool
	news time.Time // when the last job event was sent
}

// delayReturn waits if the event is a return that comes too early.
func (p *pacer) delayReturn(ctx context.Context, tag string, sub *events.Subscription) {
	if !p.on || !strings.HasPrefix(tag, "salt/job/") {
		return
	}
	switch _, kind, _ := strings.Cut(tag[len("salt/job/"):], "/"); {
	case kind == "new" || kind == "publish":
		p.news = time.Now()
	case strings.HasPrefix(kind, "ret/"):
		wait := newsAge - time.Since(p.news)
		if wait <= 0 || sub.Waiting() > maxWaiting {
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}
