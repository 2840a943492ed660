package cluster

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/sessions"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/subscribers"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
)

const (
	// heartbeat is the interval at which a master renews its leases, beatLife their lifetime. Every listenTick
	// a master checks whether it has event listeners.
	heartbeat  = 2 * time.Second
	listenTick = 200 * time.Millisecond
	beatLife   = 15 * time.Second
	// keepMessages is how long messages between masters are kept, maxMessages how many.
	keepMessages = 10 * time.Minute
	maxMessages  = 200_000
	// followPause is the pause after a failure to read the database.
	followPause = time.Second
	// storeTime limits a use of the database outside of any request, releaseTime the last one when a master
	// ends.
	storeTime   = 2 * time.Minute
	releaseTime = 5 * time.Second
)

// Kinds of messages between masters, besides keys.MessageKind; see doc.go. The values must not change, because
// masters of several versions may share a database.
const (
	tellPublish = "publish" // a job for the minions of every master
	tellReturn  = "return"  // a minion returned
	tellEvent   = "event"   // an event
	tellSecret  = "secret"  // a secret has a new version
	tellListen  = "listen"  // this master has event listeners
	tellExpect  = "expect"  // an order is pending for minions
	tellPresent = "present" // minions connected and disconnected, or, if full, the complete set
	tellWho     = "who"     // asks for the connected minions
)

// Prefixes of the names of leases.
const (
	leaseMaster   = "master/"
	leaseListens  = "listens/"
	leaseMaintain = "maintain"
)

// Several implements Peers for a master of a cluster.
type Several struct {
	opts    Options
	db      store.Shared
	name    string
	secrets sharedSecrets

	heard     atomic.Int64 // when peers last listened to events, in nanoseconds
	listening bool         // used by beat only

	asked   atomic.Bool         // a peer asks for this master's minions
	present map[string]struct{} // minions reported to the peers; used by beat only
}

var _ Peers = (*Several)(nil)

// Options configure Several. All fields are required.
type Options struct {
	Vault    *Vault
	Host     Host
	Keys     *keys.Store
	Sessions *sessions.Store
	Presence *subscribers.Presence
	Events   *events.Bus
	Log      *slog.Logger
	// Session is the lifetime of a session, Loop the interval of calls to Maintain.
	Session, Loop time.Duration
}

// NewSeveral returns the Peers of a master with this vault, and loads its secrets.
func NewSeveral(o Options) (*Several, error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if err := o.Vault.Load(ctx); err != nil {
		return nil, err
	}
	return &Several{opts: o, db: o.Vault.db, name: o.Vault.name,
		secrets: sharedSecrets{vault: o.Vault, keys: o.Keys, sessions: o.Sessions, log: o.Log}}, nil
}

// Name implements Peers.
func (s *Several) Name() string { return s.name }

// Secrets implements Peers.
func (s *Several) Secrets() Secrets { return &s.secrets }

// tell sends the other masters a message.
func (s *Several) tell(ctx context.Context, kind string, body map[string]any) error {
	b, err := payload.MarshalBin(body)
	if err != nil {
		return err
	}
	return s.db.Tell(ctx, store.Message{From: s.name, Kind: kind, Body: b})
}

// Run implements Peers. When ctx ends it releases this master's leases.
func (s *Several) Run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.relayEvents(ctx)
	}()
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		s.beat(ctx)
	}()
	for ctx.Err() == nil {
		err := s.db.Follow(ctx, s.name, func(list []store.Message) { s.told(ctx, list) })
		if err != nil && ctx.Err() == nil {
			s.opts.Log.Error("Cannot receive messages of other masters", "err", err)
		}
		select {
		case <-time.After(followPause):
		case <-ctx.Done():
		}
		if ctx.Err() == nil {
			s.told(ctx, nil)
		}
	}
	<-done
	<-beats
}

