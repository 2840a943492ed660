package content

import (
	"context"
	"errors"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
)

// Pillars returns the pillars of the orders that run on a minion, in the order of placement. Several parallel
// orders may run at once.
func Pillars(ctx context.Context, q store.Queue, from store.Contents, seal Sealer, minion string) ([]map[string]any, error) {
	ds, err := q.Deliveries(ctx, store.DeliveryFilter{Minion: minion, Open: true, Limit: maxOpen})
	if err != nil {
		return nil, err
	}
	var jids []string
	for _, d := range ds {
		if d.Carries && d.State == store.Sent {
			jids = append(jids, d.JID)
		}
	}
	var out []map[string]any
	for _, jid := range jids {
		h, err := headerOf(ctx, q, from, seal, jid)
		if errors.Is(err, store.ErrNotFound) {
			continue // the order has ended meanwhile
		}
		if err != nil {
			return nil, err
		}
		if h.Pillar != nil {
			out = append(out, h.Pillar)
		}
	}
	return out, nil
}

func headerOf(ctx context.Context, q store.Queue, from store.Contents, seal Sealer, jid string) (*Header, error) {
	o, err := q.OrderOf(ctx, jid)
	if err != nil {
		return nil, err
	}
	if o.Content == "" {
		return nil, store.ErrNotFound
	}
	return ReadHeader(ctx, from, seal, o.Content)
}

// IsSecret reports whether a published job, or the spec of an order, is marked as secret.
func IsSecret(job map[string]any) bool { return job[protocol.SecretField] == true }
