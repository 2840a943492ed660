package store

import (
	"context"
	"errors"
	"maps"
	"time"
)

// ErrChanged means that a record has changed since it was read. Read it and decide again.
var ErrChanged = errors.New("record was changed by another process")

// An Order is a job that is stored until each of its minions has run it or never will.
type Order struct {
	// ID is the caller's name for the order, at most MaxOrderID bytes. It is unique.
	ID string
	// JID is the job id under which the order is published and its returns are stored.
	JID string
	// Tenant is the tenant for whom the order runs; empty without tenants.
	Tenant string
	// Spec is what the master publishes. Stores do not interpret it.
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

// A State is the state of a delivery.
//
//	Waiting ─▶ Sent ─▶ Returned, Refused, Lost
//	   │         └──▶ TimedOut
//	   └──▶ Undeliverable, TimedOut
//
// An order can also be cancelled in both of its open states.
type State string

// The states of a delivery. All except the first two are final.
const (
	Waiting  State = "waiting"  // not sent yet
	Sent     State = "sent"     // handed to the minion's connection, no return yet
	Returned State = "returned" // the return is stored
	// its time to live ended before it could be sent; it never runs
	Undeliverable State = "undeliverable"
	TimedOut      State = "timed out" // its deadline passed before it returned
	Cancelled     State = "cancelled"
	Lost          State = "lost"    // sent, and its outcome is unknown
	Refused       State = "refused" // refused by a policy of the minion or the master
)

// Open reports whether the state is not final.
func (s State) Open() bool { return s == Waiting || s == Sent }

// A Delivery is one order on its way to one minion. Masters that share a store change it by SwapDelivery only, so
// that only one of several masters succeeds in taking it.
type Delivery struct {
	JID, Minion string
	State       State
	// Priority and then JID are the order in which a minion's deliveries are sent: larger priorities first, older
	// job ids first.
	Priority int
	// A Parallel delivery waits for no other one, and no other one waits for it.
	Parallel bool
	// Owner is the master that works on it until Due.
	Owner string
	// Due is when any master is to look at it again; the zero time in final states.
	Due time.Time
	// Expires is the end of its time to live, Deadline when it must have returned; the zero time means never.
	Expires, Deadline time.Time
	// Sent is when it was first sent, Tries how often, Ended when it became final.
	Sent  time.Time
	Tries int
	Ended time.Time
	// Running is true for a delivery that timed out or was cancelled while the minion was still running it.
	Running bool
	// Reason says in words why it ended as it did.
	Reason string
	// Carries is true if the order has Content. SaveOrder sets it.
	Carries bool
	// Version counts the changes. It is 1 in a new delivery.
	Version int64
}

// A DeliveryFilter selects deliveries. Zero fields select all.
type DeliveryFilter struct {
	JID, Minion string
	// Minions selects those of some minions. nil means any. It does not go together with Due.
	Minions []string
	// Open leaves out final deliveries.
	Open bool
	// Due selects open deliveries whose Due is not later.
	Due time.Time
	// Limit is how many to return at most; 0 means 1000.
	Limit int
}

// A Queue stores orders. Some stores implement it; see QueueOf. Times have microseconds. Every method may be
// repeated after an error whose outcome is unknown: saving the same order again is ErrExists, and a change that was
// already made is ErrChanged.
type Queue interface {
	// SaveOrder stores an order with its deliveries, all or nothing. It returns ErrExists if its ID or JID is
	// taken.
	SaveOrder(ctx context.Context, o Order, deliveries []Delivery) error
	// Order returns an order by its ID, OrderOf by its job id. It returns ErrNotFound if there is no such record.
	Order(ctx context.Context, id string) (Order, error)
	OrderOf(ctx context.Context, jid string) (Order, error)
	// Deliveries returns what a filter selects: by minion, then in the order of sending; with Due those that wait
	// longest come first.
	Deliveries(ctx context.Context, f DeliveryFilter) ([]Delivery, error)
	// CountOpen returns how many deliveries are not final: all of them, or with a tenant those to minions announced
	// for it.
	CountOpen(ctx context.Context, tenant string) (int, error)
	// SwapDelivery replaces the delivery with the same JID and Minion by d if it has the same Version, and
	// increments d's Version. It returns ErrChanged if it has another version, is final, or does not exist.
	SwapDelivery(ctx context.Context, d *Delivery) error
	// SwapDeliveries is SwapDelivery for several, with an error for each. Those that change in the same way cost little
	// more than one.
	SwapDeliveries(ctx context.Context, list []*Delivery) []error
}

// A Minion is what a master was told about a minion in advance and must remember.
type Minion struct {
	ID string
	// Tenant is the tenant that it belongs to; empty without tenants.
	Tenant string
	// Joined is true if it has connected before.
	Joined bool
	// Spec is the master's own data. Stores do not interpret it. Size is how many bytes it has in the store, which
	// sets it.
	Spec map[string]any
	Size int
	// Version counts the changes. It is 0 in one that is not stored yet.
	Version int64
}

// A MinionFilter selects minions. Zero fields select all.
type MinionFilter struct {
	// IDs selects minions by id; missing ones are left out. nil means any. With IDs, After and Limit have no
	// meaning.
	IDs []string
	// Tenant selects the minions of one tenant.
	Tenant string
	// Absent selects those that have not joined.
	Absent bool
	// NoSpec leaves Spec nil, which with large ones costs far less. Size is still set.
	NoSpec bool
	// After selects ids after it, which with Limit reads a long list in pages. A Limit of 0 means no limit.
	After string
	Limit int
}

// Minions stores what is known of minions in advance. Some stores implement it; see MinionsOf.
type Minions interface {
	// Minion returns one minion, or ErrNotFound.
	Minion(ctx context.Context, id string) (Minion, error)
	// Minions returns what a filter selects, sorted by id.
	Minions(ctx context.Context, f MinionFilter) ([]Minion, error)
	// SwapMinion replaces the minion with the same id by m if it has the same Version, and increments m's Version.
	// Version 0 stores a new one; ErrExists if it exists. ErrChanged if the stored one has another version or is
	// gone.
	SwapMinion(ctx context.Context, m *Minion) error
	// DeleteMinion removes a minion, or returns ErrNotFound.
	DeleteMinion(ctx context.Context, id string) error
}

// ErrNoMinions is returned by what needs Minions when the store has none.
var ErrNoMinions = errors.New("the store cannot keep minions")

// ChangeMinion changes what the store knows of a minion, making the record if there is none. The change gets a copy,
// reports whether there is something to change, and may be called again. Without Minions it does nothing.
func ChangeMinion(ctx context.Context, minions Minions, id string,
	change func(x *Minion) bool) error {
	if minions == nil {
		return nil
	}
	for {
		x, err := minions.Minion(ctx, id)
		if errors.Is(err, ErrNotFound) {
			x, err = Minion{ID: id}, nil
		}
		if err != nil {
			return err
		}
		if x.Spec = maps.Clone(x.Spec); x.Spec == nil {
			x.Spec = make(map[string]any)
		}
		if !change(&x) {
			return nil
		}
		err = minions.SwapMinion(ctx, &x)
		if !errors.Is(err, ErrChanged) && !errors.Is(err, ErrExists) {
			return err
		}
	}
}

// QueueOf returns the Queue of a store, or of the store that it wraps.
func QueueOf(s Store) (Queue, bool) {
	if w, ok := s.(Wrapper); ok {
		return QueueOf(w.Unwrap())
	}
	q, ok := s.(Queue)
	return q, ok
}

// MinionsOf returns the Minions of a store, or of the store that it wraps.
func MinionsOf(s Store) (Minions, bool) {
	if w, ok := s.(Wrapper); ok {
		return MinionsOf(w.Unwrap())
	}
	q, ok := s.(Minions)
	return q, ok
}
