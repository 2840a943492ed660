package cluster

import (
	"context"
	"maps"
	"slices"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/internal/fields"
)

// beatPresence reports changes of this master's minions to the peers, and forgets the minions of masters that
// are gone.
func (s *Several) beatPresence(ctx context.Context) error {
	leases, err := s.db.Leases(ctx, leaseMaster)
	if err != nil {
		return err
	}
	masters := make(map[string]struct{}, len(leases))
	for _, name := range leases {
		masters[name] = struct{}{}
	}
	delete(masters, s.name)
	unknown := s.opts.Presence.KeepMasters(masters)
	if unknown {
		if err := s.tell(ctx, tellWho, map[string]any{}); err != nil {
			return err
		}
	}
	now := s.opts.Host.Connected()
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
		s.asked.Store(true) // what the peers received is unknown
		return err
	}
	s.present = now
	return nil
}

// hearPresence handles a peer's report of its minions.
func (s *Several) hearPresence(from string, body map[string]any) {
	s.opts.Presence.HearOf(from, body["full"] == true, fields.Texts(body["up"]),
		fields.Texts(body["down"]))
}
