package store

import (
	"context"
	"time"
)

// Contents stores what orders carry beside their job: files, pillar and sealed arguments, as numbered pieces under
// a key that the caller chooses. Some stores implement it; see ContentsOf. The caller seals the bodies.
//
// An order whose Content names a key owns these pieces from SaveOrder on. The store removes them in the same step
// in which the last of the order's deliveries becomes final, so that secrets do not outlive their use.
type Contents interface {
	// SavePiece stores piece n under a key; made is when the key was chosen.
	SavePiece(ctx context.Context, key string, n int, made time.Time, body []byte) error
	// Piece returns piece n of a key, or ErrNotFound.
	Piece(ctx context.Context, key string, n int) ([]byte, error)
	// DropContent removes all pieces of a key. A missing key is not an error.
	DropContent(ctx context.Context, key string) error
	// ContentSize returns how many bytes the pieces have whose key begins with a prefix of letters, digits and ".";
	// "" means all.
	ContentSize(ctx context.Context, prefix string) (int64, error)
	// PurgeContents removes the pieces of orders without open deliveries, and pieces without an order whose key
	// was chosen before a time: those of incomplete uploads. It returns how many pieces it removed.
	PurgeContents(ctx context.Context, before time.Time) (int, error)
}

// Labels searches orders by label. Some stores implement it; see LabelsOf.
type Labels interface {
	// Orders returns the orders that a filter selects, oldest job id first.
	Orders(ctx context.Context, f OrderFilter) ([]Order, error)
}

// An OrderFilter selects orders. The zero value selects all.
type OrderFilter struct {
	// Labels are the labels that orders must have, each with this value.
	Labels map[string]string
	// Tenant selects the orders of one tenant.
	Tenant string
	// After selects later job ids. Together with Limit it reads a long list in pages.
	After string
	// Limit is the maximum number of orders; 0 means 1000.
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

// ContentsOf returns the Contents of a store, or of the store that it wraps.
func ContentsOf(s Store) (Contents, bool) {
	if w, ok := s.(Wrapper); ok {
		return ContentsOf(w.Unwrap())
	}
	c, ok := s.(Contents)
	return c, ok
}

// LabelsOf returns the Labels of a store, or of the store that it wraps.
func LabelsOf(s Store) (Labels, bool) {
	if w, ok := s.(Wrapper); ok {
		return LabelsOf(w.Unwrap())
	}
	l, ok := s.(Labels)
	return l, ok
}
