package master

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/protocol/transport"
)

const (
	// presenceGrace is how long a minion that was heard of counts as connected before it is known which subscriber it is, and after
	// the end of a connection, which it may be about to make anew. Where nobody may see jobs that are not for him it does not count: nothing
	// reaches a subscriber that nobody knows.
	presenceGrace = 10 * time.Second
	// presencePause is how long changes are gathered before an event tells of them.
	presencePause = 2 * time.Second
)

// presence is who is connected: to this master the minions behind its subscribers, to the others what these say.
type presence struct {
	wake chan struct{} // something may have changed

	mu     sync.Mutex                     // guards the fields below
	seen   map[string]time.Time           // when minions were last heard of, while that counts
	others map[string]map[string]struct{} // the minions of other masters, by name of the master
	told   []string                       // ids of the last presence event, sorted
}

func newPresence() *presence {
	return &presence{wake: make(chan struct{}, 1), seen: make(map[string]time.Time), others: make(map[string]map[string]struct{})}
}

// changed notes that somebody may have come or gone.
func (p *presence) changed() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *presence) saw(id string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.seen[id]) >= presenceGrace {
		p.changed()
	}
	p.seen[id] = now
}

func (p *presence) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.seen, id)
}

// forgetOthers drops what other masters said; they are asked anew.
func (p *presence) forgetOthers() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.others)
}

// here lists the ids that are connected to this master, as a set of the caller's; with those that were heard of, if they count.
func (p *presence) here(servers []transport.Server, now time.Time, heard bool) map[string]struct{} {
	ids := make(map[string]struct{})
	for _, s := range servers {
		for _, id := range s.Present() {
			ids[id] = struct{}{}
		}
	}
	if !heard {
		return ids
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, at := range p.seen {
		if now.Sub(at) < presenceGrace {
			ids[id] = struct{}{}
		}
	}
	return ids
}

// present lists the ids that are connected to any master, sorted.
func (p *presence) present(servers []transport.Server, now time.Time, heard bool) []string {
	ids := p.here(servers, now, heard)
	p.mu.Lock()
	for _, other := range p.others {
		maps.Copy(ids, other)
	}
	p.mu.Unlock()
	return slices.Sorted(maps.Keys(ids))
}

// elsewhere says whether another master has a minion.
func (p *presence) elsewhere(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ids := range p.others {
		if fields.Has(ids, id) {
			return true
		}
	}
	return false
}

// knows says whether another master of this name is there.
func (p *presence) knows(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.others[name] != nil
}

// count is how many ids are connected, and whether one of them is id.
func (p *presence) count(id string, servers []transport.Server, now time.Time) (int, bool) {
	ids := p.present(servers, now, true)
	_, known := slices.BinarySearch(ids, id)
	return len(ids), known
}

// change compares with the last call: ids that came and went.
func (p *presence) change(now []string) (fresh, lost []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range now {
		if _, ok := slices.BinarySearch(p.told, id); !ok {
			fresh = append(fresh, id)
		}
	}
	for _, id := range p.told {
		if _, ok := slices.BinarySearch(now, id); !ok {
			lost = append(lost, id)
		}
	}
	p.told = now
	return fresh, lost
}

// keep drops what does not count any more.
func (p *presence) keep(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.seen, func(_ string, at time.Time) bool { return now.Sub(at) >= presenceGrace })
}

// Present lists the accepted minions that are connected, to this master or to one that shares its database; sorted. A minion whose
// path is dead is missing after half a minute at the latest, one that left in order after some seconds. With tenants, or Options.Isolate, jobs reach
// whoever is listed; else one that has just signed in may be listed before it listens.
func (m *Master) Present() []string {
	ids := m.presence.present(m.servers, time.Now(), !m.isolated())
	accepted, err := m.keys.List(keys.Accepted)
	if err != nil {
		m.log.Warn("cannot list accepted minions", "err", err)
		return ids
	}
	return slices.DeleteFunc(ids, func(id string) bool {
		_, ok := slices.BinarySearch(accepted, id)
		return !ok
	})
}

// presenceChange tells of those who came and went, and lists who is there.
func (m *Master) presenceChange() []string {
	ids := m.Present()
	fresh, lost := m.presence.change(ids)
	if len(fresh)+len(lost) > 0 {
		m.events.Publish("salt/presence/change", map[string]any{"new": nested.Anys(fresh), "lost": nested.Anys(lost)})
	}
	return ids
}

// tellPresence tells of changes soon after they happen, until ctx ends.
func (m *Master) tellPresence(ctx context.Context) {
	for {
		select {
		case <-m.presence.wake:
		case <-ctx.Done():
			return
		}
		// Somebody who was just heard of counts for some time more.
		for end := time.Now().Add(presenceGrace + presencePause); time.Now().Before(end); {
			select {
			case <-time.After(presencePause):
				m.presenceChange()
			case <-ctx.Done():
				return
			}
		}
	}
}
