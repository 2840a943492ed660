package requests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/brine-salt/brine/master/internal/acks"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// Limits of the events stored for one minion.
const (
	maxKept      = 256
	maxKeptBytes = 64 << 10
)

// keptKey is the field of a minion's record with its stored events.
const keptKey = "kept_events"

var errKeptFull = fmt.Errorf("%d events or %d bytes are kept for it already", maxKept, maxKeptBytes)

// KeptEvent is a stored event of an announced minion. Its tag matches one of EventOptions.Keep.
type KeptEvent struct {
	Tag string
	// Data is the event's payload.
	Data any
	// Time is when the master received the event.
	Time time.Time
}

// keepEvent stores an event whose tag is kept, before it is acknowledged. After an error it must not be
// acknowledged. If the minion's limit is reached, the new event is dropped with a warning, because the stored
// ones have been acknowledged.
func (e *Events) keepEvent(ctx context.Context, id, tag string, data any) error {
	matches := func(pattern string) bool { return target.Glob(pattern, tag) }
	if !slices.ContainsFunc(e.Keep, matches) || e.refusalOf(ctx, id, tag) != "" {
		return nil
	}
	if e.Minions == nil {
		return store.ErrNoMinions
	}
	var why error
	err := store.ChangeMinion(ctx, e.Minions, id, func(x *store.Minion) bool {
		why = nil
		if x.Version == 0 {
			why = errors.New("it was not announced")
			return false
		}
		kept, _ := payload.List(x.Spec[keptKey])
		kept = append(slices.Clip(kept), map[string]any{"tag": tag, "data": payload.Plain(data),
			"time": time.Now().UnixMicro()})
		packed, err := payload.Marshal(kept)
		switch {
		case err != nil:
			why = err
		case len(kept) > maxKept || len(packed) > maxKeptBytes:
			why = errKeptFull
		default:
			x.Spec[keptKey] = kept
		}
		return why == nil
	})
	if err != nil {
		return fmt.Errorf("%w: cannot keep event: %w", acks.ErrDropped, err)
	}
	if why != nil {
		e.Log.Warn("Event of minion is not kept", "minion", id, "tag", fields.Brief(tag),
			"err", why)
	}
	return nil
}

// Kept returns an announced minion's stored events, oldest first, whichever master of the store received them.
// With a tag it returns only events with exactly that tag. They stay until ForgetKept or the end of the record.
// It returns store.ErrNotFound if the minion was not announced.
func (e *Events) Kept(ctx context.Context, id, tag string) ([]KeptEvent, error) {
	if e.Minions == nil {
		return nil, store.ErrNoMinions
	}
	x, err := e.Minions.Minion(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("cannot read the events of minion %.80q: %w", id, err)
	}
	list, _ := payload.List(x.Spec[keptKey])
	var out []KeptEvent
	for _, v := range list {
		if kept := keptEvent(v); tag == "" || kept.Tag == tag {
			out = append(out, kept)
		}
	}
	return out, nil
}

func keptEvent(v any) KeptEvent {
	e, _ := payload.Map(v)
	at, _ := payload.Int(e["time"])
	return KeptEvent{Tag: fields.Text(e, "tag"), Data: e["data"], Time: time.UnixMicro(at)}
}

// ForgetKept deletes a minion's stored events with a tag and returns how many there were.
func (e *Events) ForgetKept(ctx context.Context, id, tag string) (int, error) {
	if e.Minions == nil {
		return 0, store.ErrNoMinions
	}
	n := 0
	err := store.ChangeMinion(ctx, e.Minions, id, func(x *store.Minion) bool {
		list, _ := payload.List(x.Spec[keptKey])
		rest := slices.DeleteFunc(slices.Clone(list),
			func(v any) bool { return keptEvent(v).Tag == tag })
		n = len(list) - len(rest)
		x.Spec[keptKey] = rest
		return n > 0
	})
	if err != nil {
		return 0, fmt.Errorf("cannot forget the events of minion %.80q: %w", id, err)
	}
	return n, nil
}

// maxJournalID is the maximum length of a stored journal id.
const maxJournalID = 64

// noteStart records that a minion's process is new and triggers the delivery of its pending orders. Unless it
// has a journal, the process does not know earlier jobs. load is that of the start event: fetch means that it
// fetches announced jobs, and journal_id identifies its journal.
func (e *Events) noteStart(ctx context.Context, id string, load map[string]any) {
	err := store.ChangeMinion(ctx, e.Minions, id, func(x *store.Minion) bool {
		now := time.Now().UnixMicro()
		x.Joined = true
		x.Spec["started"] = now
		x.Spec["journal"], x.Spec["fetch"] = load["journal"] == true, load["fetch"] == true
		name := fields.Text(load, "journal_id")
		if before := fields.Text(x.Spec, "journal_id"); before != "" && name != before {
			x.Spec["journal_since"] = now
		}
		x.Spec["journal_id"] = name[:min(len(name), maxJournalID)]
		return true
	})
	if err != nil && ctx.Err() == nil {
		e.Log.Error("Cannot remember start of minion", "minion", id, "err", err)
	}
	e.Contacts.Contact(id)
}
