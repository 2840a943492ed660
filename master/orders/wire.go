package orders

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/events"
)

// Wire is the interface through which orders reach minions. The master implements it; tests use one with a
// clock and no sockets. Its methods are called concurrently. Where and KnowsPeer are called with a lock held,
// so they must not call back.
type Wire interface {
	// Send publishes jobs. Those for peer masters are passed to them in one transaction of the store.
	Send(ctx context.Context, list ...Parcel) error
	// Probe asks minions whether they listen, over this master's own connections or, in a cluster, over those
	// of all masters. It returns the ids without an accepted key, which it does not probe. It returns no error
	// if a master is not serving.
	Probe(ctx context.Context, ids []string, local bool) (unaccepted []string, err error)
	// Ask calls a function on minions and returns the answers received until ctx ends. Minions in Here are
	// asked over this master's own connections, the others over those of all masters.
	Ask(ctx context.Context, q Question) map[string]Answer
	// Where reports which master has a minion's connection.
	Where(id string) Place
	// KnowsPeer reports whether the peer master of this name is alive.
	KnowsPeer(name string) bool
	// Adopt handles a minion's cached return as if it had just arrived. It returns false if load is not a
	// return or cannot be stored.
	Adopt(ctx context.Context, jid, id string, load map[string]any) bool
}

// Parcel is a job for some minions, and the way to send it.
type Parcel struct {
	Job map[string]any
	IDs []string
	// Here sends it over this master's own connections. Otherwise it goes over those of the master named by
	// Via, or of all peers if Via is empty.
	Here bool
	Via  string
}

// Question is a function call by which the master queries minions.
type Question struct {
	Fun          any
	Arg          []any
	Here, Others []string
}

// Answer is a minion's answer to a question. Via is the master over whose connection it was asked, or "" if
// over those of all.
type Answer struct {
	Value any
	Via   string
}

// Place is where a minion is connected, as far as this master knows.
type Place int

const (
	// Unknown means that no master knows a connection of the minion.
	Unknown Place = iota
	// Here means that it is connected to this master.
	Here
	// Elsewhere means that it is connected to a peer master.
	Elsewhere
)

// Options configure a Deliverer. All fields are required unless they say otherwise.
type Options struct {
	Wire   Wire
	Queue  store.Queue
	Store  store.Store // for returns, and the minions of a job
	Events *events.Bus
	Log    *slog.Logger
	// Content opens the sealed arguments of orders; nil if the store cannot keep content.
	Content *content.Carrier
	// ID is the master's name in the store. Name is its name in the cluster; it is empty for a single master.
	ID, Name string
	// Timeout is how soon the status of a sent delivery is queried, GatherTimeout how long minions have to
	// answer, and LostAfter how long a minion may be silent before its jobs count as lost.
	Timeout, GatherTimeout, LostAfter time.Duration
	// MaxUnfinished and MaxUnfinishedTenant limit the open deliveries, in total and per tenant; below 0 means
	// no limit. A MaxUnfinishedTenant of 0 means as many as are free of MaxUnfinished besides.
	MaxUnfinished, MaxUnfinishedTenant int
}

// New returns a Deliverer, which delivers while Run runs.
func New(o Options) *Deliverer {
	d := &Deliverer{opts: o, q: o.Queue, owner: o.ID + "/" + rand.Text(),
		epoch: time.Now().Add(-time.Hour), wake: make(chan struct{}, 1),
		tenants: make(map[string]*backlog), peers: peers{byID: make(map[string]*peer)},
		watchers: make(map[string][]chan struct{})}
	d.minions, _ = store.MinionsOf(o.Store)
	return d
}

// Queue returns the store of orders.
func (d *Deliverer) Queue() store.Queue { return d.q }

// several reports whether this master is in a cluster.
func (d *Deliverer) several() bool { return d.opts.Name != "" }

// here reports whether a minion is connected to this master.
func (d *Deliverer) here(id string) bool { return d.opts.Wire.Where(id) == Here }

// elsewhere reports whether a minion is connected to another master only.
func (d *Deliverer) elsewhere(id string) bool { return d.opts.Wire.Where(id) == Elsewhere }
