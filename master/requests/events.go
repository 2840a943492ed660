package requests

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
)

// Limits of the events in one request.
const (
	maxEvents   = 10000
	maxTagBytes = 1024
)

// Rate limit of log lines about refused events, per minion: a burst, and lines per second.
const (
	refusedEventsRate  = 1. / 60
	refusedEventsBurst = 10
)

// Rate limit of pings that a minion requests: a burst, and pings per second.
const (
	pingRate  = 1. / 2
	pingBurst = 3
)

// Contacts is notified of signs of life of minions.
type Contacts interface {
	// Contact reports that a minion has signed in or started.
	Contact(id string)
	// Ping publishes test.ping to a minion. The answer is not stored.
	Ping(ctx context.Context, id string)
}

// EventOptions configure Events. Fields that may be nil say so.
type EventOptions struct {
	Bus   *events.Bus
	Cache *cache.Cache
	// Minions holds the records of minions; nil if the store cannot keep them.
	Minions store.Minions
	// Shared reports whether peer masters change the records too.
	Shared  bool
	Tenants Tenants
	// Access decides about tags that are neither reserved nor granted; nil allows them.
	Access   EventAccess
	Contacts Contacts
	// Keep are shell patterns of tags. Matching events of announced minions are stored with the minion.
	Keep []string
	// Forget discards the grains in start events (minion_data_cache: False).
	Forget bool
	Log    *slog.Logger
}

// Events publishes events that minions fire on the master's bus.
type Events struct {
	EventOptions
	grants  grants
	refused *ratelimit.Limiter // for log lines about refused events, by minion
	pings   *ratelimit.Limiter // for pings that minions request
}

// NewEvents returns an Events. It reads nothing yet.
func NewEvents(o EventOptions) *Events {
	return &Events{EventOptions: o, refused: ratelimit.New(refusedEventsRate, refusedEventsBurst),
		pings: ratelimit.New(pingRate, pingBurst)}
}

// Fire answers _minion_event: it publishes a minion's events on the bus. Minions may not fire tags that have a
// meaning when a master fires them. Tags that contain a minion's id are only for that minion (CVE-2025-22239).
// Stock masters check less, and single events not at all.
func (e *Events) Fire(ctx context.Context, v protocol.Verified) (any, error) {
	load := v.Load()
	e.takeGrains(v)
	list, many := payload.List(load["events"])
	if !many {
		tag, ok := payload.Text(load["tag"])
		if _, has := load["data"]; !ok || !has {
			return nil, nil
		}
		if err := e.keepEvent(ctx, v.ID(), tag, load["data"]); err != nil {
			return nil, err
		}
		// The whole load is the event's data, because listeners expect the payload under "data".
		e.publishFired(ctx, v.ID(), tag, load)
		switch tag {
		case "salt/minion/" + v.ID() + "/start":
			e.noteStart(ctx, v.ID(), load)
		case "brine/minion/" + v.ID() + "/ping":
			// brine-update asks whether a new program receives jobs.
			if e.pings.AllowName(v.ID(), time.Now()) {
				e.Contacts.Ping(ctx, v.ID())
			}
		}
		return nil, nil
	}
	if len(list) > maxEvents {
		e.Log.Warn("Too many events at once", "minion", v.ID(), "events", len(list))
		list = list[:maxEvents]
	}
	pretag, hasPretag := payload.Text(load["pretag"])
	for _, x := range list {
		event, ok := payload.Map(x)
		tag, isText := payload.Text(event["tag"])
		if !ok || !isText {
			continue
		}
		data, ok := payload.Map(event["data"])
		if _, has := event["data"]; !has {
			data, ok = event, true
		}
		if !ok {
			data = map[string]any{"data": event["data"]}
		}
		if err := e.keepEvent(ctx, v.ID(), tag, data); err != nil {
			return nil, err
		}
		e.publishFired(ctx, v.ID(), tag, data)
		if hasPretag && pretag != "" {
			e.publishFired(ctx, v.ID(), pretag+"/"+tag, maps.Clone(data))
		}
	}
	return nil, nil
}

// publishFired publishes a minion's event, or logs why it is refused. Log lines are limited per minion.
func (e *Events) publishFired(ctx context.Context, id, tag string, data map[string]any) {
	// guard: CVE-2025-22239 master:TestCVE_2025_22239_EventInjection
	if why := e.refusalOf(ctx, id, tag); why != "" {
		level := slog.LevelWarn
		if !e.refused.AllowName(id, time.Now()) {
			level = slog.LevelDebug
		}
		e.Log.Log(ctx, level, "Event of minion refused", "minion", id, "tag", fields.Brief(tag),
			"err", why)
		return
	}
	e.Bus.Publish(tag, data)
}

// tagReserved returns why no minion, or not this one, may ever fire a tag, or "".
func tagReserved(id, tag string) string {
	if tag == "" || len(tag) > maxTagBytes || !utf8.ValidString(tag) ||
		strings.ContainsFunc(tag, unicode.IsControl) {
		return "tag is not usable"
	}
	parts := strings.Split(tag, "/")
	switch parts[0] {
	case "key", "cluster", "syndic", "fileserver":
		return "tag is reserved"
	case "brine":
		// guard: forged-events master:TestCVE_2025_22239_EventInjection
		if len(parts) < 3 || parts[1] != "minion" {
			return "tag is reserved"
		}
		if parts[2] != id {
			return "tag names another minion"
		}
	case "minion":
		if len(parts) > 1 && parts[1] == "refresh" {
			return "tag is reserved"
		}
	case "salt":
		return saltTagRefused(id, parts)
	}
	if protocol.ValidJID(parts[0]) {
		return "tag is reserved"
	}
	return ""
}

// saltTagRefused is tagReserved for tags below salt/.
func saltTagRefused(id string, parts []string) string {
	at := func(i int) string {
		if i < len(parts) {
			return parts[i]
		}
		return ""
	}
	switch at(1) {
	case "auth", "key", "run", "wheel", "cloud", "cluster", "presence", "fileserver", "stats",
		"batch", "reactors", "token", "netapi", "":
		return "tag is reserved"
	case "job":
		if at(3) != "prog" {
			return "tag is reserved"
		}
		if at(4) != id {
			return "tag names another minion"
		}
	case "startup":
		if at(3) != id {
			return "tag names another minion"
		}
	case "minion", "beacon", "engine", "syndic":
		if at(2) != id {
			return "tag names another minion"
		}
	}
	return ""
}

// takeGrains merges the grains of a start event (start_event_grains) into the cached grains of the minion.
func (e *Events) takeGrains(v protocol.Verified) {
	grains, ok := payload.Ordered(v.Load()["grains"])
	if !ok || len(grains) == 0 || e.Forget {
		return
	}
	d, _ := e.Cache.Ordered(v.ID())
	d.Grains = payload.Merge(d.Grains, grains).Set("id", v.ID())
	if err := e.Cache.Store(v.ID(), d); err != nil {
		e.Log.Warn("Cannot remember grains", "minion", v.ID(), "err", err)
	}
}
