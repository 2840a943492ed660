package store

import "context"

// Paged is a Store that gives the returns of a job in parts, so that nobody has to hold those of ten thousand minions, and that keeps
// them when the process ends.
type Paged interface {
	Store
	// Returned are the ids of the minions that have returned.
	Returned(ctx context.Context, jid string) ([]string, error)
	// ReturnsOf returns the answers of some minions to a job, those that are there, in any order.
	ReturnsOf(ctx context.Context, jid string, ids []string) ([]Return, error)
}

// Wrapper is a Store in front of another one, which keeps what it says it keeps.
type Wrapper interface {
	// Unwrap is the other one.
	Unwrap() Store
}

// PagedOf returns the store that gives returns in parts, if s is one or is in front of one.
func PagedOf(s Store) (Paged, bool) {
	if p, ok := s.(Paged); ok {
		return p, true
	}
	if w, ok := s.(Wrapper); ok {
		return PagedOf(w.Unwrap())
	}
	return nil, false
}
