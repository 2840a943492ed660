package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// memoryContent holds the pieces under one key of a memory store. The store's mutex guards it.
type memoryContent struct {
	made   time.Time
	pieces map[int][]byte
}

var (
	_ Contents = (*memory)(nil)
	_ Labels   = (*memory)(nil)
)

func (m *memory) SavePiece(_ context.Context, key string, n int, made time.Time,
	body []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue.initMaps()
	c := m.queue.contents[key]
	if c == nil {
		c = &memoryContent{made: made, pieces: make(map[int][]byte)}
		m.queue.contents[key] = c
	}
	c.pieces[n] = slices.Clone(body)
	return nil
}

func (m *memory) Piece(_ context.Context, key string, n int) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.queue.contents[key]; c != nil && c.pieces[n] != nil {
		return c.pieces[n], nil
	}
	return nil, fmt.Errorf("cannot find piece %d of content %q: %w", n, key, ErrNotFound)
}

func (m *memory) DropContent(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.queue.contents, key)
	return nil
}

func (m *memory) ContentSize(_ context.Context, prefix string) (size int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, c := range m.queue.contents {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		for _, b := range c.pieces {
			size += int64(len(b))
		}
	}
	return size, nil
}

func (m *memory) PurgeContents(_ context.Context, before time.Time) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := &m.queue
	owned := make(map[string]bool) // whether the order is open, by key
	for _, o := range q.orders {
		if o.Content != "" {
			owned[o.Content] = q.isHeld(o.JID)
		}
	}
	for key, c := range q.contents {
		if open, ok := owned[key]; ok && !open || !ok && c.made.Before(before) {
			n += len(c.pieces)
			delete(q.contents, key)
		}
	}
	return n, nil
}

func (m *memory) Orders(_ context.Context, f OrderFilter) ([]Order, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Order
	for _, o := range m.queue.orders {
		if f.matches(o) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b Order) int { return strings.Compare(a.JID, b.JID) })
	if f.Limit <= 0 {
		f.Limit = DefaultLimit
	}
	return out[:min(len(out), f.Limit)], nil
}
