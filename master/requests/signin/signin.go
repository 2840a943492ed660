// Package signin decides about sign-ins: whether a minion's key is accepted, and what an accepted minion is told.
// Salt's source is salt/channel/server.py, _auth.
//
//	request ──► within the limits of its source, or of its accepted key ──► a slot, a turn
//	                                                                          │
//	    refused: id, key, full house ◄────────────────────────────────────────┤
//	                                                                          ▼
//	    acceptors before the token ──► join token ──► other acceptors ──► policy ──► key store
//	                                                                          │
//	    accepted: session key, key of publishes ◄─────────────────────────────┘
package signin

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/subscribers"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
)

// authAtOnce is how many sign-ins are under way at one time. Most of them wait for the disk, or the database, each with
// a thread, which store the keys of several together.
const authAtOnce = 16

// knownRate and knownBurst bound the sign-ins with one accepted key that come from an address which is over its own
// limit, in sign-ins a second and at once. A minion asks every ten seconds at most.
const knownRate, knownBurst = 0.5, 5

// Sessions make the session keys of minions.
type Sessions interface {
	// IssueSession returns the session key of a minion that has just signed in with this accepted key.
	IssueSession(id string, pub *crypt.PublicKey) (*crypt.Key, error)
}

// Network is the master towards its minions.
type Network interface {
	// PublishKey returns the key of publishes that a minion which signs in from a peer may know.
	PublishKey(ctx context.Context, peer, id string) (*crypt.Key, error)
	// Connected returns how many minions are connected, and whether this one is.
	Connected(id string) (n int, known bool)
}

// Records are the minions that were announced.
type Records interface {
	// Announced reports whether a minion was announced, and for which tenant.
	Announced(ctx context.Context, id string) (tenant string, announced bool, err error)
	// JudgeToken judges the token that a minion was announced with. It has no opinion if the minion shows none.
	JudgeToken(ctx context.Context, r protocol.AuthRequest) (Verdict, error)
	// Joined hears that a minion has come.
	Joined(ctx context.Context, id string)
}

// CloneWatch looks for ids that several hosts use.
type CloneWatch interface {
	// SignedIn hears from where a minion signed in.
	SignedIn(id, peer string)
}

// Contacts hear of minions that are there.
type Contacts interface {
	// Contact hears that a minion has signed in.
	Contact(id string)
}

// Counts count sign-ins.
type Counts interface {
	// CountSignIn counts one by what became of it.
	CountSignIn(act string)
}

// Options are what a Desk needs.
type Options struct {
	Identity protocol.AuthIdentity
	Keys     *keys.Store
	// Policy says which new keys are accepted or rejected without an operator, where no acceptor has an opinion.
	Policy    keys.Policy
	Acceptors []Acceptor
	Sessions  Sessions
	Network   Network
	Records   Records
	Presence  *subscribers.Presence
	Clones    CloneWatch
	Contacts  Contacts
	Counts    Counts
	Events    *events.Bus
	Hourly    *ratelimit.HourlyLog
	Log       *slog.Logger
	// Rate and Burst bound sign-ins a second and at once of one source; below 0 is no bound.
	Rate, Burst float64
	// MaxMinions turns new ids away when more are connected; 0 is no bound.
	MaxMinions int
	// FIPS refuses algorithms that FIPS mode does not allow.
	FIPS bool
	// NoEvents fires no salt/auth.
	NoEvents bool
}

// Desk decides about sign-ins.
type Desk struct {
	Options
	bySource *ratelimit.Limiter
	// byKnown bounds sign-ins of accepted minions whose address is over its limit, by id.
	byKnown   *ratelimit.Limiter
	newcomers *subscribers.Newcomers
	slots     chan struct{} // one element per sign-in under way
	turns     chan struct{} // one element per sign-in under way that is not being stored
	waiting   atomic.Int64  // those that wait for a slot as well
}

