package master

import (
	"context"

	"github.com/brine-salt/brine/master/store"
)

// catchUp delivers to a run the stored returns that it has missed.
func (m *Master) catchUp(ctx context.Context, r *Run) error {
	if m.runs.NoCache(r.JID) {
		return nil
	}
	return store.EachReturn(ctx, m.store, r.JID, r.awaits,
		func(x store.Return) { r.deliver(resultOf(x.ID, x.Load)) })
}

// catchUpAll calls catchUp for all runs, after messages of peer masters were missed.
func (m *Master) catchUpAll(ctx context.Context) {
	for _, r := range m.runs.list() {
		if err := m.catchUp(ctx, r); err != nil {
			m.log.Warn("Returns cannot be read", "jid", r.JID, "err", err)
		}
	}
}
