// Package signin decides about sign-ins: whether a minion's key is accepted, and what an accepted minion
// receives. Salt's source is salt/channel/server.py, _auth.
//
//	request ──► within the limits of its source, or of its accepted key ──► a slot, a turn
//	                                                                          │
//	    refused: id, key, master full ◄───────────────────────────────────────┤
//	                                                                          ▼
//	    acceptors before the token ──► join token ──► other acceptors ──► policy ──► key store
//	                                                                          │
//	    accepted: session key, shared key ◄───────────────────────────────────┘
package signin

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/subscribers"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
)

// authAtOnce is how many sign-ins are in progress at once. Most of them wait for the disk or the database, with
// one thread each, which stores the keys of several together.
const authAtOnce = 16

// knownRate and knownBurst limit the sign-ins per accepted key from an address that exceeds its own limit, in
// sign-ins per second and at once. A minion signs in every ten seconds at most.
const knownRate, knownBurst = 0.5, 5

// Sessions issues session keys.
type Sessions interface {
	// IssueSession returns the session key of a minion that has just signed in with this accepted key.
	IssueSession(id string, pub *crypt.PublicKey) (*crypt.Key, error)
}

// Network is the master's connections to minions.
type Network interface {
	// PublishKey returns the shared key for a minion that signs in from peer.
	PublishKey(ctx context.Context, peer, id string) (*crypt.Key, error)
	// Crowded reports whether more than most minions are connected, and this one is not.
	Crowded(id string, most int) bool
}

// Records are the announced minions.
type Records interface {
	// Announced reports whether a minion was announced, and for which tenant.
	Announced(ctx context.Context, id string) (tenant string, announced bool, err error)
	// JudgeToken checks the token with which a minion was announced. It abstains if the minion sends none.
	JudgeToken(ctx context.Context, r protocol.AuthRequest) (Verdict, error)
	// Joined reports that a minion has joined.
	Joined(ctx context.Context, id string)
}

// CloneWatch detects ids used by several hosts.
type CloneWatch interface {
	// SignedIn reports from which address a minion signed in.
	SignedIn(id, peer string)
}

// Contacts is notified of signs of life of minions.
type Contacts interface {
	// Contact reports that a minion has signed in.
	Contact(id string)
}

// Counts counts sign-ins.
type Counts interface {
	// CountSignIn counts a sign-in by outcome.
	CountSignIn(act string)
}

// Options configure a Desk.
type Options struct {
	Identity protocol.AuthIdentity
	Keys     *keys.Store
	// Policy accepts or rejects new keys without an operator, if every acceptor abstains.
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
	// Rate and Burst limit the sign-ins per source, per second and at once; below 0 means no limit.
	Rate, Burst float64
	// MaxMinions turns new ids away while more are connected; 0 means no limit.
	MaxMinions int
	// FIPS refuses algorithms that FIPS mode does not allow.
	FIPS bool
	// NoEvents fires no salt/auth events.
	NoEvents bool
	// EventGrains are the acts (accept, pend, denied …) whose salt/auth events contain the autosign_grains of the
	// sign-in. Anybody who reaches the port can send these.
	EventGrains []string
}

// Desk handles sign-ins.
type Desk struct {
	Options
	bySource *ratelimit.Limiter
	// byKnown limits sign-ins of accepted minions whose address exceeds its limit, by id.
	byKnown   *ratelimit.Limiter
	newcomers *subscribers.Newcomers
	slots     chan struct{} // one element per sign-in in progress
	turns     chan struct{} // one element per sign-in in progress that is not storing a key
	waiting   atomic.Int64  // includes those that wait for a slot
}

// New returns a Desk.
func New(o Options) *Desk {
	return &Desk{Options: o, bySource: ratelimit.New(o.Rate, o.Burst),
		byKnown:   ratelimit.New(knownRate, knownBurst),
		newcomers: subscribers.NewNewcomers(o.Rate < 0), slots: make(chan struct{}, authAtOnce),
		turns: make(chan struct{}, max(2, runtime.GOMAXPROCS(0)))}
}

// Busy reports whether sign-ins are queued.
func (d *Desk) Busy() bool { return d.waiting.Load() > int64(cap(d.turns)) }

// isAccepted reports whether a key of an id is accepted.
func (d *Desk) isAccepted(id string) bool { return d.Keys.State(id) == keys.Accepted }

