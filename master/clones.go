package master

import (
	"context"
	"errors"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/clones"
	"github.com/brine-salt/brine/master/internal/probe"
	"github.com/brine-salt/brine/master/targets"
	"github.com/brine-salt/brine/protocol/target"
)

// Clone is an id that several hosts use at once with the same key, like copies of a machine's image.
type Clone = clones.Clone

// CloneHost describes one host of a Clone, by its own report.
type CloneHost = clones.Host

// cloneAsker implements clones.Asker.
type cloneAsker struct{ m *Master }

// newCloneGuard returns the guard that detects ids used by several hosts.
func newCloneGuard(m *Master, notes clones.Notes) *clones.Guard {
	return clones.NewGuard(cloneAsker{m}, notes, m.events, m.opts.Jobs.GatherTimeout, m.log)
}

// Accepted implements clones.Asker.
func (a cloneAsker) Accepted(id string) bool { return a.m.accepted(id) }

// Grains implements clones.Asker.
func (a cloneAsker) Grains(id string) (map[string]any, bool) {
	d, ok := a.m.cache.Data(id)
	return d.Grains, ok
}

// AskHosts implements clones.Asker.
func (a cloneAsker) AskHosts(ctx context.Context, ids, grains []string,
	each func(id string, answer any)) {
	m := a.m
	run := m.newRun(0, 0)
	run.internal = true
	run.each = func(res Result) { each(res.ID, res.Return) }
	_, err := m.publish(ctx, publication{fun: "grains.item", arg: nested.Anys(grains), tgt: ids,
		tgtType: target.TypeList, internal: true,
		wait: run, extra: probe.Metadata(probe.Status, false)})
	if err != nil {
		if !targets.IsNoMinions(err) && !errors.Is(err, ErrNotServing) && ctx.Err() == nil {
			m.log.Error("Cannot query which hosts use an id", "err", err)
		}
		return
	}
	defer run.Close()
	<-ctx.Done()
}

// Clones returns the ids that several hosts use at once with the same key, sorted. In a cluster it returns
// those of all masters. An id is added when a second host connects. It is removed when its key is deleted, or
// when only one host has answered for some time.
func (m *Master) Clones(ctx context.Context) ([]Clone, error) { return m.clones.List(ctx) }
