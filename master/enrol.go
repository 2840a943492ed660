package master

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/store"
)

// maxJournalID bounds what is kept of the name of a minion's journal.
const maxJournalID = 64

// minionStarted notes that the process of a minion is a new one, which knows nothing of jobs of before unless it keeps a journal, and
// that its queue can be looked at. The load is that of its start event: fetch says that it asks for jobs that are only announced, journal_id
// names the journal.
func (m *Master) minionStarted(ctx context.Context, id string, load map[string]any) {
	err := m.changeMinion(ctx, id, func(x *store.Minion) bool {
		now := time.Now().UnixMicro()
		x.Joined = true
		x.Spec["started"], x.Spec["journal"], x.Spec["fetch"] = now, load["journal"] == true, load["fetch"] == true
		name := fields.Text(load, "journal_id")
		if before := fields.Text(x.Spec, "journal_id"); before != "" && name != before {
			x.Spec["journal_since"] = now
		}
		x.Spec["journal_id"] = name[:min(len(name), maxJournalID)]
		return true
	})
	if err != nil && ctx.Err() == nil {
		m.log.Error("cannot remember start of minion", "minion", id, "err", err)
	}
	m.orders.Contact(id)
}

// changeMinion changes what the store knows of a minion, making the record if there is none. The change gets a copy, reports whether
// there is something to change, and may be called again.
func (m *Master) changeMinion(ctx context.Context, id string, change func(x *store.Minion) bool) error {
	if m.minions == nil {
		return nil
	}
	for {
		x, err := m.minions.Minion(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			x, err = store.Minion{ID: id}, nil
		}
		if err != nil {
			return err
		}
		if x.Spec = maps.Clone(x.Spec); x.Spec == nil {
			x.Spec = make(map[string]any)
		}
		if !change(&x) {
			return nil
		}
		err = m.minions.SwapMinion(ctx, &x)
		if !errors.Is(err, store.ErrChanged) && !errors.Is(err, store.ErrExists) {
			return err
		}
	}
}
