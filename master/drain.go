package master

import (
	"context"
	"time"
)

// Drain ends the master gently, for a program that is replaced by its next version: no order is taken or sent any
// more, the other masters of the same store are told to look after those that were sent, jobs whose results are
// awaited (Run, Submit) may still return until ctx ends, and then Serve returns. Without orders it is a Serve whose
// context ends a little later. The error is ctx's when something was still awaited, or the store's.
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
		<-m.life.Ended() // Serve gives running requests shutdownTime, not more
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// drainTick is how often Drain looks whether something is still awaited.
const drainTick = 20 * time.Millisecond
