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

// Bounds of the events that are kept for one minion.
const (
	maxKept      = 256
	maxKeptBytes = 64 << 10
)

// keptKey is where a minion's record holds its events.
const keptKey = "kept_events"

var errKeptFull = fmt.Errorf("%d events or %d bytes are kept for it already", maxKept, maxKeptBytes)

// KeptEvent is an event of an announced minion that the store holds, because its tag is one of EventOptions.Keep.
type KeptEvent struct {
	Tag string
	// Data is what the minion sent with it.
	Data any
	// Time is when the master received it.
	Time time.Time
}

// keepEvent stores an event whose tag is to be kept, before the minion gets its acknowledgement. An error means that
// the event must not be acknowledged. When a minion's room is full the newest event is dropped, with a warning: those
// that are there have been acknowledged.
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

// Kept returns the events of an announced minion that were kept, oldest first, whichever master of the store received
// them: all, or with a tag those that have exactly this one. They stay until ForgetKept or the end of the record.
// store.ErrNotFound if no such minion was announced.
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

// ForgetKept drops the kept events of a minion that have a tag and returns how many there were.
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

// maxJournalID bounds what is kept of the name of a minion's journal.
const maxJournalID = 64

// noteStart notes that the process of a minion is a new one, which knows nothing of jobs of before unless it keeps a
// journal, and that its queue can be looked at. The load is that of its start event: fetch says that it asks for jobs
// that are only announced, journal_id names the journal.
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
