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

// Peers are the other masters of a cluster: Alone or Several. The methods are safe for concurrent use.
type Peers interface {
	// Name is this master's name in the cluster; it is empty for a single master.
	Name() string
	// Secrets returns the secrets that the masters share.
	Secrets() Secrets
	// Run handles messages of the peers and sends them this master's events, until ctx ends. Alone returns at
	// once.
	Run(ctx context.Context)
	// Maintain renews what the masters share. It reports whether this master does the maintenance of the store.
	Maintain(ctx context.Context, now time.Time) bool
	// Masters returns the names of the live masters including this one, sorted; nil for a single master.
	Masters(ctx context.Context) ([]string, error)
	// FirstTime reports whether no master has accepted a request before. Only requests that change something
	// are recorded. Others can be replayed by anyone who recorded them, but only the minion can read the reply.
	// A return of a job is stored only once anyway.
	FirstTime(ctx context.Context, v protocol.Verified) (bool, error)
	// Publish sends jobs to the minions of peers, in one transaction of the store. A job that cannot be sealed
	// does not hold back the others.
	Publish(ctx context.Context, list ...Publication) error
	// SaveOrder stores an order and notifies the peers, so that one of them delivers it if this master dies
	// now.
	SaveOrder(ctx context.Context, o store.Order, list []store.Delivery, ids []string) error
	// SaveReturn stores a return and reports whether it is the first one. If so, it notifies the peers.
	SaveReturn(ctx context.Context, r store.Return) (first bool, err error)
	// TellReturn sends the peers a return that is not stored.
	TellReturn(ctx context.Context, jid, id string, load map[string]any) error
}

// Publication is a job for minions of peer masters.
type Publication struct {
	Job map[string]any
	// To is the name of one master; empty means all others.
	To string
	// IDs are the minions that may fetch the job. Topics are the minions whose connections receive it; nil
	// means all.
	IDs, Topics []string
	// NoCache does not store the job's returns.
	NoCache bool
}

// Secrets are the keys for sealing and opening messages. The masters of a cluster share them.
type Secrets interface {
	// Sealer returns the sealer for the content of orders in the store.
	Sealer() (content.Sealer, error)
	// Rotate replaces the shared key and passes it to the KeyHolder.
	Rotate(ctx context.Context) error
	// Session returns the state of a minion's session, or nil if it has none.
	Session(id string) *sessions.Session
	// OpenRequest opens a request of the minion with this accepted key. In a cluster the session may come from
	// a peer.
	OpenRequest(e protocol.Envelope, s *sessions.Session,
		pub *crypt.PublicKey) (protocol.Verified, error)
	// IssueSession returns the session key for a minion that has just signed in with this accepted key.
	IssueSession(id string, pub *crypt.PublicKey) (*crypt.Key, error)
	// OutdateSession ends the session of a minion whose request has an implausible time. At its next sign-in
	// the minion gets another key, which makes recorded requests worthless.
	OutdateSession(id string, s *sessions.Session)
}

// Host is the master that handles messages of its peers. One method is called at a time, except Here and
// Connected.
type Host interface {
	// PublishHere sends a peer's job to the minions of this master.
	PublishHere(p Publication) error
	// OrderedElsewhere handles a new order that a peer stored, for ids. connected are those of them that are
	// connected to the peer.
	OrderedElsewhere(ids, connected []string)
	// HeardElsewhere handles a return that a peer received; load is nil if it is only in the store. It reports
	// whether the return answers a probe, which needs no further handling.
	HeardElsewhere(id string, load map[string]any) (probe bool)
	// Awaits reports whether the returns of a job are awaited here.
	Awaits(jid string) bool
	// ReturnedElsewhere delivers a return that a peer received.
	ReturnedElsewhere(jid, id string, load map[string]any)
	// DeletedElsewhere drops cached data of a minion whose key was deleted by a peer or another program,
	// because the next minion of this id may be another machine.
	DeletedElsewhere(id string)
	// CatchUp reads awaited returns from the store after messages were missed.
	CatchUp(ctx context.Context)
	// Dismiss makes connected minions whose keys were removed notice that the shared key has changed.
	Dismiss()
	// Here reports whether a minion is known to be connected to this master.
	Here(id string) bool
	// Connected returns the set of connected minions to report to peers. The set belongs to the caller.
	Connected() map[string]struct{}
}
