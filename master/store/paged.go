package store

import (
	"context"
	"slices"
)

// Paged is a persistent Store that returns the returns of a job in pages, so that a caller need not hold those
// of ten thousand minions.
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

// readPage is how many returns EachReturn reads at once.
const readPage = 64

// EachReturn calls f for the stored returns of a job from wanted minions. It reads them in pages if the store
// is a Paged.
func EachReturn(ctx context.Context, s Store, jid string, wanted func(id string) bool,
	f func(Return)) error {
	db, ok := PagedOf(s)
	if !ok {
		all, err := s.Returns(ctx, jid)
		for _, r := range all {
			if wanted(r.ID) {
				f(r)
			}
		}
		return err
	}
	ids, err := db.Returned(ctx, jid)
	if err != nil {
		return err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return !wanted(id) })
	for part := range slices.Chunk(ids, readPage) {
		list, err := db.ReturnsOf(ctx, jid, part)
		if err != nil {
			return err
		}
		for _, r := range list {
			f(r)
		}
	}
	return nil
}
