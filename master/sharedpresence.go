package master

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/protocol/payload"
)

// beatPresence tells the others which minions came and went, and forgets those of masters that are gone.
func (s *shared) beatPresence(ctx context.Context) error {
	leases, err := s.db.Leases(ctx, leaseMaster)
	if err != nil {
		return err
	}
	masters := make(map[string]struct{}, len(leases))
	for _, name := range leases {
		masters[name] = struct{}{}
	}
	delete(masters, s.name)
	p := s.m.presence
	p.mu.Lock()
	unknown := false
	for name := range masters {
		unknown = unknown || p.others[name] == nil
	}
	gone := len(p.others)
	maps.DeleteFunc(p.others, func(name string, _ map[string]struct{}) bool { return !fields.Has(masters, name) })
	gone -= len(p.others)
	p.mu.Unlock()
	if gone > 0 {
		p.changed()
	}
	if unknown {
		if err := s.tell(ctx, tellWho, map[string]any{}); err != nil {
			return err
		}
	}
	now := p.here(s.m.servers, time.Now(), !s.m.isolated())
	body := map[string]any{}
	if s.asked.Swap(false) {
		body["full"], body["up"] = true, nested.Anys(slices.Sorted(maps.Keys(now)))
	} else {
		var up, down []string
		for id := range now {
			if !fields.Has(s.present, id) {
				up = append(up, id)
			}
		}
		for id := range s.present {
			if !fields.Has(now, id) {
				down = append(down, id)
			}
		}
		if len(masters) == 0 || len(up)+len(down) == 0 {
			return nil
		}
		body["up"], body["down"] = nested.Anys(up), nested.Anys(down)
	}
	if err := s.tell(ctx, tellPresent, body); err != nil {
		s.asked.Store(true) // nobody knows what they were told
		return err
	}
	s.present = now
	return nil
}

// hearPresence takes what another master tells of its minions.
func (s *shared) hearPresence(from string, body map[string]any) {
	p := s.m.presence
	p.mu.Lock()
	defer p.mu.Unlock()
	if body["full"] == true {
		p.others[from] = make(map[string]struct{})
	}
	ids := p.others[from]
	if ids == nil {
		return // a full list is to come
	}
	for key, up := range map[string]bool{"up": true, "down": false} {
		list, _ := payload.List(body[key])
		for _, x := range list {
			if id, ok := payload.Text(x); ok && up {
				ids[id] = struct{}{}
			} else {
				delete(ids, id)
			}
		}
	}
	p.changed()
}
