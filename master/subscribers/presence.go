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
	// PresenceGrace is how long a minion counts as connected after a sign of life, before its subscriber is
	// identified, and after its connection ends, because it may reconnect. With isolation there is no grace,
	// because an unidentified subscriber receives nothing.
	PresenceGrace = 10 * time.Second
)

// Presence tracks connected minions: this master's from its subscribers, its peers' from their reports.
type Presence struct {
	wake chan struct{} // signals a possible change

	mu     sync.Mutex                     // guards the fields below
	seen   map[string]time.Time           // last sign of life, within the grace
	others map[string]map[string]struct{} // minions of peer masters, by master
	told   []string                       // ids in the last presence event, sorted
}

// NewPresence returns an empty Presence.
func NewPresence() *Presence {
	return &Presence{wake: make(chan struct{}, 1), seen: make(map[string]time.Time),
		others: make(map[string]map[string]struct{})}
}

// Changed signals that a minion may have connected or disconnected.
func (p *Presence) Changed() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Saw records a sign of life of a minion.
func (p *Presence) Saw(id string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.seen[id]) >= PresenceGrace {
		p.Changed()
	}
	p.seen[id] = now
}

// Forget removes a minion that may no longer sign in.
func (p *Presence) Forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.seen, id)
}

// ForgetOthers discards the reports of peer masters; they are asked again.
func (p *Presence) ForgetOthers() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.others)
}

// Here returns the set of ids connected to this master, and with heard also those within the grace. The set
// belongs to the caller.
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

// Present returns the ids connected to any master, sorted.
func (p *Presence) Present(servers []transport.Server, now time.Time, heard bool) []string {
	ids := p.Here(servers, now, heard)
	p.mu.Lock()
	for _, other := range p.others {
		maps.Copy(ids, other)
	}
	p.mu.Unlock()
	return slices.Sorted(maps.Keys(ids))
}

// Elsewhere reports whether a minion is connected to a peer master.
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

// Knows reports whether the peer master of this name is alive.
func (p *Presence) Knows(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.others[name] != nil
}

// Crowded reports whether more than most ids are connected, and id is not. Connections without a name do not count:
// they may be of any peer. It lists the ids only if there may be too many, and only for a new one: every sign-in asks.
func (p *Presence) Crowded(id string, most int, servers []transport.Server, now time.Time) bool {
	n := 0
	for _, s := range servers {
		if named, _ := s.Reach(id); named > 0 {
			return false
		}
		n += s.Named()
	}
	p.mu.Lock()
	known := now.Sub(p.seen[id]) < PresenceGrace
	n += len(p.seen)
	for _, other := range p.others {
		known = known || fields.Has(other, id)
		n += len(other)
	}
	p.mu.Unlock()
	return !known && n > most && len(p.Present(servers, now, true)) > most
}

// Change returns the ids that connected and disconnected since the last call.
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

// Keep removes signs of life older than the grace.
func (p *Presence) Keep(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.seen, func(_ string,
		at time.Time) bool {
		return now.Sub(at) >= PresenceGrace
	})
}

// Woken returns a channel that signals possible changes.
func (p *Presence) Woken() <-chan struct{} { return p.wake }

// KeepMasters removes the minions of masters that are gone. It reports whether some master has not reported its
// minions yet.
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

// HearOf handles a peer master's report of its minions: those that connected and disconnected or, if full, the
// complete list. Reports before its first full list are ignored.
func (p *Presence) HearOf(master string, full bool, up, down []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if full {
		p.others[master] = make(map[string]struct{})
	}
	ids := p.others[master]
	if ids == nil {
		return // wait for a full list
	}
	for _, id := range up {
		ids[id] = struct{}{}
	}
	for _, id := range down {
		delete(ids, id)
	}
	p.Changed()
}
