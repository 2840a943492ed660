package events

import (
	"context"
	"crypto/rand"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Log keeps the last events of a bus, so that a listener that was away can continue where it stopped.
//
// The bus writes to it directly, without a queue: when Publish returns, the event is in the log and Cursor is after
// it.
type Log struct {
	bus    *Bus
	epoch  string // identifies this log; cursors of other logs are invalid here
	limits LogLimits

	mu    sync.Mutex // guards the fields below; taken after the bus's
	ring  []Event    // ring[head:], oldest first
	head  int
	first uint64 // the number of the event ring[head]
	bytes int
	more  chan struct{} // closed when the next event arrives; nil while no loop waits
	ended bool
}

// LogLimits limit a Log. Zero fields mean DefaultLogEvents and DefaultBytes.
type LogLimits struct{ Events, Bytes int }

// DefaultLogEvents is how many events a log keeps.
const DefaultLogEvents = 10_000

// Logged is an event and its position. If Missed is set, events before it are gone; if the cursor was too old or from
// another process, Missed is 1 because the number is unknown. A Logged without a tag and with Missed 0 is a mark (see
// FollowMarked).
type Logged struct {
	Event
	// Cursor is the position after this event. Pass it to Follow to continue there.
	Cursor string
}

// NewLog starts a log of the events of a bus. Close it after use.
func NewLog(b *Bus, l LogLimits) *Log {
	if l.Events <= 0 {
		l.Events = DefaultLogEvents
	}
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	g := &Log{bus: b, epoch: rand.Text()[:8], limits: l, first: 1}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		g.ended = true
	} else {
		b.logs[g] = struct{}{}
	}
	return g
}

// Close ends the log and all loops that follow it.
func (g *Log) Close() {
	g.bus.mu.Lock()
	delete(g.bus.logs, g)
	g.bus.mu.Unlock()
	g.end()
}

// addEvent adds an event and drops the oldest ones beyond the limits.
func (g *Log) addEvent(e Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ring = append(g.ring, e)
	g.bytes += e.size
	for n := len(g.ring) - g.head; n > 1 && (n > g.limits.Events || g.bytes > g.limits.Bytes); n-- {
		g.bytes -= g.ring[g.head].size
		g.ring[g.head] = Event{}
		g.head++
		g.first++
	}
	if g.head > len(g.ring)/2 {
		g.ring, g.head = append([]Event(nil), g.ring[g.head:]...), 0
	}
	g.wake()
}

// end marks the log as ended. Each loop ends after it has read the remaining events.
func (g *Log) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	g.wake()
}

// wake wakes the loops that wait for an event. The caller holds mu.
func (g *Log) wake() {
	if g.more != nil {
		close(g.more)
		g.more = nil
	}
}

// Cursor returns the position after the newest event.
func (g *Log) Cursor() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cursor(g.first + uint64(len(g.ring)-g.head) - 1)
}

func (g *Log) cursor(n uint64) string { return g.epoch + "-" + strconv.FormatUint(n, 10) }

// after returns the event after number n, or a channel to wait on. gap means that events in between are gone.
func (g *Log) after(n uint64) (e Event, at uint64, gap bool, wait <-chan struct{}, ended bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n+1 < g.first {
		n, gap = g.first-1, true
	}
	if i := g.head + int(n+1-g.first); i < len(g.ring) {
		return g.ring[i], n + 1, gap, nil, false
	}
	if g.more == nil {
		g.more = make(chan struct{})
	}
	return Event{}, n, gap, g.more, g.ended
}

// Follow ranges over the events after a cursor whose tags match, until ctx ends or the log is closed. An empty cursor
// means now. If the loop is so slow that events are lost, the next one reports it in Missed. match may be nil.
func (g *Log) Follow(ctx context.Context, cursor string, match func(tag string) bool) iter.Seq[Logged] {
	return g.FollowMarked(ctx, 0, cursor, match)
}

// FollowMarked is like Follow, and also yields a mark at each interval. The mark's Cursor is the position that the
// loop has reached, past events that do not match. A listener that stores it does not see a gap later because of
// events that did not match. An interval of 0 turns marks off.
func (g *Log) FollowMarked(ctx context.Context, every time.Duration, cursor string, match func(tag string) bool) iter.Seq[Logged] {
	if cursor == "" {
		cursor = g.Cursor()
	}
	return func(yield func(Logged) bool) {
		n, known := g.parseCursor(cursor)
		if !known && !yield(Logged{Event{Missed: 1}, g.cursor(n)}) {
			return
		}
		var mark <-chan time.Time
		if every > 0 {
			t := time.NewTicker(every)
			defer t.Stop()
			mark = t.C
		}
		for {
			select {
			case <-mark:
				if !yield(Logged{Cursor: g.cursor(n)}) {
					return
				}
			default:
			}
			e, at, gap, wait, ended := g.after(n)
			if gap && !yield(Logged{Event{Missed: 1}, g.cursor(at - 1)}) {
				return
			}
			if wait == nil {
				n = at
				if (e.Missed > 0 || match == nil || match(e.Tag)) && !yield(Logged{e, g.cursor(n)}) {
					return
				}
				if ctx.Err() != nil {
					return
				}
				continue
			}
			if n = at; ended {
				return
			}
			select {
			case <-wait:
			case <-mark:
				if !yield(Logged{Cursor: g.cursor(n)}) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// parseCursor returns the number in a cursor. known is false for a cursor of another log or beyond the last event;
// the loop then starts with the oldest event in the log.
func (g *Log) parseCursor(cursor string) (n uint64, known bool) {
	epoch, number, _ := strings.Cut(cursor, "-")
	n, err := strconv.ParseUint(number, 10, 63)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil || epoch != g.epoch || n >= g.first+uint64(len(g.ring)-g.head) {
		return g.first - 1, false
	}
	return n, true
}
