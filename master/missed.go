package master

import (
	"context"
	"maps"
	"slices"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/payload"
)

// readPage is how many returns are read from the store at once.
const readPage = 64

// returnsOf reads what the store has of a job from some minions, or from all if ids is empty, until that is about so many bytes. left are the
// minions that have returned and were not read.
func (m *Master) returnsOf(ctx context.Context, jid string, ids []string, bytes int) (out map[string]any, left []string, err error) {
	out, left = make(map[string]any), []string{}
	set := make(map[string]struct{}, len(ids))
	for _, id := range ids {
		set[id] = struct{}{}
	}
	wanted := func(id string) bool { return len(ids) == 0 || fields.Has(set, id) }
	err = m.eachReturn(ctx, jid, wanted, func(r store.Return) {
		if bytes <= 0 {
			left = append(left, r.ID)
			return
		}
		load := r.Load
		if load["jid"] == nil || load["id"] == nil {
			load = maps.Clone(load)
			load["jid"], load["id"] = jid, r.ID
		}
		bytes -= payload.Size(load)
		out[r.ID] = load
	})
	return out, left, err
}

// eachReturn calls f with the returns of a job that are in the store, of the minions that are wanted.
func (m *Master) eachReturn(ctx context.Context, jid string, wanted func(id string) bool, f func(store.Return)) error {
	db, ok := store.PagedOf(m.store)
	if !ok {
		all, err := m.store.Returns(ctx, jid)
		for _, r := range all {
			if wanted(r.ID) {
				f(r)
			}
		}
		return err
	}
	ids, err := db.Returned(ctx, jid)
	if err != nil {
		return err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return !wanted(id) })
	for part := range slices.Chunk(ids, readPage) {
		list, err := db.ReturnsOf(ctx, jid, part)
		if err != nil {
			return err
		}
		for _, r := range list {
			f(r)
		}
	}
	return nil
}

// catchUp gives a run the returns that the store has and that it was not told of.
func (m *Master) catchUp(ctx context.Context, r *Run) error {
	if m.runs.NoCache(r.JID) {
		return nil
	}
	return m.eachReturn(ctx, r.JID, r.awaits, func(x store.Return) { r.deliver(resultOf(x.ID, x.Load)) })
}

// catchUpAll is catchUp for all runs, after messages of other masters were missed.
func (m *Master) catchUpAll(ctx context.Context) {
	for _, r := range m.runs.list() {
		if err := m.catchUp(ctx, r); err != nil {
			m.log.Warn("returns cannot be read", "jid", r.JID, "err", err)
		}
	}
}
