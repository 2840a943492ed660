package store

import (
	"context"
	"time"
)

// Shared is a store over which several equal masters work at the same time. Besides jobs and returns it holds what
// they must agree about. Every change is a compare-and-swap, so any master may do anything at any time, and any of
// them may die. Package sqlstore implements it; storetest.RunShared is its suite.
type Shared interface {
	Store

	// SaveReturnTell is SaveReturn. If the return is the first it also sends a message to the other masters: both
	// or neither.
	SaveReturnTell(ctx context.Context, r Return, m Message) (first bool, err error)
	// SaveOrderTell is Queue.SaveOrder and also sends a message to the other masters: both or neither.
	SaveOrderTell(ctx context.Context, o Order, deliveries []Delivery, m Message) error
	// Return returns one minion's return to a job, or ErrNotFound.
	Return(ctx context.Context, jid, id string) (Return, error)

	// Tell sends messages to the other masters, in this order.
	Tell(ctx context.Context, m ...Message) error
	// Follow calls f with the messages of other masters, each once and in one order, from now on until ctx ends. If
	// a message could not be kept long enough for this master, f is called with none, which means that some were
	// missed.
	Follow(ctx context.Context, self string, f func([]Message)) error
	// MessagesSince returns the bodies of a kind of message that masters other than self sent after the message with
	// number since, and the number of the newest message of any kind. complete is false if some of them may be
	// missing because they were removed, or since is negative; bodies is nil then. It costs at most three statements.
	MessagesSince(ctx context.Context, self, kind string, since int64) (
		bodies [][]byte, newest int64, complete bool, err error)

	// Key returns the keys of an id; a record with Epoch 0 if there are none.
	Key(ctx context.Context, id string) (KeyRecord, error)
	// SwapKey replaces the record that was read with this Epoch. It reports whether no other master was faster; m
	// is sent with it.
	SwapKey(ctx context.Context, r KeyRecord, m Message) (bool, error)
	// KeyIDs returns the ids with a key in a state, by Salt's folder name, sorted.
	KeyIDs(ctx context.Context, folder string) ([]string, error)
	// KeyCount returns how many ids that are.
	KeyCount(ctx context.Context, folder string) (int, error)
	// KeyVersion returns a number that changes whenever any key does.
	KeyVersion(ctx context.Context) (int64, error)

	// Secrets returns the versions of a secret, oldest first. The caller seals their bodies.
	Secrets(ctx context.Context, name string) ([]Secret, error)
	// AddSecret stores a version of a secret unless it exists, and reports whether it did.
	AddSecret(ctx context.Context, s Secret, m Message) (bool, error)
	// DropSecrets removes versions below one.
	DropSecrets(ctx context.Context, name string, below int64) error

	// Lease gives the owner a lease for a time, if no other owner has it. The owner's own lease is extended.
	Lease(ctx context.Context, name, owner string, life time.Duration) (bool, error)
	// Release gives a lease back.
	Release(ctx context.Context, name, owner string) error
	// Leases returns the leases that have not ended and whose names begin with a prefix: owners by name.
	Leases(ctx context.Context, prefix string) (map[string]string, error)

	// Once reports whether something happens for the first time. It is remembered until PurgeShared.
	Once(ctx context.Context, scope string, mark []byte) (bool, error)

	// Datum returns what is stored under a kind and an id, with its epoch; nil and 0 if nothing is.
	Datum(ctx context.Context, kind, id string) (body []byte, epoch int64, err error)
	// Data returns what is stored under a kind and some ids, by id, in few questions. Ids of which nothing is stored
	// are missing.
	Data(ctx context.Context, kind string, ids []string) (map[string][]byte, error)
	// DataEpochs returns the epochs of all of a kind, by id. An epoch is of one content: another one, even of an id
	// that was removed and came again, has another epoch.
	DataEpochs(ctx context.Context, kind string) (map[string]int64, error)
	// SetDatum replaces it if the epoch is the one that was read, or in any case if epoch is below 0. A nil body
	// removes it.
	SetDatum(ctx context.Context, kind, id string, body []byte, epoch int64) (bool, error)
	// DatumIDs returns the ids of a kind, sorted.
	DatumIDs(ctx context.Context, kind string) ([]string, error)

	// PurgeShared removes messages and marks older than the times, and the oldest messages beyond a number; 0 means
	// no limit.
	PurgeShared(ctx context.Context, messages, marks time.Time, most int) error
}

// A Message is what one master tells the others. Seq numbers messages without gaps.
type Message struct {
	Seq int64
	// From and To name masters; an empty To means all others.
	From, To string
	Kind     string
	Body     []byte
}

// A KeyRecord is what is stored of the keys of one minion: cleaned PEM texts, empty if there is none.
type KeyRecord struct {
	ID                                  string
	Accepted, Pending, Rejected, Denied string
	// Changed is the time of the last change. Epoch counts the changes, Generation how often the minion got new
	// session keys.
	Changed           time.Time
	Epoch, Generation int64
}

// A Secret is one version of something that only masters may know.
type Secret struct {
	Name    string
	Version int64
	Created time.Time
	Body    []byte
}
