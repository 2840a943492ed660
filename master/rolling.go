package master

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/brine-salt/brine/protocol/target"
)

// Rolling configures Batch. The zero value runs one order after another and stops at the first failure.
type Rolling struct {
	// Size is how many orders run at once; 0 means 1.
	Size int
	// Pause is the pause between batches.
	Pause time.Duration
	// Stop is called after every batch with all outcomes so far; true ends the run. nil means to stop after any
	// outcome without success.
	Stop func(done []Outcome) bool
}

// ErrStopped means that Batch stopped because of earlier outcomes.
var ErrStopped = errors.New("stopped after a batch that failed")

// Batch places orders in batches; the next batch begins when the last has ended. It returns the outcomes of the
// placed orders, in order, and ErrStopped if the rest was left out. If the orders have ids, Batch can be
// repeated after a crash: orders that are done are not run again.
func (m *Master) Batch(ctx context.Context, orders []Order, r Rolling) ([]Outcome, error) {
	setDefault(&r.Size, 1)
	if r.Size < 0 {
		return nil, fmt.Errorf("cannot run batches of %d", r.Size)
	}
	if r.Stop == nil {
		r.Stop = func(done []Outcome) bool {
			return slices.ContainsFunc(done, func(o Outcome) bool { return !o.Success() })
		}
	}
	var done []Outcome
	for batch := range slices.Chunk(orders, r.Size) {
		if len(done) > 0 {
			if r.Stop(done) {
				return done, ErrStopped
			}
			if err := pause(ctx, r.Pause); err != nil {
				return done, err
			}
		}
		placed := make([]string, 0, len(batch))
		for _, o := range batch {
			out, err := m.PlaceOrder(ctx, o)
			if err != nil {
				return done, err
			}
			placed = append(placed, out.ID)
		}
		for _, id := range placed {
			out, err := m.AwaitOrder(ctx, id)
			if err != nil {
				return done, err
			}
			done = append(done, out)
		}
	}
	return done, nil
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Split returns one order for each minion that an order targets now, sorted by minion id, so that Batch can
// roll a change out. If the order has an id, each part's is that id, a slash and the minion id. It returns an
// error for an order with files, because their paths contain the order's id.
func (m *Master) Split(ctx context.Context, o Order) ([]Order, error) {
	if len(o.Files) > 0 || o.FileStream != nil {
		return nil, errors.New("cannot split order: it has files; " +
			"give each part files and an id of its own")
	}
	ids, err := m.meant(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("cannot split order: %w", err)
	}
	out := make([]Order, len(ids))
	for i, id := range ids {
		one := o
		one.Extra = maps.Clone(o.Extra)
		one.Tgt, one.TgtType, one.JID = []string{id}, target.TypeList, ""
		if o.ID != "" {
			one.ID = o.ID + "/" + id
		}
		out[i] = one
	}
	return out, nil
}
