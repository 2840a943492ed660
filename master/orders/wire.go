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

// Wire is how orders reach minions. The master implements it; tests have one with a clock and no sockets.
// Its methods are called from many goroutines. Where and KnowsPeer are called while a lock is held, so
// they must not call back.
type Wire interface {
	// Send publishes jobs. What is for other masters is told to them in one transaction of the store.
	Send(ctx context.Context, list ...Parcel) error
	// Probe asks minions whether they listen, over this master's own connections or, in a cluster, over
	// those of all. It returns the ids that have no accepted key, which it does not ask. That a master
	// does not serve is no error.
	Probe(ctx context.Context, ids []string, local bool) (unaccepted []string, err error)
	// Ask calls a function on minions and returns the answers that come until ctx ends. The minions in
	// Here are asked over this master's own connections, the others over those of all masters.
	Ask(ctx context.Context, q Question) map[string]Answer
	// Where reports which master has a connection of a minion.
	Where(id string) Place
	// KnowsPeer reports whether another master of this name is alive.
	KnowsPeer(name string) bool
	// Adopt takes a return that a minion had kept, as if it had just sent it. It returns false if that is
	// not one, or cannot be stored.
	Adopt(ctx context.Context, jid, id string, load map[string]any) bool
}

// Parcel is a job for some minions, and the way that it takes to them.
type Parcel struct {
	Job map[string]any
	IDs []string
	// Here sends it over this master's own connections. Else it goes over those of the master that Via names, or of all
	// others if Via is empty.
	Here bool
	Via  string
}

// Question is a function that minions are to call for the master.
type Question struct {
	Fun          any
	Arg          []any
	Here, Others []string
}

// Answer is what a minion said to a question, and over which master's connection it was asked, "" if over those of all.
type Answer struct {
	Value any
	Via   string
}

// Place is where a minion is connected, as far as this master knows.
type Place int

const (
	// Unknown: no master knows a connection of the minion.
	Unknown Place = iota
	// Here: it is connected to this master.
	Here
	// Elsewhere: it is connected to another master of the cluster.
	Elsewhere
)

// Options of a Deliverer. All fields must be set that do not say otherwise.
type Options struct {
	Wire   Wire
	Queue  store.Queue
	Store  store.Store // for returns, and which jobs a minion got
	Events *events.Bus
	Log    *slog.Logger
	// Content opens the sealed arguments of orders; nil if the store cannot keep any.
	Content *content.Carrier
	// ID names the master in the store, Name tells it from others of a cluster; Name is empty for a master alone.
	ID, Name string
	// Timeout is how soon a delivery that was sent is looked after, GatherTimeout how long minions may
	// take to answer, and LostAfter how long one may be silent before its jobs count as lost.
	Timeout, GatherTimeout, LostAfter time.Duration
	// MaxUnfinished and MaxUnfinishedTenant bound the open deliveries, of all and of one tenant; below 0 is no bound.
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

// Queue is where the orders are kept.
func (d *Deliverer) Queue() store.Queue { return d.q }

// several reports whether this is one of several masters that share the store.
func (d *Deliverer) several() bool { return d.opts.Name != "" }

// here reports whether a minion is connected to this master.
func (d *Deliverer) here(id string) bool { return d.opts.Wire.Where(id) == Here }

// elsewhere reports whether a minion is connected to another master only.
func (d *Deliverer) elsewhere(id string) bool { return d.opts.Wire.Where(id) == Elsewhere }
