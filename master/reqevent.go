package master

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// Bounds of what a minion may fire at once.
const (
	maxEvents   = 10000
	maxTagBytes = 1024
)

// reqMinionEvent puts a minion's events on the bus. Tags that mean something when a master fires them are not for minions, and
// those that name a minion only for this one (CVE-2025-22239). Stock masters check less: a single event not at all.
func (m *Master) reqMinionEvent(ctx context.Context, v protocol.Verified) (any, error) {
	load := v.Load()
	m.startGrains(v)
	list, many := payload.List(load["events"])
	if !many {
		tag, ok := payload.Text(load["tag"])
		if _, has := load["data"]; !ok || !has {
			return nil, nil
		}
		if err := m.keepEvent(ctx, v.ID(), tag, load["data"]); err != nil {
			return nil, err
		}
		// The whole load is the data: listeners find the payload under "data".
		m.minionEvent(ctx, v.ID(), tag, load)
		if tag == "salt/minion/"+v.ID()+"/start" {
			m.minionStarted(ctx, v.ID(), load)
		}
		return nil, nil
	}
	if len(list) > maxEvents {
		m.log.Warn("too many events at once", "minion", v.ID(), "events", len(list))
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
		if err := m.keepEvent(ctx, v.ID(), tag, data); err != nil {
			return nil, err
		}
		m.minionEvent(ctx, v.ID(), tag, data)
		if hasPretag && pretag != "" {
			m.minionEvent(ctx, v.ID(), pretag+"/"+tag, maps.Clone(data))
		}
	}
	return nil, nil
}

// minionEvent publishes an event of a minion, or logs why it may not fire it. The log lines about one minion are limited.
func (m *Master) minionEvent(ctx context.Context, id, tag string, data map[string]any) {
	// guard: CVE-2025-22239 TestCVE_2025_22239_EventInjection
	if why := m.eventRefused(ctx, id, tag); why != "" {
		level := slog.LevelWarn
		if !m.eventLogs.AllowName(id, time.Now()) {
			level = slog.LevelDebug
		}
		m.log.Log(ctx, level, "event of minion refused", "minion", id, "tag", brief(tag), "err", why)
		return
	}
	m.events.Publish(tag, data)
}

// tagReserved says why no minion, or not this one, may ever fire a tag, or returns nothing if it may.
func tagReserved(id, tag string) string {
	if tag == "" || len(tag) > maxTagBytes || !utf8.ValidString(tag) || strings.ContainsFunc(tag, unicode.IsControl) {
		return "tag is not usable"
	}
	parts := strings.Split(tag, "/")
	switch parts[0] {
	case "key", "cluster", "syndic", "fileserver":
		return "tag is reserved"
	case "brine":
		// guard: forged-events TestCVE_2025_22239_EventInjection
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

// saltTagRefused judges tags below salt/.
func saltTagRefused(id string, parts []string) string {
	at := func(i int) string {
		if i < len(parts) {
			return parts[i]
		}
		return ""
	}
	switch at(1) {
	case "auth", "key", "run", "wheel", "cloud", "cluster", "presence", "fileserver", "stats", "batch", "reactors", "token", "netapi", "":
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

// startGrains merges the grains that come with a start event (start_event_grains) into what is known of the minion.
func (m *Master) startGrains(v protocol.Verified) {
	grains, ok := payload.Map(v.Load()["grains"])
	if !ok || len(grains) == 0 || m.opts.NoMinionDataCache {
		return
	}
	d, _ := m.cache.Data(v.ID())
	if d.Grains == nil {
		d.Grains = make(map[string]any, len(grains))
	}
	maps.Copy(d.Grains, grains)
	d.Grains["id"] = v.ID()
	if err := m.cache.Store(v.ID(), d); err != nil {
		m.log.Warn("cannot remember grains", "minion", v.ID(), "err", err)
	}
}

// brief shortens what a peer sent for the log.
func brief(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
