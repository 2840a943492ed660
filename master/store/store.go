// Package store defines how a master stores jobs and their returns, and stores them in memory.
//
//	Store                       jobs and returns: memory, jobcache, and all below
//	  + Queue, Minions          orders, deliveries, minions known in advance
//	  + Contents, Labels        what orders carry, and how they are found
//	  + Paged, Bounded          returns in pages; limits
//	  + Shared                  keys, secrets, leases and messages of several masters
//
// Package sqlite stores them in a file, mysql and postgres on a server, jobcache in the directory that Salt's own
// tools read. All pass the suites in storetest, which are the contract in code. Every method may be called again
// after an error: saving the same twice is reported (ErrExists, or false for a return) and never stored twice.
package store

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrExists means that a job id is taken.
	ErrExists = errors.New("job id exists")
	// ErrNotFound means that a job is not stored.
	ErrNotFound = errors.New("not found")
	// ErrTooLarge is wrapped if the database does not accept a value of this size.
	ErrTooLarge = errors.New("more than the master's database accepts")
	// ErrLost is wrapped if the database server was away for longer than the store waits for it.
	ErrLost = errors.New("the database server cannot be reached")
)

// A Job is a command as it was published.
type Job struct {
	JID string
	// Fun is the function's name, or for a compound command []any of names.
	Fun any
	// Arg are the arguments; maps in them may be payload.OrderedMap.
	Arg []any
	// Tgt is a string, or []any for list targets; TgtType is Salt's tgt_type.
	Tgt     any
	TgtType string
	User    string
	// Minions are the ids from which the master expects a return; Missing are those of a list target that it does
	// not know.
	Minions, Missing []string
	// Load is the whole publish load as in Salt's job cache: the fields above under Salt's names, and whatever else
	// the client sent, without key or password. It may be nil.
	Load    map[string]any
	Created time.Time
}

// A Return is one minion's return.
type Return struct {
	JID, ID string
	// Load is the whole return load under Salt's names: return, retcode, success, fun, fun_args, out, … Maps in the
	// fields InOrder may be payload.OrderedMap: a store keeps their order.
	Load     map[string]any
	Received time.Time
}

// InOrder are the fields of a return in which the order of maps is kept.
var InOrder = []string{"return", "fun_args"}

// A Filter selects jobs. The zero value selects the newest 1000.
type Filter struct {
	// Since and Before limit the time of creation; zero times do not.
	Since, Before time.Time
	// Minion selects jobs that expect, or have, a return of this id.
	Minion string
	// Limit is how many jobs to return at most, the newest; 0 means 1000.
	Limit int
}

// DefaultLimit is Filter.Limit if that is 0.
const DefaultLimit = 1000

// A Store stores jobs and returns. Methods may be called from many goroutines. Callers do not change values after
// passing them, nor values that they received.
type Store interface {
	// SaveJob stores a new job before it is published. It returns ErrExists if the job id is taken.
	SaveJob(ctx context.Context, j Job) error
	// AddMinions adds ids to those that a job expects. It returns ErrNotFound if there is no such job.
	AddMinions(ctx context.Context, jid string, ids []string) error
	// SaveReturn stores the first return of a minion to a job, and reports whether this one was it. It accepts
	// returns to unknown jobs: the master may have lost the job while its minions ran it.
	SaveReturn(ctx context.Context, r Return) (first bool, err error)
	// Job returns a job, or ErrNotFound.
	Job(ctx context.Context, jid string) (Job, error)
	// Returns returns the returns to a job so far, sorted by id.
	Returns(ctx context.Context, jid string) ([]Return, error)
	// Jobs returns the jobs that a filter selects, newest first.
	Jobs(ctx context.Context, f Filter) ([]Job, error)
	// Purge removes jobs and returns older than a time, and the orders behind them. It returns how many jobs it
	// removed. The job of an order with open deliveries stays.
	Purge(ctx context.Context, before time.Time) (int, error)
	// Close releases resources.
	Close() error
}

// Bounded is a Store that can be limited to a number of jobs, or to a size.
type Bounded interface {
	// Beyond returns the time before which all jobs except the newest keep were created, for Purge; the zero time
	// if there are no others.
	Beyond(ctx context.Context, keep int) (time.Time, error)
	// Size returns how many jobs there are, and about how many bytes everything takes, 0 if the store does not
	// know.
	Size(ctx context.Context) (jobs int, bytes int64, err error)
	// Room returns how many bytes the store may take by default: an eighth of its disk, 0 for no limit.
	Room() int64
}

// BoundedOf returns the Bounded of a store, or of the store that it wraps.
func BoundedOf(s Store) (Bounded, bool) {
	if w, ok := s.(Wrapper); ok {
		return BoundedOf(w.Unwrap())
	}
	b, ok := s.(Bounded)
	return b, ok
}
