package store

import (
	"context"
	"errors"
	"time"
)

// ErrChanged says that somebody else changed a record since it was read: read it again and decide anew.
var ErrChanged = errors.New("record was changed by somebody else")

// Order is a job that is kept until each of its minions has run it or never will.
type Order struct {
	// ID is the caller's name for it, at most MaxOrderID bytes. No two orders have the same.
	ID string
	// JID is the job id under which it is published and its returns are stored.
	JID string
	// Tenant is on whose behalf it runs; empty where there are none.
	Tenant string
	// Spec is what the master publishes. Stores keep it and do not look into it.
	Spec    map[string]any
	Created time.Time
	// Content is the key of the pieces that the order carries, empty if there are none; see Contents.
	Content string
	// Labels are what the order can be found by, at most MaxLabels; see Labels.
	Labels map[string]string
}

// MaxLabels is how many labels an order may have.
const MaxLabels = 256

// MaxOrderID is how long the id of an order may be, in bytes.
const MaxOrderID = 255

// State is where a delivery stands.
type State string

// The states of a delivery. All but the first two are final.
const (
	Waiting       State = "waiting"       // not sent yet
	Sent          State = "sent"          // handed to the minion's connection; its return is awaited
	Returned      State = "returned"      // the return is in the store
	Undeliverable State = "undeliverable" // its time to live ended before it could be sent; it never runs
	TimedOut      State = "timed out"     // its deadline passed before it returned
	Cancelled     State = "cancelled"
	Lost          State = "lost"    // sent, and nobody knows what became of it
	Refused       State = "refused" // by a policy of the minion or of the master
)

// Open says whether the state is not final.
func (s State) Open() bool { return s == Waiting || s == Sent }

// Delivery is the way of one order to one minion. Masters that share a store change it with SwapDelivery only, so that of those who
// try to take it one succeeds.
type Delivery struct {
	JID, Minion string
	State       State
	// Priority and then JID are the order in which a minion's deliveries are sent: larger priorities first, older job ids first.
	Priority int
	// Parallel deliveries wait for no other one, nor others for them.
	Parallel bool
	// Owner is the master that works on it until Due.
	Owner string
	// Due is when any master shall look at it again; the zero time in final states.
	Due time.Time
	// Expires is the end of its time to live, Deadline when it must have returned; zero times are never.
	Expires, Deadline time.Time
	// Sent is when it was sent first, Tries how often; Ended when it became final.
	Sent  time.Time
	Tries int
	Ended time.Time
	// Running says of one that timed out or was cancelled that the minion was still at it.
	Running bool
	// Reason says in words why it ended as it did.
	Reason string
	// Carries says that the order has Content. SaveOrder sets it.
	Carries bool
	// Version counts the changes. It is 1 in a new delivery.
	Version int64
}

// DeliveryFilter chooses deliveries. Zero fields choose all.
type DeliveryFilter struct {
	JID, Minion string
	// Open leaves final ones out.
	Open bool
	// Due chooses open ones whose Due is not later.
	Due time.Time
	// Limit is how many at most; 0 means 1000.
	Limit int
}

// Queue keeps orders. Stores that can also implement it; see QueueOf. Times are kept to the microsecond.
type Queue interface {
	// SaveOrder stores an order with its deliveries, all or nothing. ErrExists when its ID or JID is taken.
	SaveOrder(ctx context.Context, o Order, deliveries []Delivery) error
	// Order returns an order by its ID, OrderOf by its job id. ErrNotFound.
	Order(ctx context.Context, id string) (Order, error)
	OrderOf(ctx context.Context, jid string) (Order, error)
	// Deliveries returns what a filter chooses: by minion, then in the order of sending; with Due, those that wait longest first.
	Deliveries(ctx context.Context, f DeliveryFilter) ([]Delivery, error)
	// CountOpen is how many deliveries are not final: all of them, or, with a tenant, those to minions announced for it.
	CountOpen(ctx context.Context, tenant string) (int, error)
	// SwapDelivery stores d in place of the one with the same JID and Minion if that has the same Version, and then
	// counts d's Version on. ErrChanged if it has another, or is final already, or is not there.
	SwapDelivery(ctx context.Context, d *Delivery) error
}

// Minion is what a master was told of a minion before it came, and has to remember about it.
type Minion struct {
	ID string
	// Tenant is whose it is; empty where there are none.
	Tenant string
	// Joined says that it has been here.
	Joined bool
	// Spec is the master's own. Stores keep it and do not look into it.
	Spec map[string]any
	// Version counts the changes. It is 0 in one that is not stored yet.
	Version int64
}

// MinionFilter chooses minions. Zero fields choose all.
type MinionFilter struct {
	// IDs chooses those of some ids; those that are not there are left out. nil is any. With it, After and Limit have no meaning.
	IDs []string
	// Tenant chooses those of one tenant.
	Tenant string
	// Absent chooses those that have not joined.
	Absent bool
	// After chooses ids behind it, which with Limit reads a long list in parts. Limit 0 is no bound.
	After string
	Limit int
}

// Minions keeps what is known of minions in advance. Stores that can also implement it; see MinionsOf.
type Minions interface {
	// Minion returns one. ErrNotFound.
	Minion(ctx context.Context, id string) (Minion, error)
	// Minions returns what a filter chooses, sorted by id.
	Minions(ctx context.Context, f MinionFilter) ([]Minion, error)
	// SwapMinion stores m in place of the one with its id if that has the same Version, and then counts m's Version on. Version 0
	// stores a new one: ErrExists if it is there. ErrChanged if the stored one has another version or is gone.
	SwapMinion(ctx context.Context, m *Minion) error
	// DeleteMinion forgets one. ErrNotFound.
	DeleteMinion(ctx context.Context, id string) error
}

// QueueOf returns the queue of a store that has one.
func QueueOf(s Store) (Queue, bool) {
	if w, ok := s.(Wrapper); ok {
		return QueueOf(w.Unwrap())
	}
	q, ok := s.(Queue)
	return q, ok
}

// MinionsOf returns what a store knows of minions, if it does.
func MinionsOf(s Store) (Minions, bool) {
	if w, ok := s.(Wrapper); ok {
		return MinionsOf(w.Unwrap())
	}
	q, ok := s.(Minions)
	return q, ok
}
