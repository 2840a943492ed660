package master

import (
	"context"
	"slices"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/subscribers"
)

// presencePause is how long changes are gathered before an event tells of them.
const presencePause = 2 * time.Second

// Present lists the accepted minions that are connected, to this master or to one that shares its database; sorted. A minion whose
// path is dead is missing after half a minute at the latest, one that left in order after some seconds. With tenants, or Options.Isolate, jobs reach
// whoever is listed; else one that has just signed in may be listed before it listens.
func (m *Master) Present() []string {
	ids := m.presence.Present(m.servers, time.Now(), !m.sender.Isolated())
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
	fresh, lost := m.presence.Change(ids)
	if len(fresh)+len(lost) > 0 {
		m.events.Publish("salt/presence/change", map[string]any{"new": nested.Anys(fresh), "lost": nested.Anys(lost)})
	}
	return ids
}

// tellPresence tells of changes soon after they happen, until ctx ends.
func (m *Master) tellPresence(ctx context.Context) {
	for {
		select {
		case <-m.presence.Woken():
		case <-ctx.Done():
			return
		}
		// Somebody who was just heard of counts for some time more.
		for end := time.Now().Add(subscribers.PresenceGrace + presencePause); time.Now().Before(end); {
			select {
			case <-time.After(presencePause):
				m.presenceChange()
			case <-ctx.Done():
				return
			}
		}
	}
}
