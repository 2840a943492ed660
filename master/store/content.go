package store

import (
	"context"
	"time"
)

// Contents keeps what orders carry beside their job: files, pillar and sealed arguments, as numbered pieces under a key that the
// caller makes up. Stores that can also implement it; see ContentsOf. The bodies are sealed by the caller.
//
// An order whose Content names a key owns these pieces from SaveOrder on: the store forgets them, in the same step, when the last
// of the order's deliveries becomes final.
type Contents interface {
	// SavePiece stores piece n under a key; made is when its key was made up.
	SavePiece(ctx context.Context, key string, n int, made time.Time, body []byte) error
	// Piece returns piece n of a key. ErrNotFound.
	Piece(ctx context.Context, key string, n int) ([]byte, error)
	// DropContent forgets all pieces of a key. A missing key is no error.
	DropContent(ctx context.Context, key string) error
	// ContentSize returns how many bytes all pieces have.
	ContentSize(ctx context.Context) (int64, error)
	// PurgeContents forgets the pieces of orders that have no open delivery, and pieces whose key was made up
	// before a time and that no order owns: those of uploads that did not end. It returns how many pieces.
	PurgeContents(ctx context.Context, before time.Time) (int, error)
}

// Labels finds orders by their Labels. Stores that can also implement it; see LabelsOf.
type Labels interface {
	// Orders returns the orders that a filter chooses, oldest job id first.
	Orders(ctx context.Context, f OrderFilter) ([]Order, error)
}

// OrderFilter chooses orders. Zero fields choose all.
type OrderFilter struct {
	// Labels are what orders must have, each with this value.
	Labels map[string]string
	// Tenant chooses the orders of one tenant.
	Tenant string
	// After chooses job ids behind it, which with Limit reads a long list in parts.
	After string
	// Limit is how many orders at most; 0 means 1000.
	Limit int
}

func (f OrderFilter) matches(o Order) bool {
	if f.Tenant != "" && o.Tenant != f.Tenant || o.JID <= f.After {
		return false
	}
	for key, want := range f.Labels {
		if value, ok := o.Labels[key]; !ok || value != want {
			return false
		}
	}
	return true
}

// ContentsOf returns the contents of a store that keeps them.
func ContentsOf(s Store) (Contents, bool) {
	if w, ok := s.(Wrapper); ok {
		return ContentsOf(w.Unwrap())
	}
	c, ok := s.(Contents)
	return c, ok
}

// LabelsOf returns the index of orders of a store that has one.
func LabelsOf(s Store) (Labels, bool) {
	if w, ok := s.(Wrapper); ok {
		return LabelsOf(w.Unwrap())
	}
	l, ok := s.(Labels)
	return l, ok
}
