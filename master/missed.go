package master

import (
	"context"

	"github.com/brine-salt/brine/master/store"
)

// catchUp gives a run the returns that the store has and that it was not told of.
func (m *Master) catchUp(ctx context.Context, r *Run) error {
	if m.runs.NoCache(r.JID) {
		return nil
	}
	return store.EachReturn(ctx, m.store, r.JID, r.awaits,
		func(x store.Return) { r.deliver(resultOf(x.ID, x.Load)) })
}

// catchUpAll is catchUp for all runs, after messages of other masters were missed.
func (m *Master) catchUpAll(ctx context.Context) {
	for _, r := range m.runs.list() {
		if err := m.catchUp(ctx, r); err != nil {
			m.log.Warn("Returns cannot be read", "jid", r.JID, "err", err)
		}
	}
}
