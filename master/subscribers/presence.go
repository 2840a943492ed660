package subscribers

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/protocol/transport"
)

const (
	// PresenceGrace is how long a minion that was heard of counts as connected before it is known which subscriber it
	// is, and after the end of a connection, which it may be about to make anew. Where nobody may see jobs that are not
	// for him it does not count: nothing reaches a subscriber that nobody knows.
	PresenceGrace = 10 * time.Second
)

// Presence tracks connected minions: this master's from its subscribers, its peers' from their reports.
type Presence struct {
	wake chan struct{} // something may have changed

	mu     sync.Mutex                     // guards the fields below
	seen   map[string]time.Time           // when minions were last heard of, while that counts
	others map[string]map[string]struct{} // the minions of other masters, by name of the master
	told   []string                       // ids of the last presence event, sorted
}

// NewPresence returns a Presence that knows of no minion.
func NewPresence() *Presence {
	return &Presence{wake: make(chan struct{}, 1), seen: make(map[string]time.Time),
		others: make(map[string]map[string]struct{})}
}

// Changed notes that somebody may have come or gone.
func (p *Presence) Changed() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Saw notes a sign of life of a minion.
func (p *Presence) Saw(id string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.seen[id]) >= PresenceGrace {
		p.Changed()
	}
	p.seen[id] = now
}

// Forget drops a minion that may not sign in any more.
func (p *Presence) Forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.seen, id)
}

// ForgetOthers drops what other masters said; they are asked anew.
func (p *Presence) ForgetOthers() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.others)
}

// Here lists the ids that are connected to this master, as a set of the caller's; with those that were heard of, if
// they count.
func (p *Presence) Here(servers []transport.Server, now time.Time, heard bool) map[string]struct{} {
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
		if now.Sub(at) < PresenceGrace {
			ids[id] = struct{}{}
		}
	}
	return ids
}

// Present lists the ids that are connected to any master, sorted.
func (p *Presence) Present(servers []transport.Server, now time.Time, heard bool) []string {
	ids := p.Here(servers, now, heard)
	p.mu.Lock()
	for _, other := range p.others {
		maps.Copy(ids, other)
	}
	p.mu.Unlock()
	return slices.Sorted(maps.Keys(ids))
}

// Elsewhere reports whether another master has a minion.
func (p *Presence) Elsewhere(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ids := range p.others {
		if _, ok := ids[id]; ok {
			return true
		}
	}
	return false
}

// Knows reports whether another master of this name is there.
func (p *Presence) Knows(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.others[name] != nil
}

// Count is how many ids are connected, and whether one of them is id.
func (p *Presence) Count(id string, servers []transport.Server, now time.Time) (int, bool) {
	ids := p.Present(servers, now, true)
	_, known := slices.BinarySearch(ids, id)
	return len(ids), known
}

// Change compares with the last call: ids that came and went.
func (p *Presence) Change(now []string) (fresh, lost []string) {
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

// Keep drops what does not count any more.
func (p *Presence) Keep(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.seen, func(_ string,
		at time.Time) bool {
		return now.Sub(at) >= PresenceGrace
	})
}

// Woken is signalled when a minion may have come or gone.
func (p *Presence) Woken() <-chan struct{} { return p.wake }

// KeepMasters forgets the minions of masters that are gone. It reports whether there is a master that has not yet told
// of its minions.
func (p *Presence) KeepMasters(names map[string]struct{}) (unknown bool) {
	p.mu.Lock()
	for name := range names {
		unknown = unknown || p.others[name] == nil
	}
	gone := len(p.others)
	maps.DeleteFunc(p.others, func(name string,
		_ map[string]struct{}) bool {
		return !fields.Has(names, name)
	})
	gone -= len(p.others)
	p.mu.Unlock()
	if gone > 0 {
		p.Changed()
	}
	return unknown
}

// HearOf takes what another master tells of its minions: which came and went, or, if full, which there are. What comes
// before its first full list says nothing.
func (p *Presence) HearOf(master string, full bool, up, down []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if full {
		p.others[master] = make(map[string]struct{})
	}
	ids := p.others[master]
	if ids == nil {
		return // a full list is to come
	}
	for _, id := range up {
		ids[id] = struct{}{}
	}
	for _, id := range down {
		delete(ids, id)
	}
	p.Changed()
}