// SignIn answers a sign-in request. It returns false if the request must not be answered. The steps are in
// Salt's order (salt/channel/server.py, _auth).
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
		d.Log.Log(ctx, d.Hourly.LevelFrom(peer, "algorithm", slog.LevelInfo),
			"Sign-in with unknown algorithm", "peer", peer, "err", err)
		return protocol.BadAlgorithm(alg.Which), true
	case err != nil:
		d.Log.Log(ctx, d.Hourly.LevelFrom(peer, "request", slog.LevelInfo),
			"Bad sign-in request", "peer", peer, "err", err)
		return protocol.ReplyText(err), true
	}
	if d.FIPS {
		for _, a := range [][2]string{{"enc", r.EncAlgo}, {"sig", r.SigAlgo}} {
			if !crypt.FIPS(a[1]) {
				d.Log.Log(ctx, d.Hourly.LevelFrom(peer, "fips", slog.LevelInfo),
					"Sign-in with an algorithm that FIPS mode does not allow",
					"minion", r.ID, "peer", peer, "algorithm", a[1])
				return protocol.BadAlgorithm(a[0]), true
			}
		}
	}
	// All that follows costs an RSA signature. As many run at once as there are processors. While one stores
	// its key, another computes.
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
	if transport.Left(ctx) {
		// It asks again on another connection. When thousands sign in at once, and each asks again before its
		// turn comes, the master would only compute answers that reach no minion.
		d.Log.Debug("Sign-in dropped: the minion no longer waits", "minion", r.ID, "peer", peer)
		return nil, false
	}
	reply, err := d.decideKey(ctx, peer, r, publishPort)
	if err != nil {
		d.Log.Error("Cannot answer sign-in", "minion", r.ID, "peer", peer, "err", err)
		return nil, false
	}
	return reply, true
}

// knownID returns the id of a sign-in whose key is the accepted one for that id, or "". Such a minion is served
// although others flood from its address or NAT. It only compares the texts of keys, before any computation.
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

// storeAside runs store without holding a turn, so that another sign-in can compute.
func (d *Desk) storeAside(store func() error) error {
	<-d.turns
	defer func() { d.turns <- struct{}{} }() // held to compute only: a short wait
	return store()
}

// decideKey decides about a key and returns the reply.
func (d *Desk) decideKey(ctx context.Context, peer string, r protocol.AuthRequest,
	publishPort int) (map[string]any, error) {
	log := d.Log.With("minion", r.ID, "peer", peer)
	if err := protocol.ValidID(r.ID); err != nil {
		d.Log.Log(ctx, d.Hourly.LevelFrom(peer, "id", slog.LevelInfo), "Sign-in refused",
			"peer", peer, "err", err)
		return r.Refuse(d.Identity, false)
	}
	// guard: confusing-ids master:TestConfusingIDs
	if err := protocol.ConfusingID(r.ID); err != nil && !d.isAccepted(r.ID) {
		log.Log(ctx, d.Hourly.Level(r.ID, "id", slog.LevelWarn),
			"Sign-in refused: a new minion may not have this id", "err", err)
		return r.Refuse(d.Identity, false)
	}
	if r.PubErr != nil {
		log.Log(ctx, d.Hourly.Level(r.ID, "unusable", slog.LevelInfo),
			"Sign-in refused: unusable key", "err", r.PubErr)
		return r.Refuse(d.Identity, false)
	}
	if d.isFull(r.ID) {
		log.Log(ctx, d.Hourly.Level(r.ID, "full", slog.LevelWarn),
			"Sign-in refused: too many minions", "max_minions", d.MaxMinions)
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
		log.Log(ctx, d.Hourly.Level(r.ID, "pending", slog.LevelWarn),
			"Key was not stored: too many keys wait for acceptance")
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

// maxEventGrains is how many bytes of grains, as they are encoded, an event of a sign-in may contain. Anybody who
// reaches the port can send them, and each listener and the log of events gets a copy.
const maxEventGrains = 16 << 10

// tellSignIn counts a sign-in and fires salt/auth.
func (d *Desk) tellSignIn(r protocol.AuthRequest, act string, result bool) {
	d.Counts.CountSignIn(act)
	if d.NoEvents {
		return
	}
	data := map[string]any{"act": act, "result": result, "id": r.ID, "pub": r.PubText}
	if len(r.AutosignGrains) > 0 && slices.Contains(d.EventGrains, act) {
		b, err := payload.Marshal(r.AutosignGrains)
		// guard: event-grains TestEventGrainsAreBounded instead: err == nil && len(b) > 0
		if err == nil && len(b) <= maxEventGrains {
			data["autosign_grains"] = r.AutosignGrains
		}
	}
	d.Events.Publish("salt/auth", data)
}

// isFull reports whether max_minions turns an id away. As in Salt, that is if more than so many minions are
// connected, and not this one.
func (d *Desk) isFull(id string) bool {
	return d.MaxMinions > 0 && d.Network.Crowded(id, d.MaxMinions)
}
