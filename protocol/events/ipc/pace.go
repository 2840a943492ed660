package ipc

import (
	"context"
	"strings"
	"time"

	"github.com/brine-salt/brine/protocol/events"
)

const (
	// newsAge is how old the news of a job is before its first answer is sent to a salt command of 3007 or later. What comes
	// while such a command works through the news can lie in its buffer until the next event, or until its timeout of
	// seconds; see minReturnAge in package minion for the measurement.
	newsAge = 18 * time.Millisecond
	// maxWaiting is how many events may wait for a client that is paced.
	maxWaiting = 64
)

// pacer keeps answers from following the news of their jobs too closely, for clients that overlook them.
type pacer struct {
	on   bool
	news time.Time // when the last news was sent
}

func (p *pacer) pace(ctx context.Context, tag string, sub *events.Subscription) {
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
