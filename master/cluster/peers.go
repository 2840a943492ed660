package cluster

import (
	"context"
	"time"

	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/sessions"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
)

// Peers are the other masters as one master sees them: Alone or Several. The methods are called from many goroutines.
type Peers interface {
	// Name tells this master from the others; it is empty for a master alone.
	Name() string
	// Secrets returns what the masters keep secret together.
	Secrets() Secrets
	// Run follows the others, and reports what happens here, until ctx ends. Alone returns at once.
	Run(ctx context.Context)
	// Maintain renews what masters share. It reports whether the housekeeping of the store is this master's.
	Maintain(ctx context.Context, now time.Time) bool
	// Masters returns the names of the masters that are there, this one's too, sorted; none for a master alone.
	Masters(ctx context.Context) ([]string, error)
	// FirstTime reports whether no master took a request before. Only requests that change something are remembered:
	// others may be repeated by anybody who recorded them, but only the minion can read the answer. A return of a job
	// is stored once anyway.
	FirstTime(ctx context.Context, v protocol.Verified) (bool, error)
	// Publish hands jobs to the minions of other masters, all in one transaction of the store. A job that cannot be
	// sealed does not keep back the others.
	Publish(ctx context.Context, list ...Publication) error
	// SaveOrder stores an order and tells the others that it waits for minions. If this master dies now, one of them
	// delivers it.
	SaveOrder(ctx context.Context, o store.Order, list []store.Delivery, ids []string) error
	// SaveReturn stores a return, and tells the others of it if it is the first, as it reports.
	SaveReturn(ctx context.Context, r store.Return) (first bool, err error)
	// TellReturn tells the others of a return that is not stored.
	TellReturn(ctx context.Context, jid, id string, load map[string]any) error
}

// Publication is a job for the minions of other masters.
type Publication struct {
	Job map[string]any
	// To names one master; empty means all others.
	To string
	// IDs may fetch the job, Topics are whose connections get it; nil means everybody.
	IDs, Topics []string
	// NoCache says that the returns are not to be stored.
	NoCache bool
}

// Secrets are what a master seals and opens with. Masters of a cluster share them.
type Secrets interface {
	// Sealer returns what seals the content of orders in the store.
	Sealer() (content.Sealer, error)
	// Rotate replaces the key of publishes, which the KeyHolder gets.
	Rotate(ctx context.Context) error
	// Session returns what is known of a minion's session, nil if it has none.
	Session(id string) *sessions.Session
	// OpenRequest opens the request of a minion with this accepted key. In a cluster the session may have begun at
	// another master.
	OpenRequest(e protocol.Envelope, s *sessions.Session,
		pub *crypt.PublicKey) (protocol.Verified, error)
	// IssueSession returns the session key of a minion that has just signed in with this accepted key.
	IssueSession(id string, pub *crypt.PublicKey) (*crypt.Key, error)
	// OutdateSession ends a session whose minion sent a request of a time that cannot be judged. It gets another key at
	// its next sign-in, under which recordings are worthless.
	OutdateSession(id string, s *sessions.Session)
}

// Host is the master that takes what other masters tell. Its methods are called one at a time, but for Here and
// Connected.
type Host interface {
	// PublishHere sends a job of another master to the minions of this one.
	PublishHere(p Publication) error
	// OrderedElsewhere takes notice of an order that another master stored, for ids, of which some are connected to it.
	OrderedElsewhere(ids, connected []string)
	// HeardElsewhere takes notice of a return that another master got; load is nil if it is in the store only. It
	// reports whether that was the answer to a probe, which is of no interest to anybody else.
	HeardElsewhere(id string, load map[string]any) (probe bool)
	// Awaits reports whether the returns of a job are awaited here.
	Awaits(jid string) bool
	// ReturnedElsewhere takes a return that another master got.
	ReturnedElsewhere(jid, id string, load map[string]any)
	// DeletedElsewhere forgets what is kept of a minion whose key another master, or a program, deleted: the next one
	// of this name may be another machine.
	DeletedElsewhere(id string)
	// CatchUp reads what is awaited here from the store: messages were missed.
	CatchUp(ctx context.Context)
	// Dismiss lets minions that are connected, but whose keys are gone, notice that the key of publishes is another
	// one.
	Dismiss()
	// Here reports whether a minion is known to be connected to this master.
	Here(id string) bool
	// Connected returns the minions that this master tells the others of, as a set of the caller's.
	Connected() map[string]struct{}
}
