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

// Hook is a function that receives events. Each hook has its own queue and goroutine, so a slow one delays
// neither the master nor other hooks.
type Hook struct {
	// Tags are shell patterns; the hook receives events that match any of them. No patterns means every event.
	Tags []string
	// Func is called for one event at a time. A panic is logged. ctx ends with the master. An event with Missed
	// set reports how many events were dropped because the queue was full.
	Func func(ctx context.Context, e events.Event)
	// Buffer is the length of the queue in events; 0 means events.DefaultBuffer.
	Buffer int
}

// matches reports whether tag matches any pattern, or there are no patterns.
func matches(patterns []string, tag string) bool {
	for _, p := range patterns {
		if target.Glob(p, tag) {
			return true
		}
	}
	return len(patterns) == 0
}

// startHooks runs the hooks until ctx ends. wait waits for running calls.
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

// Follow returns the events whose tags match any of some shell patterns (all events without patterns). It
// starts after cursor, which is that of an event seen before, or with new events if cursor is empty. It ends
// with ctx or the master.
//
// The last EventOptions.History events are kept, from the first call of Follow or FollowCursor on. An event
// with Missed set means that events were lost, or that the cursor comes from an earlier process. OrderOutcome
// then returns what happened to orders.
func (m *Master) Follow(ctx context.Context, cursor string,
	tags ...string) iter.Seq[events.Logged] {
	return m.FollowMarked(ctx, 0, cursor, tags...)
}

// FollowMarked is Follow with a mark each interval: an event without a tag and with Missed 0. A mark's cursor
// is past all events examined so far. Store it like those of events, so that a restart does not examine many
// unwanted events again.
func (m *Master) FollowMarked(ctx context.Context, every time.Duration, cursor string,
	tags ...string) iter.Seq[events.Logged] {
	return m.kept.log().FollowMarked(ctx, every, cursor,
		func(tag string) bool { return matches(tags, tag) })
}

// FollowCursor returns the cursor after the newest event, for a Follow that starts later.
func (m *Master) FollowCursor() string { return m.kept.log().Cursor() }

// keptEvents holds the latest events, once a caller has asked for them.
type keptEvents struct {
	bus    *events.Bus
	limits events.LogLimits

	mu   sync.Mutex  // guards list
	list *events.Log // nil until the first call of log
}

// log returns the list of events, and creates it at the first call.
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
