package master

import (
	"context"
	"slices"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// audience is for whom a job is.
type audience struct {
	// ids may fetch the job, which is stored; nil for what is always sent whole.
	ids []string
	// topics are whose connections get it; nil is all.
	topics []string
}

// announces is who of a job's minions gets an announcement in place of the job itself: those that fetch, when the job has arguments, and
// others than its minions would get it too.
func (m *Master) announces(job map[string]any, to audience) []string {
	if len(to.ids) == 0 || m.minions == nil || m.isolated() || !hasArguments(job) || !m.overheard(to) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	ids, err := m.fetchers(ctx, to.ids)
	if err != nil {
		m.log.Error("cannot find out which minions fetch their jobs", "jid", job["jid"], "err", err)
		return nil
	}
	return ids
}

// hasArguments reports whether a job has something to hide.
func hasArguments(job map[string]any) bool {
	args, _ := payload.List(job["arg"])
	if _, compound := payload.List(job["fun"]); compound {
		return slices.ContainsFunc(args, func(a any) bool { l, _ := payload.List(a); return len(l) > 0 })
	}
	return len(args) > 0 || job["ret_kwargs"] != nil
}

// overheard reports whether somebody else than those a job is for would get it: it goes to all connections, or to some that nobody knows.
func (m *Master) overheard(to audience) bool {
	accepted, err := m.keys.List(keys.Accepted)
	if err == nil && len(to.ids) >= len(accepted) {
		return false // it is for everybody who can read it
	}
	if to.topics == nil || m.names.HasUnknown() {
		return true
	}
	for _, s := range m.servers { // where subscribers choose what they get, those that are known count as well
		if _, nameless := s.Reach(); nameless > 0 {
			return true
		}
	}
	return false
}

// fetchers is which of some minions said at their start that they fetch jobs.
func (m *Master) fetchers(ctx context.Context, ids []string) ([]string, error) {
	list, err := m.minions.Minions(ctx, store.MinionFilter{IDs: ids})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, x := range list {
		if x.Spec["fetch"] == true {
			out = append(out, x.ID)
		}
	}
	return out, nil
}

// send hands a job to the connections of this master: whole, or to minions that fetch it as an announcement where others would read it.
func (m *Master) send(job map[string]any, to audience) error {
	if !m.reaches(to.topics) {
		return nil
	}
	ours := m.announces(job, to)
	if len(ours) == 0 {
		return m.transmit(job, to.topics)
	}
	if len(ours) == len(to.ids) {
		return m.transmit(protocol.Announce(job, nil), to.topics)
	}
	if err := m.transmit(protocol.Announce(job, nested.Anys(ours)), ours); err != nil {
		return err
	}
	fetch := make(map[string]struct{}, len(ours))
	for _, id := range ours {
		fetch[id] = struct{}{}
	}
	rest := slices.DeleteFunc(slices.Clone(to.ids), func(id string) bool { _, ok := fetch[id]; return ok })
	return m.transmit(job, rest)
}