// beat renews this master's leases and checks whether peers listen to events.
func (s *Several) beat(ctx context.Context) {
	ticker := time.NewTicker(listenTick)
	defer ticker.Stop()
	var last time.Time
	for {
		if s.listens() != s.listening || time.Since(last) >= heartbeat {
			last = time.Now()
			if err := s.beatOnce(ctx); err != nil && ctx.Err() == nil {
				s.opts.Log.Warn("Cannot renew this master's lease", "err", err)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
			defer cancel()
			for _, prefix := range []string{leaseMaster, leaseListens} {
				if err := s.db.Release(ctx, prefix+s.name, s.name); err != nil {
					s.opts.Log.Warn("Cannot release this master's lease", "err", err)
				}
			}
			return
		}
	}
}

// listens reports whether the bus has subscribers besides relayEvents.
func (s *Several) listens() bool { return s.opts.Events.Subscribers() > 1 }

func (s *Several) beatOnce(ctx context.Context) error {
	if _, err := s.db.Lease(ctx, leaseMaster+s.name, s.name, beatLife); err != nil {
		return err
	}
	listens := s.listens()
	if listens {
		if _, err := s.db.Lease(ctx, leaseListens+s.name, s.name, beatLife); err != nil {
			return err
		}
	}
	if listens && !s.listening {
		if err := s.tell(ctx, tellListen, map[string]any{}); err != nil {
			return err
		}
	}
	s.listening = listens
	others, err := s.db.Leases(ctx, leaseListens)
	if err != nil {
		return err
	}
	delete(others, leaseListens+s.name)
	if len(others) > 0 {
		s.heard.Store(time.Now().UnixNano())
	}
	return s.beatPresence(ctx)
}

// Masters implements Peers.
func (s *Several) Masters(ctx context.Context) ([]string, error) {
	leases, err := s.db.Leases(ctx, leaseMaster)
	var out []string
	for _, name := range leases {
		out = append(out, name)
	}
	slices.Sort(out)
	return out, err
}

// told handles messages of peers; nil means that some were missed.
func (s *Several) told(ctx context.Context, list []store.Message) {
	if list == nil {
		s.opts.Log.Warn("Messages of other masters were missed")
		s.opts.Keys.Told(nil)
		s.opts.Presence.ForgetOthers()
		s.opts.Events.RelayGap(1)
		s.reload(ctx)
		s.opts.Host.CatchUp(ctx)
		return
	}
	for _, msg := range list {
		if msg.Kind == keys.MessageKind {
			if c, ok := s.opts.Keys.Told(msg.Body); ok {
				s.keyChanged(c)
			}
			continue
		}
		v, err := payload.UnmarshalDiskOrdered(msg.Body, payload.Limits{})
		body, ok := payload.Map(v)
		if err != nil || !ok {
			s.opts.Log.Error("Message of another master cannot be read", "from", msg.From,
				"kind", msg.Kind, "err", err)
			continue
		}
		switch msg.Kind {
		case tellPublish:
			s.publishHere(body)
		case tellReturn:
			s.returnedElsewhere(ctx, body)
		case tellEvent:
			s.happenedElsewhere(body)
		case tellExpect:
			s.opts.Host.OrderedElsewhere(fields.Texts(body["ids"]), fields.Texts(body["here"]))
		case tellSecret:
			s.reload(ctx)
		case tellListen:
			s.heard.Store(time.Now().UnixNano())
		case tellPresent:
			s.hearPresence(msg.From, body)
		case tellWho:
			s.asked.Store(true)
		}
	}
}

func (s *Several) reload(ctx context.Context) {
	if err := s.opts.Vault.Load(ctx); err != nil && ctx.Err() == nil {
		s.opts.Log.Error("Cannot read secrets of the masters", "err", err)
	}
	s.opts.Host.Dismiss()
}

// keyChanged handles a change of keys by a peer. The peer fired the event and replaced the shared key.
func (s *Several) keyChanged(c keys.Change) {
	if c.From == keys.Accepted && c.To != keys.Accepted && c.Act != "denied" {
		s.opts.Sessions.Forget(c.ID)
		s.opts.Presence.Forget(c.ID)
	}
	if c.Act == "delete" {
		s.opts.Host.DeletedElsewhere(c.ID)
	}
}

// onceMark returns the record of a request that must be accepted only once.
func onceMark(v protocol.Verified) []byte {
	sum := sha256.Sum256([]byte(v.Nonce()))
	return sum[:16]
}

// FirstTime implements Peers.
func (s *Several) FirstTime(ctx context.Context, v protocol.Verified) (bool, error) {
	switch v.Cmd() {
	case "_return":
		if jid := fields.Text(v.Load(), "jid"); jid != string(protocol.JIDRequest) &&
			jid != string(protocol.JIDNoCache) {
			return true, nil
		}
	case "_minion_event", "_mine", "_mine_delete", "_mine_flush", "_file_recv", "minion_pub",
		"minion_publish", "minion_runner",
		"revoke_auth":
	default:
		return true, nil
	}
	return s.db.Once(ctx, v.ID(), onceMark(v))
}

// Maintain implements Peers. The holder of the lease deletes old messages; every master renews the root of
// session keys.
func (s *Several) Maintain(ctx context.Context, now time.Time) (mine bool) {
	mine, err := s.db.Lease(ctx, leaseMaintain, s.name, 2*s.opts.Loop)
	if err == nil && mine {
		marks := now.Add(-2*s.opts.Session - time.Hour)
		err = s.db.PurgeShared(ctx, now.Add(-keepMessages), marks, maxMessages)
	}
	if err == nil {
		err = s.opts.Vault.RenewSessions(ctx, now, s.opts.Session)
	}
	if err != nil && ctx.Err() == nil {
		s.opts.Log.Warn("Cannot maintain the data that masters share", "err", err)
	}
	return mine
}
