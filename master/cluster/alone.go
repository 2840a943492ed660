package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/sessions"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
)

// Alone implements Peers for a master without peers.
type Alone struct {
	store   store.Store
	queue   store.Queue // nil if the store cannot keep orders
	secrets ownSecrets
}

var _ Peers = (*Alone)(nil)

// AloneOptions configure Alone. All fields are required unless they say otherwise.
type AloneOptions struct {
	Store    store.Store
	Sessions *sessions.Store
	Keys     KeyHolder
	// SealDir is the directory of the sealing key of orders; if it is empty, the key lives as long as the
	// process.
	SealDir string
	// Session is the lifetime of a session.
	Session time.Duration
}

// NewAlone returns the Peers of a single master.
func NewAlone(o AloneOptions) *Alone {
	queue, _ := store.QueueOf(o.Store)
	return &Alone{store: o.Store, queue: queue, secrets: ownSecrets{opts: o}}
}

// Name implements Peers.
func (a *Alone) Name() string { return "" }

// Secrets implements Peers.
func (a *Alone) Secrets() Secrets { return &a.secrets }

// Run implements Peers.
func (a *Alone) Run(context.Context) {}

// Maintain implements Peers.
func (a *Alone) Maintain(context.Context, time.Time) bool { return true }

// Masters implements Peers.
func (a *Alone) Masters(context.Context) ([]string, error) { return nil, nil }

// FirstTime implements Peers.
func (a *Alone) FirstTime(context.Context, protocol.Verified) (bool, error) { return true, nil }

// Publish implements Peers.
func (a *Alone) Publish(context.Context, ...Publication) error { return nil }

// SaveOrder implements Peers.
func (a *Alone) SaveOrder(ctx context.Context, o store.Order, list []store.Delivery,
	_ []string) error {
	return a.queue.SaveOrder(ctx, o, list)
}

// SaveReturn implements Peers.
func (a *Alone) SaveReturn(ctx context.Context, r store.Return) (first bool, err error) {
	return a.store.SaveReturn(ctx, r)
}

// TellReturn implements Peers.
func (a *Alone) TellReturn(context.Context, string, string, map[string]any) error { return nil }

// ownSecrets implements Secrets for a single master.
type ownSecrets struct {
	opts AloneOptions

	sealOnce sync.Once // guards the fields below
	seal     Sealing
	sealErr  error
}

var _ Secrets = (*ownSecrets)(nil)

// Sealer implements Secrets.
func (s *ownSecrets) Sealer() (content.Sealer, error) {
	s.sealOnce.Do(func() { s.seal, s.sealErr = OwnSealing(s.opts.SealDir) })
	return s.seal, s.sealErr
}

// Rotate implements Secrets.
func (s *ownSecrets) Rotate(context.Context) error {
	key, err := crypt.NewKey()
	if err != nil {
		return err
	}
	s.opts.Keys.UseKey(key)
	return nil
}

// Session implements Secrets.
func (s *ownSecrets) Session(id string) *sessions.Session { return s.opts.Sessions.Get(id) }

// OpenRequest implements Secrets.
func (s *ownSecrets) OpenRequest(e protocol.Envelope, session *sessions.Session,
	pub *crypt.PublicKey) (protocol.Verified, error) {
	return protocol.OpenRequest(e, session.Current(s.opts.Session, pub), pub)
}

// IssueSession implements Secrets.
func (s *ownSecrets) IssueSession(id string, pub *crypt.PublicKey) (*crypt.Key, error) {
	return s.opts.Sessions.Issue(id, pub)
}

// OutdateSession implements Secrets. It does nothing here: sessions.Session itself makes the next sign-in
// create a session.
func (s *ownSecrets) OutdateSession(string, *sessions.Session) {}
