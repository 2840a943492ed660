package master

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

// presenceWindow is how long a minion counts as connected after it was last heard of, where the transport does not know:
// stock minions report at least once an hour (mine_interval).
const presenceWindow = 70 * time.Minute

// presence remembers when each minion was last heard of.
type presence struct {
	mu   sync.Mutex // guards seen: about 60 bytes per minion
	seen map[string]time.Time
	told []string // ids of the last presence event, sorted
}

func newPresence() *presence { return &presence{seen: make(map[string]time.Time)} }

func (p *presence) saw(id string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[id] = now
}

func (p *presence) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.seen, id)
}

// present lists the ids that are connected, sorted.
func (p *presence) present(servers []transport.Server, now time.Time) []string {
	ids := make(map[string]struct{})
	for _, s := range servers {
		for _, id := range s.Present() {
			ids[id] = struct{}{}
		}
	}
	p.mu.Lock()
	for id, at := range p.seen {
		if now.Sub(at) < presenceWindow {
			ids[id] = struct{}{}
		}
	}
	p.mu.Unlock()
	return slices.Sorted(maps.Keys(ids))
}

// count is how many ids are connected, and whether one of them is id.
func (p *presence) count(id string, servers []transport.Server, now time.Time) (int, bool) {
	ids := p.present(servers, now)
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

// Present lists the minions that are connected, as far as the master can know: by the transport where it tells, and else
// those heard of within the last 70 minutes. Sorted.
func (m *Master) Present() []string { return m.presence.present(m.servers, time.Now()) }

// keep drops what is known of ids that are not accepted any more; accepted is sorted.
func (p *presence) keep(accepted []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.seen, func(id string, _ time.Time) bool {
		_, ok := slices.BinarySearch(accepted, id)
		return !ok
	})
}
