package cluster

import (
	"context"
	"strings"
	"time"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
)

// tellBatch is the maximum number of events in one write to the store.
const tellBatch = 200

// othersListen reports whether another master has event listeners.
func (s *Several) othersListen() bool {
	return time.Since(time.Unix(0, s.heard.Load())) < beatLife
}

// relayEvents sends events from here to the peers while one of them listens. Returns are sent by SaveReturn and
// TellReturn instead.
func (s *Several) relayEvents(ctx context.Context) {
	sub := s.opts.Events.Subscribe(events.SubscribeOptions{Own: true,
		Match: func(tag string) bool { return s.othersListen() && forOthers(tag) }})
	defer sub.Close()
	missed := 0 // events not sent, which the peers do not know of yet
	for {
		e, err := sub.Next(ctx)
		if err != nil {
			return
		}
		var list []store.Message
		for {
			if e.Missed > 0 {
				missed += e.Missed
			} else if b, err := payload.MarshalBin(
				map[string]any{"tag": e.Tag, "data": e.Data}); err != nil {
				s.opts.Log.Warn("Cannot send event to other masters", "tag", e.Tag, "err", err)
				missed++
			} else {
				list = append(list, store.Message{From: s.name, Kind: tellEvent, Body: b})
			}
			if len(list) == tellBatch || sub.Waiting() == 0 {
				break
			}
			if e, err = sub.Next(ctx); err != nil {
				return
			}
		}
		if missed > 0 {
			s.opts.Log.Warn("Events were not sent to other masters", "events", missed)
			if b, err := payload.MarshalBin(map[string]any{"missed": int64(missed)}); err == nil {
				list = append(list, store.Message{From: s.name, Kind: tellEvent, Body: b})
			}
		}
		if err := s.db.Tell(ctx, list...); err != nil && ctx.Err() == nil {
			s.opts.Log.Warn("Events were not sent to other masters", "events", len(list),
				"err", err)
			missed += len(list)
			continue
		}
		missed = 0
	}
}

// forOthers reports whether an event is sent to peers. Events that each master fires itself are not, and
// returns have messages of their own.
func forOthers(tag string) bool {
	parts := strings.SplitN(tag, "/", 5)
	switch {
	case strings.HasPrefix(tag, "salt/presence/"), strings.HasPrefix(tag, "minion/refresh/"),
		tag == "salt/auth":
		return false
	case len(parts) == 5 && parts[0] == "salt" && parts[1] == "job" && parts[3] == "ret":
		return false
	}
	return true
}

// happenedElsewhere publishes an event of a peer, or a gap of events that it could not send.
func (s *Several) happenedElsewhere(body map[string]any) {
	if n, ok := payload.Int(body["missed"]); ok {
		s.opts.Events.RelayGap(int(n))
		return
	}
	data, _ := payload.Map(body["data"])
	s.opts.Events.Relay(fields.Text(body, "tag"), data)
}
