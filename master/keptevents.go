package master

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/payload"
)

// Bounds of the events that are kept for one minion.
const (
	maxKept      = 256
	maxKeptBytes = 64 << 10
)

// keptKey is where a minion's record holds its events.
const keptKey = "kept_events"

var errKeptFull = fmt.Errorf("%d events or %d bytes are kept for it already", maxKept, maxKeptBytes)

// KeptEvent is an event of an announced minion that the store holds, because its tag is one of Options.KeepEvents.
type KeptEvent struct {
	Tag string
	// Data is what the minion sent with it.
	Data any
	// Time is when the master received it.
	Time time.Time
}

// keepEvent stores an event whose tag is to be kept, before the minion gets its acknowledgement. An error means that the event must not be
// acknowledged. When a minion's room is full the newest event is dropped, with a warning: those that are there have been acknowledged.
func (m *Master) keepEvent(ctx context.Context, id, tag string, data any) error {
	if len(m.opts.KeepEvents) == 0 || !matches(m.opts.KeepEvents, tag) || m.eventRefused(ctx, id, tag) != "" {
		return nil
	}
	if m.minions == nil {
		return ErrNoMinionRecords
	}
	var why error
	err := m.changeMinion(ctx, id, func(x *store.Minion) bool {
		why = nil
		if x.Version == 0 {
			why = errors.New("it was not announced")
			return false
		}
		kept, _ := payload.List(x.Spec[keptKey])
		kept = append(slices.Clip(kept), map[string]any{"tag": tag, "data": payload.Plain(data), "time": time.Now().UnixMicro()})
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
		return fmt.Errorf("%w: cannot keep event: %w", errDrop, err)
	}
	if why != nil {
		m.log.Warn("event of minion is not kept", "minion", id, "tag", brief(tag), "err", why)
	}
	return nil
}

// KeptEvents returns the events of an announced minion that were kept, oldest first, whichever master of the store received them: all, or with
// a tag those that have exactly this one. They stay until ForgetEvents or RevokeMinion. store.ErrNotFound if no such minion was announced.
func (m *Master) KeptEvents(ctx context.Context, id, tag string) ([]KeptEvent, error) {
	if m.minions == nil {
		return nil, ErrNoMinionRecords
	}
	x, err := m.minions.Minion(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("cannot read the events of minion %.80q: %w", id, err)
	}
	list, _ := payload.List(x.Spec[keptKey])
	var out []KeptEvent
	for _, v := range list {
		if e := keptEvent(v); tag == "" || e.Tag == tag {
			out = append(out, e)
		}
	}
	return out, nil
}

func keptEvent(v any) KeptEvent {
	e, _ := payload.Map(v)
	at, _ := payload.Int(e["time"])
	return KeptEvent{Tag: fields.Text(e, "tag"), Data: e["data"], Time: time.UnixMicro(at)}
}

// ForgetEvents drops the kept events of a minion that have a tag and returns how many there were.
func (m *Master) ForgetEvents(ctx context.Context, id, tag string) (int, error) {
	if m.minions == nil {
		return 0, ErrNoMinionRecords
	}
	n := 0
	err := m.changeMinion(ctx, id, func(x *store.Minion) bool {
		list, _ := payload.List(x.Spec[keptKey])
		rest := slices.DeleteFunc(slices.Clone(list), func(v any) bool { return keptEvent(v).Tag == tag })
		n = len(list) - len(rest)
		x.Spec[keptKey] = rest
		return n > 0
	})
	if err != nil {
		return 0, fmt.Errorf("cannot forget the events of minion %.80q: %w", id, err)
	}
	return n, nil
}

// KeptEvents is Master.KeptEvents, for this tenant's minions.
func (t *Tenant) KeptEvents(ctx context.Context, id, tag string) ([]KeptEvent, error) {
	if err := t.mustOwn(ctx, id); err != nil {
		return nil, err
	}
	return t.m.KeptEvents(ctx, id, tag)
}

// ForgetEvents is Master.ForgetEvents, for this tenant's minions.
func (t *Tenant) ForgetEvents(ctx context.Context, id, tag string) (int, error) {
	if err := t.mustOwn(ctx, id); err != nil {
		return 0, err
	}
	return t.m.ForgetEvents(ctx, id, tag)
}

// mustOwn returns store.ErrNotFound for a minion that is not the tenant's.
func (t *Tenant) mustOwn(ctx context.Context, id string) error {
	tenant, _, err := t.m.tenantOf(ctx, id)
	if err == nil && tenant != t.name {
		err = store.ErrNotFound
	}
	return err
}