// New returns a Desk.
func New(o Options) *Desk {
	return &Desk{Options: o, bySource: ratelimit.New(o.Rate, o.Burst),
		byKnown:   ratelimit.New(knownRate, knownBurst),
		newcomers: subscribers.NewNewcomers(o.Rate < 0), slots: make(chan struct{}, authAtOnce),
		turns: make(chan struct{}, max(2, runtime.GOMAXPROCS(0)))}
}

// Busy reports whether sign-ins wait for their turn.
func (d *Desk) Busy() bool { return d.waiting.Load() > int64(cap(d.turns)) }

// isAccepted reports whether a key of an id is accepted.
func (d *Desk) isAccepted(id string) bool { return d.Keys.State(id) == keys.Accepted }

// SignIn answers a sign-in request, or returns false if it must not be answered. Salt's procedure is
// salt/channel/server.py, _auth; the order of its steps is kept.
func (d *Desk) SignIn(ctx context.Context, peer string, e protocol.Envelope,
	publishPort int) (any, bool) {
	within, id := d.bySource.Allow(peer, time.Now()), d.knownID(e)
	known := id != ""
	// guard: known-keys-beside-a-flood master:TestKnownKeysHaveTheirOwnBucket instead: !within
	if !within && !(known && d.byKnown.AllowName(id, time.Now())) {
		d.Log.Debug("Sign-in refused: too many from this source", "peer", peer)
		return nil, false
	}
	r, err := protocol.ParseAuthRequest(e)
	var alg *protocol.AlgorithmError
	switch {
	case errors.As(err, &alg):
		d.Log.Info("Sign-in with unknown algorithm", "peer", peer, "err", err)
		return protocol.BadAlgorithm(alg.Which), true
	case err != nil:
		d.Log.Info("Bad sign-in request", "peer", peer, "err", err)
		return protocol.ReplyText(err), true
	}
	if d.FIPS {
		for _, a := range [][2]string{{"enc", r.EncAlgo}, {"sig", r.SigAlgo}} {
			if !crypt.FIPS(a[1]) {
				d.Log.Info("Sign-in with an algorithm that FIPS mode does not allow",
					"minion", r.ID, "peer", peer, "algorithm", a[1])
				return protocol.BadAlgorithm(a[0]), true
			}
		}
	}
	// Everything below costs an RSA signature: as many at once as there are processors, and while the keys of some are
	// stored others compute.
	d.waiting.Add(1)
	defer d.waiting.Add(-1)
	if !known {
		leave, err := d.newcomers.Enter(ctx, peer)
		if err != nil {
			d.Log.Debug("Sign-in refused", "peer", peer, "err", err)
			return nil, false
		}
		defer leave()
	}
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return nil, false
	}
	d.turns <- struct{}{}
	defer func() { <-d.turns }()
	reply, err := d.decideKey(ctx, peer, r, publishPort)
	if err != nil {
		d.Log.Error("Cannot answer sign-in", "minion", r.ID, "peer", peer, "err", err)
		return nil, false
	}
	return reply, true
}

// knownID returns the id of a sign-in that shows the key which is accepted for it, or "". Such a minion is served
// though others flood from its address, or from behind the same NAT. Nothing is computed for it before: the texts of
// keys are compared.
func (d *Desk) knownID(e protocol.Envelope) string {
	load, _ := payload.Map(e.Load)
	id, _ := payload.Text(load["id"])
	pub, _ := payload.Text(load["pub"])
	if protocol.ValidID(id) != nil || pub == "" {
		return ""
	}
	known, err := d.Keys.Get(id, keys.Accepted)
	if err != nil || known.Text != crypt.CleanKey(pub) {
		return ""
	}
	return id
}

// storeAside stores a key for a sign-in, while another one computes in its place.
func (d *Desk) storeAside(store func() error) error {
	<-d.turns
	defer func() { d.turns <- struct{}{} }() // which only some wait for, not for long
	return store()
}

