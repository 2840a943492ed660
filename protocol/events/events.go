// Package events is the event bus of a master or a minion: every thing that happens, told to whoever listens, in the order in which it
// happened. Publishing never waits for a listener; a listener that falls behind loses events and is told how many. The bus
// is inside the process; package ipc below it opens Salt's sockets. Salt's source: salt/utils/event.py.
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

// Event is one thing that happened. Data is shared by all listeners and must not be changed.
type Event struct {
	Tag  string
	Data map[string]any
	// Missed is not 0 on a gap marker: so many events could not be kept for this listener. A marker has no Tag.
	Missed int
	// Relayed says that the event happened at another master.
	Relayed bool
	// size is about how many bytes the event holds.
	size int
}

// Bus hands events to its subscribers. The zero value is not usable; see New.
type Bus struct {
	now func() time.Time

	mu     sync.RWMutex // guards subs and closed; the write lock also orders publishers
	subs   map[*Subscription]struct{}
	closed bool
}

// New makes a bus. now gives the time for stamps; nil is time.Now.
func New(now func() time.Time) *Bus {
	if now == nil {
		now = time.Now
	}
	return &Bus{now: now, subs: make(map[*Subscription]struct{})}
}

// Publish tells an event to all subscribers and never blocks. data gets Salt's _stamp unless it has one; the caller's map is
// not changed and must not be changed afterwards.
func (b *Bus) Publish(tag string, data map[string]any) { b.publish(tag, data, false) }

// Relay is Publish for an event that happened at another master.
func (b *Bus) Relay(tag string, data map[string]any) { b.publish(tag, data, true) }

// RelayGap tells the subscribers that listen to other masters that so many events of these, or some if it is not known how many, did not arrive.
func (b *Bus) RelayGap(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.subs {
		if !s.opts.Own {
			s.miss(max(n, 1))
		}
	}
}

func (b *Bus) publish(tag string, data map[string]any, relayed bool) {
	if !b.wanted(tag, relayed) {
		return
	}
	if _, ok := data["_stamp"]; !ok {
		data = maps.Clone(data)
		if data == nil {
			data = make(map[string]any, 1)
		}
		data["_stamp"] = protocol.Stamp(b.now())
	}
	e := Event{Tag: tag, Data: data, Relayed: relayed, size: len(tag) + payload.Size(data)}
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.subs {
		s.offer(e)
	}
}

// Wanted says whether anyone listens to a tag that happens at another master.
func (b *Bus) Wanted(tag string) bool { return b.wanted(tag, true) }

// wanted says whether anyone listens to a tag, so that events nobody wants cost nothing.
func (b *Bus) wanted(tag string, relayed bool) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for s := range b.subs {
		if s.matches(tag, relayed) {
			return true
		}
	}
	return false
}

// SubscribeOptions choose what a subscriber gets and how far it may fall behind.
type SubscribeOptions struct {
	// Prefix selects tags that begin with it; empty selects all.
	Prefix string
	// Match, when set, selects further. It is called by publishers and must be quick.
	Match func(tag string) bool
	// Own leaves out what happened at other masters.
	Own bool
	// Buffer is how many events may wait; 0 means DefaultBuffer.
	Buffer int
	// Bytes bounds the approximate size of the waiting events; 0 means DefaultBytes. One event is always kept.
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

// Subscribers is how many subscriptions are open.
func (b *Bus) Subscribers() int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.subs)
}

// Close ends all subscriptions. Events published later are dropped.
func (b *Bus) Close() {
	b.mu.Lock()
	subs := b.subs
	b.subs, b.closed = nil, true
	b.mu.Unlock()
	for s := range subs {
		s.end()
	}
}

// Subscription is a place in the audience. Its methods may be called from several goroutines, though one listener is what
// keeps events in order.
type Subscription struct {
	bus   *Bus
	opts  SubscribeOptions
	ready chan struct{} // has one element when there is something to see

	mu     sync.Mutex // guards the fields below
	queue  []Event    // waiting, oldest first, from head on
	head   int
	bytes  int
	missed int // events lost since the last one that was kept
	lost   int64
	closed bool
}

func (s *Subscription) matches(tag string, relayed bool) bool {
	return !(relayed && s.opts.Own) && strings.HasPrefix(tag, s.opts.Prefix) && (s.opts.Match == nil || s.opts.Match(tag))
}

// offer keeps an event or counts it as lost.
func (s *Subscription) offer(e Event) {
	if !s.matches(e.Tag, e.Relayed) {
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

// miss counts events as lost that never came here.
func (s *Subscription) miss(n int) {
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
		if e, ok, closed := s.take(); ok {
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

func (s *Subscription) take() (e Event, ok, closed bool) {
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

// Waiting is how many events this subscription has yet to take.
func (s *Subscription) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) - s.head
}

// Lost is how many events this subscription ever lost.
func (s *Subscription) Lost() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Close ends the subscription; events that wait are dropped.
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

// Pack is the event as Salt's sockets carry it: tag, blank line, msgpack.
func (e Event) Pack() ([]byte, error) { return protocol.PackEvent(e.Tag, e.Data) }

// Text returns a text field of the event's data.
func (e Event) Text(key string) string {
	s, _ := payload.Text(e.Data[key])
	return s
}
