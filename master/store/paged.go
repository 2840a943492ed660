package store

import "context"

// Paged is a Store that returns the returns of a job in pages, so that a caller need not hold those of ten thousand
// minions, and that keeps them when the process ends.
type Paged interface {
	Store
	// Returned returns the ids of the minions that have returned.
	Returned(ctx context.Context, jid string) ([]string, error)
	// ReturnsOf returns the stored returns of some minions to a job, in any order.
	ReturnsOf(ctx context.Context, jid string, ids []string) ([]Return, error)
}

// A Wrapper is a Store in front of another one.
type Wrapper interface {
	// Unwrap returns the other store.
	Unwrap() Store
}

// PagedOf returns the Paged of a store, or of the store that it wraps.
func PagedOf(s Store) (Paged, bool) {
	if p, ok := s.(Paged); ok {
		return p, true
	}
	if w, ok := s.(Wrapper); ok {
		return PagedOf(w.Unwrap())
	}
	return nil, false
}