// decideKey returns what a minion is answered.
func (d *Desk) decideKey(ctx context.Context, peer string, r protocol.AuthRequest,
	publishPort int) (map[string]any, error) {
	log := d.Log.With("minion", r.ID, "peer", peer)
	if err := protocol.ValidID(r.ID); err != nil {
		d.Log.Info("Sign-in refused", "peer", peer, "err", err)
		return r.Refuse(d.Identity, false)
	}
	// guard: confusing-ids master:TestConfusingIDs
	if err := protocol.ConfusingID(r.ID); err != nil && !d.isAccepted(r.ID) {
		log.Log(ctx, d.Hourly.Level(r.ID, "id", slog.LevelWarn),
			"Sign-in refused: a new minion may not have this id", "err", err)
		return r.Refuse(d.Identity, false)
	}
	if r.PubErr != nil {
		log.Info("Sign-in refused: unusable key", "err", r.PubErr)
		return r.Refuse(d.Identity, false)
	}
	if d.isFull(r.ID) {
		log.Warn("Sign-in refused: too many minions", "max_minions", d.MaxMinions)
		d.tellSignIn(r, "full", false)
		return r.Refuse(d.Identity, "full")
	}
	decision, err := d.judge(ctx, peer, r)
	if err != nil {
		return nil, err
	}
	policy := d.Policy
	switch decision {
	case Reject:
		d.tellSignIn(r, "reject", false)
		return r.Refuse(d.Identity, false)
	case Accept:
		policy.Proven = true
	case hold:
		policy.Hold = true
	}
	var v keys.Verdict
	var session *crypt.Key
	err = d.storeAside(func() (err error) {
		if v, err = d.Keys.SignIn(r.ID, r.PubText, policy, r.AutosignGrains); err == nil &&
			v.State == keys.Accepted {
			session, err = d.Sessions.IssueSession(r.ID, r.Pub)
		}
		return err
	})
	if errors.Is(err, keys.ErrPendingFull) {
		log.Warn("Key was not stored: too many keys wait for acceptance")
	} else if err != nil {
		return nil, err
	}
	switch v.State {
	case keys.Accepted:
	case keys.Pending:
		if v.Stored {
			log.Info("New key waits for acceptance")
			if !protocol.PlainID(r.ID) {
				log.Warn("The id of a new minion has characters that a shell interprets " +
					"or that look like others: quote it in commands")
			}
		}
		d.tellSignIn(r, "pend", true)
		return r.Refuse(d.Identity, true)
	case keys.Denied:
		log.Log(ctx, d.Hourly.Level(r.ID, "denied", slog.LevelWarn),
			"Sign-in with another key than the one that is known", "stored", v.Stored)
		d.tellSignIn(r, "denied", false)
		return r.Refuse(d.Identity, protocol.Denied)
	default:
		log.Log(ctx, d.Hourly.Level(r.ID, "rejected", slog.LevelInfo),
			"Sign-in refused: key is rejected")
		d.tellSignIn(r, "reject", false)
		return r.Refuse(d.Identity, false)
	}
	key, err := d.Network.PublishKey(ctx, peer, r.ID)
	if err != nil {
		return nil, err
	}
	reply, err := r.Accept(d.Identity, key, session, publishPort)
	if err != nil {
		return nil, err
	}
	log.Debug("Minion signed in", "auto", v.Auto)
	d.Presence.Saw(r.ID, time.Now())
	d.tellSignIn(r, "accept", true)
	d.Clones.SignedIn(r.ID, peer)
	d.Records.Joined(ctx, r.ID)
	d.Contacts.Contact(r.ID)
	return reply, nil
}

// tellSignIn counts a sign-in and fires salt/auth.
func (d *Desk) tellSignIn(r protocol.AuthRequest, act string, result bool) {
	d.Counts.CountSignIn(act)
	if d.NoEvents {
		return
	}
	d.Events.Publish("salt/auth", map[string]any{"act": act, "result": result, "id": r.ID,
		"pub": r.PubText})
}

// isFull reports whether max_minions turns an id away. Salt's condition: more than so many are connected, and not this
// one.
func (d *Desk) isFull(id string) bool {
	if d.MaxMinions <= 0 {
		return false
	}
	n, known := d.Network.Connected(id)
	return n > d.MaxMinions && !known
}
