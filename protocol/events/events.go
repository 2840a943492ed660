// Package events is the event bus of a master or a minion. Everything that happens is published as an event, and
// every subscriber receives it in the order in which it happened.
//
//	Publish ──▶ Bus ──▶ Subscription (bounded queue) ──▶ Next        one listener each
//	         └──▶ Log (ring) ──▶ Follow(cursor)                      listeners that return later
//	                └──▶ ipc.Server ──▶ Salt's sockets
//
// Publishing never waits for a listener. A listener that falls behind loses events and is told how many. The bus is
// inside the process; package ipc below it opens Salt's sockets. Salt's source: salt/utils/event.py.
package events

import (
	"context"
	"errors"
	"iter"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// Defaults of SubscribeOptions.
const (
	DefaultBuffer = 1024
	DefaultBytes  = 32 << 20
)

// ErrClosed is returned by Next after the subscription or the bus was closed.
var ErrClosed = errors.New("events: closed")

// An Event is one event. All listeners share Data, which must not be changed.
type Event struct {
	Tag string
	// Data has no order of keys; see Ordered.
	Data map[string]any
	// ordered is Data with its order of keys, as it was published; nil if Data has everything.
	ordered map[string]any
	// Missed is not 0 in a gap marker: the number of events that this listener lost at this point. A marker has no
	// Tag.
	Missed int
	// Relayed is true if the event happened at another master.
	Relayed bool
	// size is the approximate size of the event in bytes.
	size int
}

// Of returns the event with a tag and data. Maps in data may be [payload.OrderedMap].
func Of(tag string, data map[string]any) Event {
	return Event{Tag: tag, Data: payload.PlainMap(data), ordered: data}
}

// Ordered returns the data with maps that were published in order as [payload.OrderedMap]. It must not be changed.
func (e Event) Ordered() map[string]any {
	if e.ordered == nil {
		return e.Data
	}
	return e.ordered
}

// A Bus passes events to its subscribers. Create one with New.
type Bus struct {
	now func() time.Time

	mu     sync.RWMutex // guards the fields below; the write lock also orders publishers
	subs   map[*Subscription]struct{}
	logs   map[*Log]struct{}
	closed bool
}

// New returns a bus. now returns the time for stamps; nil means time.Now.
func New(now func() time.Time) *Bus {
	if now == nil {
		now = time.Now
	}
	return &Bus{now: now, subs: make(map[*Subscription]struct{}), logs: make(map[*Log]struct{})}
}

// Publish passes an event to all subscribers and never blocks. data gets Salt's _stamp unless it has one, in a
// copy. The caller must not change data afterwards.
func (b *Bus) Publish(tag string, data map[string]any) { b.publishFrom(tag, data, false) }

// Relay is Publish for an event that happened at another master.
func (b *Bus) Relay(tag string, data map[string]any) { b.publishFrom(tag, data, true) }

// RelayGap reports a gap to the subscribers that listen to other masters: n of their events did not arrive; 0 means
// an unknown number.
func (b *Bus) RelayGap(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.subs {
		if !s.opts.Own {
			s.countMissed(max(n, 1))
		}
	}
	for g := range b.logs {
		g.addEvent(Event{Missed: max(n, 1)})
	}
}

// publishFrom is the body of Publish and Relay.
func (b *Bus) publishFrom(tag string, data map[string]any, relayed bool) {
	if !b.hasListener(tag, relayed) {
		return
	}
	if _, ok := data["_stamp"]; !ok {
		data = maps.Clone(data)
		if data == nil {
			data = make(map[string]any, 1)
		}
		data["_stamp"] = protocol.Stamp(b.now())
	}
	e := Of(tag, data)
	e.Relayed, e.size = relayed, len(tag)+payload.Size(e.Data)
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.subs {
		s.offerEvent(e)
	}
	for g := range b.logs {
		g.addEvent(e)
	}
}

// Wanted reports whether there is a listener for the events of other masters with this tag.
func (b *Bus) Wanted(tag string) bool { return b.hasListener(tag, true) }

// hasListener reports whether there is a listener for an event, so that unwanted events cost nothing.
func (b *Bus) hasListener(tag string, relayed bool) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if len(b.logs) > 0 {
		return true
	}
	for s := range b.subs {
		if s.matchesEvent(tag, relayed) {
			return true
		}
	}
	return false
}

// SubscribeOptions select the events of a subscriber and limit how far it may fall behind.
type SubscribeOptions struct {
	// Prefix selects tags that begin with it; empty selects all.
	Prefix string
	// Match, if set, further restricts the tags. Publishers call it, so it must be fast.
	Match func(tag string) bool
	// Own excludes events of other masters.
	Own bool
	// Buffer is how many events may wait; 0 means DefaultBuffer.
	Buffer int
	// Bytes limits the approximate size of the waiting events; 0 means DefaultBytes. One event is always accepted.
	Bytes int
}

