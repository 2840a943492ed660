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

// Rolling says how Batch goes through its orders. The zero value takes one after the other and stops at the first
// that fails.
type Rolling struct {
	// Size is how many orders are under way at once; 0 means 1.
	Size int
	// Pause is between one batch and the next.
	Pause time.Duration
	// Stop is asked after every batch with all outcomes so far; true ends the run. nil stops when one has no success.
	Stop func(done []Outcome) bool
}

// ErrStopped says that Batch was stopped by what came out of earlier orders.
var ErrStopped = errors.New("stopped after a batch that failed")

// Batch calls orders in batches: the next begins when the last has ended. It gives the outcomes of those that were
// placed, in order, and ErrStopped when the rest was left out. Orders with ids make it safe to call again after a
// crash: what is done already is not done again.
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

// Split makes an order into one for each minion that it means now, sorted by id; with an id of its own, which is the
// order's, a slash and the minion's. So a rolling change goes through the minions of any target. An order with files
// cannot be split: their paths have the id of one order.
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
