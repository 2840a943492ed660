package store

import (
	"context"
	"time"
)

// Shared is a store over which several equal masters work at once: besides jobs and returns it has what they must agree about. Every
// change is a compare-and-swap, so that any master may do anything at any time and any of them may die. Package sqlstore has one;
// package sharedtest is its suite.
type Shared interface {
	Store

	// SaveReturnTell is SaveReturn, and tells the other masters a message if the return was the first: both or neither.
	SaveReturnTell(ctx context.Context, r Return, m Message) (first bool, err error)
	// SaveOrderTell is Queue.SaveOrder, and tells the other masters a message: both or neither.
	SaveOrderTell(ctx context.Context, o Order, deliveries []Delivery, m Message) error
	// Return returns one minion's answer to a job. ErrNotFound.
	Return(ctx context.Context, jid, id string) (Return, error)

	// Tell tells messages to the other masters, in this order.
	Tell(ctx context.Context, m ...Message) error
	// Follow calls f with what other masters tell, everything once and in one order, from now on and until ctx ends. Where a
	// message could not be kept long enough for this master, f is called with none and knows that it missed some.
	Follow(ctx context.Context, self string, f func([]Message)) error

	// Key returns the keys of an id; none are a record with Epoch 0.
	Key(ctx context.Context, id string) (KeyRecord, error)
	// SwapKey replaces the record that was read with this Epoch, and says whether nobody was quicker. m is told with it.
	SwapKey(ctx context.Context, r KeyRecord, m Message) (bool, error)
	// KeyIDs lists the ids with a key under a state, by Salt's folder name, sorted.
	KeyIDs(ctx context.Context, folder string) ([]string, error)
	// KeyCount is how many that are.
	KeyCount(ctx context.Context, folder string) (int, error)
	// KeyVersion changes whenever any key does.
	KeyVersion(ctx context.Context) (int64, error)

	// Secrets returns the versions of a secret, oldest first. Their bodies are sealed by the caller.
	Secrets(ctx context.Context, name string) ([]Secret, error)
	// AddSecret stores a version of a secret unless it is there, and says whether it did.
	AddSecret(ctx context.Context, s Secret, m Message) (bool, error)
	// DropSecrets forgets versions below one.
	DropSecrets(ctx context.Context, name string, below int64) error

	// Lease gives the owner a lease for a time, if nobody else has it; the owner's own is prolonged.
	Lease(ctx context.Context, name, owner string, life time.Duration) (bool, error)
	// Release gives a lease back.
	Release(ctx context.Context, name, owner string) error
	// Leases lists the leases that have not ended and whose names begin with a prefix: owners by name.
	Leases(ctx context.Context, prefix string) (map[string]string, error)

	// Once says whether something happens for the first time: it is remembered until PurgeShared.
	Once(ctx context.Context, scope string, mark []byte) (bool, error)

	// Datum returns what is remembered under a kind and an id, with its epoch; nothing is nil and 0.
	Datum(ctx context.Context, kind, id string) (body []byte, epoch int64, err error)
	// SetDatum replaces it: only the epoch that was read, or any if epoch is below 0; a nil body forgets it.
	SetDatum(ctx context.Context, kind, id string, body []byte, epoch int64) (bool, error)
	// DatumIDs lists the ids of a kind, sorted.
	DatumIDs(ctx context.Context, kind string) ([]string, error)

	// PurgeShared forgets messages and marks older than the times, and the oldest messages beyond a number; 0 is no bound.
	PurgeShared(ctx context.Context, messages, marks time.Time, most int) error
}

// Message is what one master tells the others. Seq counts them without gaps.
type Message struct {
	Seq int64
	// From and To name masters; an empty To is all others.
	From, To string
	Kind     string
	Body     []byte
}

// KeyRecord is what is stored of the keys of one minion: cleaned PEM texts, empty where there is none.
type KeyRecord struct {
	ID                                  string
	Accepted, Pending, Rejected, Denied string
	// Changed is when; Epoch counts the changes, Generation the session keys that the minion was given anew.
	Changed           time.Time
	Epoch, Generation int64
}

// Secret is one version of something that only masters may know.
type Secret struct {
	Name    string
	Version int64
	Created time.Time
	Body    []byte
}
