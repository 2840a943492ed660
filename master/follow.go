package master

import (
	"context"
	"iter"
	"runtime/debug"
	"sync"
	"time"

	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/target"
)

// Hook is a function of the program that hears of events. It has a queue and a goroutine of its own: it may be as
// slow as it likes, the master and other hooks do not wait for it.
type Hook struct {
	// Tags are shell patterns; an event that one of them matches is told. None means every event.
	Tags []string
	// Func is called with one event after the other. A panic in it is logged. ctx ends when the master does. An event
	// with Missed set says that so many were lost because the queue was full.
	Func func(ctx context.Context, e events.Event)
	// Buffer is how many events may wait; 0 means events.DefaultBuffer.
	Buffer int
}

// matches reports whether one of some patterns means a tag.
func matches(patterns []string, tag string) bool {
	for _, p := range patterns {
		if target.Glob(p, tag) {
			return true
		}
	}
	return len(patterns) == 0
}

// startHooks runs the hooks until ctx ends; what it returns waits for the functions that still run.
func (m *Master) startHooks(ctx context.Context) (wait func()) {
	var wg sync.WaitGroup
	for _, h := range m.opts.Events.Hooks {
		sub := m.events.Subscribe(events.SubscribeOptions{Buffer: h.Buffer,
			Match: func(tag string) bool { return matches(h.Tags, tag) }})
		wg.Go(func() {
			defer sub.Close()
			for e := range sub.All(ctx) {
				m.callHook(ctx, h, e)
			}
		})
	}
	return wg.Wait
}

func (m *Master) callHook(ctx context.Context, h Hook, e events.Event) {
	defer func() {
		if r := recover(); r != nil {
			m.log.Error("Hook ended in a panic", "tag", e.Tag, "err", r,
				"stack", string(debug.Stack()))
		}
	}()
	h.Func(ctx, e)
}

// Follow ranges over events whose tags one of some shell patterns matches (all, without patterns), from a cursor on:
// that of an event that was seen before, or "" for what comes. It ends with ctx or the master. Events are kept from
// the first call of Follow or FollowCursor on, the last EventOptions.History; an event with Missed set says that some
// are gone, and also that the cursor is of a master that ended. Then Result tells what became of orders.
func (m *Master) Follow(ctx context.Context, cursor string,
	tags ...string) iter.Seq[events.Logged] {
	return m.FollowMarked(ctx, 0, cursor, tags...)
}

// FollowMarked is Follow with a mark, an event without a tag and nothing missed, each time so long has passed. Its
// Cursor is past all events that were looked at: keep it, as those of events, where few of many events are wanted.
func (m *Master) FollowMarked(ctx context.Context, every time.Duration, cursor string,
	tags ...string) iter.Seq[events.Logged] {
	return m.kept.log().FollowMarked(ctx, every, cursor,
		func(tag string) bool { return matches(tags, tag) })
}

// FollowCursor is the place behind the newest event, for a Follow that begins later.
func (m *Master) FollowCursor() string { return m.kept.log().Cursor() }

// keptEvents are the last events, from when somebody first wants them.
type keptEvents struct {
	bus    *events.Bus
	limits events.LogLimits

	mu   sync.Mutex  // guards list
	list *events.Log // nil until somebody wants it
}

// log returns the list, which begins now if there is none.
func (k *keptEvents) log() *events.Log {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.list == nil {
		k.list = events.NewLog(k.bus, k.limits)
	}
	return k.list
}

func (k *keptEvents) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.list != nil {
		k.list.Close()
	}
}
