// Package store says how a master keeps jobs and their returns, and keeps them in memory. Package sqlite keeps them in a
// file, package jobcache in the directory that Salt's own tools read. All pass the suite in storetest.
package store

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrExists says that a job id is taken.
	ErrExists = errors.New("job id exists")
	// ErrNotFound says that a job is not stored.
	ErrNotFound = errors.New("job not found")
	// ErrTooLarge is wrapped where the database does not take a value of this size.
	ErrTooLarge = errors.New("more than the database of the master takes")
)

// Job is a command as it was published.
type Job struct {
	JID string
	// Fun is the function's name, or, for a compound command, []any of names.
	Fun any
	Arg []any
	// Tgt is text, or []any for list targets; TgtType is Salt's tgt_type.
	Tgt     any
	TgtType string
	User    string
	// Minions are the ids that the master expects to answer; Missing those of a list target that it does not know.
	Minions, Missing []string
	// Load is the whole publish load as Salt's job cache has it: the fields above under Salt's names, and whatever else the
	// client sent, without key or password. It may be nil.
	Load    map[string]any
	Created time.Time
}

// Return is one minion's answer.
type Return struct {
	JID, ID string
	// Load is the whole return load under Salt's names: return, retcode, success, fun, fun_args, out, …
	Load     map[string]any
	Received time.Time
}

// Filter chooses jobs. The zero value chooses the newest 1000.
type Filter struct {
	// Since and Before bound the time of creation; zero times do not.
	Since, Before time.Time
	// Minion chooses jobs that expect, or have, an answer of this id.
	Minion string
	// Limit is how many jobs at most, the newest; 0 means 1000.
	Limit int
}

// DefaultLimit is Filter.Limit where it is 0.
const DefaultLimit = 1000

// Store keeps jobs and returns. Methods may be called from many goroutines. Callers do not change values after
// handing them over, nor values they got.
type Store interface {
	// SaveJob stores a new job before it is published. ErrExists if the job id is taken.
	SaveJob(ctx context.Context, j Job) error
	// AddMinions adds ids to those that a job expects. ErrNotFound if there is no such job.
	AddMinions(ctx context.Context, jid string, ids []string) error
	// SaveReturn stores the first return of a minion for a job and reports whether this one was it. A job that is not
	// stored is no error: a master may have lost it, its minions have not.
	SaveReturn(ctx context.Context, r Return) (first bool, err error)
	// Job returns a job. ErrNotFound.
	Job(ctx context.Context, jid string) (Job, error)
	// Returns returns the answers to a job so far, sorted by id.
	Returns(ctx context.Context, jid string) ([]Return, error)
	// Jobs returns the jobs that a filter chooses, newest first.
	Jobs(ctx context.Context, f Filter) ([]Job, error)
	// Purge forgets jobs and returns older than a time and says how many jobs; with them the orders behind them. A job of an order
	// that still has open deliveries stays.
	Purge(ctx context.Context, before time.Time) (int, error)
	// Close gives resources back.
	Close() error
}

// Bounded is a Store that can be kept to a number of jobs, or to a size.
type Bounded interface {
	// Beyond gives the time before which jobs that are not among the newest keep were made, for Purge; the zero time when there are no others.
	Beyond(ctx context.Context, keep int) (time.Time, error)
	// Size says how many jobs there are, and about how many bytes everything takes: 0 where the store does not know.
	Size(ctx context.Context) (jobs int, bytes int64, err error)
	// Room returns how many bytes the store may take where nobody says so: an eighth of the disk that it has to itself or shares, 0 for no bound.
	Room() int64
}

// BoundedOf returns the bounds of a store that has them.
func BoundedOf(s Store) (Bounded, bool) {
	if w, ok := s.(Wrapper); ok {
		return BoundedOf(w.Unwrap())
	}
	b, ok := s.(Bounded)
	return b, ok
}
