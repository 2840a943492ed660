package master

import (
	"context"
	"time"
)

// Drain ends the master gracefully, for a program that is replaced by its next version. Orders are no longer
// accepted or sent, and the other masters of the same store take over those that were sent. Jobs whose results
// are awaited (Run, Submit) may return until ctx ends; then Serve returns. It returns ctx's error if some job
// was still awaited, or the store's.
func (m *Master) Drain(ctx context.Context) error {
	var err error
	if m.orders != nil {
		err = m.orders.Drain(ctx)
	}
	tick := time.NewTicker(drainTick)
	defer tick.Stop()
	for m.life.Serving() && m.runs.awaited() && ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-m.life.Ended():
		case <-ctx.Done():
		}
	}
	m.life.Quit()
	if m.life.Started() {
		<-m.life.Ended() // at most shutdownTime later
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// drainTick is how often Drain checks for awaited jobs.
const drainTick = 20 * time.Millisecond