// Subscribe starts to listen. Every subscription must be closed.
func (b *Bus) Subscribe(o SubscribeOptions) *Subscription {
	if o.Buffer <= 0 {
		o.Buffer = DefaultBuffer
	}
	if o.Bytes <= 0 {
		o.Bytes = DefaultBytes
	}
	s := &Subscription{bus: b, opts: o, ready: make(chan struct{}, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		s.closed = true
		s.ready <- struct{}{}
		return s
	}
	b.subs[s] = struct{}{}
	return s
}

// Subscribers returns how many subscriptions and logs are open.
func (b *Bus) Subscribers() int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.subs) + len(b.logs)
}

// Close ends all subscriptions. Events published later are dropped.
func (b *Bus) Close() {
	b.mu.Lock()
	subs, logs := b.subs, b.logs
	b.subs, b.logs, b.closed = nil, nil, true
	b.mu.Unlock()
	for s := range subs {
		s.end()
	}
	for g := range logs {
		g.end()
	}
}

// A Subscription is a queue of events for one listener. Its methods may be called from several goroutines, but only
// one listener sees events in order.
type Subscription struct {
	bus   *Bus
	opts  SubscribeOptions
	ready chan struct{} // holds one element while there is something to receive

	mu     sync.Mutex // guards the fields below
	queue  []Event    // queue[head:] are waiting, oldest first
	head   int
	bytes  int
	missed int // lost since the last event in the queue
	lost   int64
	closed bool
}

// matchesEvent reports whether the subscription selects an event.
func (s *Subscription) matchesEvent(tag string, relayed bool) bool {
	return !(relayed && s.opts.Own) && strings.HasPrefix(tag, s.opts.Prefix) && (s.opts.Match == nil || s.opts.Match(tag))
}

// offerEvent queues an event or counts it as lost. It moves the queue to the front when half of it is used up.
func (s *Subscription) offerEvent(e Event) {
	if !s.matchesEvent(e.Tag, e.Relayed) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	waiting := len(s.queue) - s.head
	if waiting >= s.opts.Buffer || waiting > 0 && s.bytes+e.size > s.opts.Bytes {
		s.missed++
		s.lost++
	} else {
		if s.head > len(s.queue)/2 {
			n := copy(s.queue, s.queue[s.head:])
			clear(s.queue[n:])
			s.queue, s.head = s.queue[:n], 0
		}
		if s.missed > 0 {
			s.queue = append(s.queue, Event{Missed: s.missed})
			s.missed = 0
		}
		s.queue = append(s.queue, e)
		s.bytes += e.size
	}
	s.signal()
}

// countMissed counts events as lost that never arrived in this process.
func (s *Subscription) countMissed(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.missed += n
	s.lost += int64(n)
	s.signal()
}

func (s *Subscription) signal() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Next waits for the next event or gap marker. The error is ctx.Err() or ErrClosed.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		if e, ok, closed := s.takeEvent(); ok {
			return e, nil
		} else if closed {
			return Event{}, ErrClosed
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// takeEvent returns the next event, if any.
func (s *Subscription) takeEvent() (e Event, ok, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.head == len(s.queue) {
		s.queue, s.head = s.queue[:0], 0
		if s.missed > 0 {
			e = Event{Missed: s.missed}
			s.missed = 0
			return e, true, false
		}
		if s.closed {
			s.signal() // wakes the next waiting goroutine, too
		}
		return Event{}, false, s.closed
	}
	e = s.queue[s.head]
	s.queue[s.head] = Event{}
	s.head++
	s.bytes -= e.size
	if s.head == len(s.queue) && cap(s.queue) > DefaultBuffer {
		s.queue, s.head = nil, 0
	}
	if s.head < len(s.queue) || s.missed > 0 {
		s.signal()
	}
	return e, true, false
}

// All ranges over events until ctx ends or the subscription is closed.
func (s *Subscription) All(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for {
			e, err := s.Next(ctx)
			if err != nil || !yield(e) {
				return
			}
		}
	}
}

// Waiting returns how many events wait in this subscription.
func (s *Subscription) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) - s.head
}

// Lost returns how many events this subscription has lost so far.
func (s *Subscription) Lost() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Close ends the subscription and drops waiting events.
func (s *Subscription) Close() {
	s.bus.mu.Lock()
	delete(s.bus.subs, s)
	s.bus.mu.Unlock()
	s.mu.Lock()
	s.queue, s.head, s.bytes, s.missed = nil, 0, 0, 0
	s.mu.Unlock()
	s.end()
}

func (s *Subscription) end() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.signal()
}

// Pack returns the event as Salt's sockets carry it: tag, blank line, msgpack.
func (e Event) Pack() ([]byte, error) { return protocol.PackEvent(e.Tag, e.Ordered()) }

// Text returns a string field of the event's data.
func (e Event) Text(key string) string {
	s, _ := payload.Text(e.Data[key])
	return s
}
