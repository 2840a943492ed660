package master

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/clones"
	"github.com/brine-salt/brine/master/cluster"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/internal/probe"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/sessions"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/subscribers"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
)

// Shared makes the master a member of a cluster of equal masters over the database of Options.Store. They share
// one identity, the keys and the jobs. Each serves any minion, a job published on one reaches the minions of
// all, and any of them may fail. The database is the only connection between them.
type Shared struct {
	// Key encrypts the secrets that the masters keep in the database. It has at least 16 bytes and is the same
	// on all masters. KeyFile names a file with the key instead; white space around it is ignored.
	Key     []byte
	KeyFile string
	// Former are earlier keys. Secrets encrypted with them are read, and encrypted again with Key.
	Former [][]byte
	// Name identifies this master among the others; if it is empty, one is generated.
	Name string
}

const (
	maxMasterName = 200
	// storeTime limits a use of the database outside of any request.
	storeTime = 2 * time.Minute
)

// openMemory opens the master's identity and its records of minions, in directories or in memory. In a cluster
// they are in the database, and it returns the vault.
func (m *Master) openMemory() (vault *cluster.Vault, err error) {
	o := m.opts
	at := keys.IdentityOptions{Dir: o.PKIDir, Bits: o.Keys.Size, SignPubkey: o.Keys.SignPubkey,
		SignKeyName:        o.Keys.SignKeyName,
		UsePubkeySignature: o.Keys.UsePubkeySignature, PubkeySignature: o.Keys.PubkeySignature,
		Log: o.Log}
	if o.Shared != nil {
		return m.openDatabase(at)
	}
	identity, err := keys.LoadIdentity(at)
	if err != nil {
		return nil, err
	}
	m.setIdentity(identity)
	if m.keys, err = keys.Open(keys.Options{Dir: o.PKIDir, MaxPending: o.Keys.MaxPending,
		Log: o.Log}); err != nil {
		return nil, err
	}
	if m.cache, err = cache.Open(o.CacheDir); err != nil {
		return nil, err
	}
	m.clones = newCloneGuard(m, new(clones.Memory))
	m.sessions, err = sessions.Open(o.CacheDir, o.Keys.PublishSession, o.Security.ReplayWindow,
		o.Log)
	return nil, err
}

// openDatabase is openMemory for a master in a cluster.
func (m *Master) openDatabase(at keys.IdentityOptions) (*cluster.Vault, error) {
	o, s := m.opts, *m.opts.Shared
	db, ok := m.store.(store.Shared)
	if !ok {
		return nil, errors.New("Shared needs a Store in a database")
	}
	if s.Name == "" {
		s.Name = o.ID + "/" + strings.ToLower(rand.Text()[:8])
	}
	if len(s.Name) > maxMasterName {
		return nil, fmt.Errorf("Shared.Name has %d bytes, more than %d", len(s.Name), maxMasterName)
	}
	seal, err := cluster.ReadSealing(s.Key, s.KeyFile, s.Former)
	if err != nil {
		return nil, err
	}
	vault := cluster.NewVault(db, s.Name, seal, clusterHost{m})
	identity, err := vault.Identity(at)
	if err != nil {
		return nil, err
	}
	m.setIdentity(identity)
	m.cache = cache.OpenShared(db)
	m.clones = newCloneGuard(m, clones.Shared{DB: db})
	if m.sessions, err = sessions.Open("", o.Keys.PublishSession, o.Security.ReplayWindow,
		o.Log); err != nil {
		return nil, err
	}
	m.keys, err = keys.Open(keys.Options{Shared: db, Name: s.Name, MaxPending: o.Keys.MaxPending,
		Log: o.Log})
	return vault, err
}

// openPeers joins the cluster that shares a vault, or sets up a single master if vault is nil, and loads or
// creates the shared key. A single master's store is that of Options, with the job cache that Options.Local
// added.
func (m *Master) openPeers(vault *cluster.Vault) (err error) {
	o := m.opts
	if vault == nil {
		m.peers = cluster.NewAlone(cluster.AloneOptions{Store: m.store, Sessions: m.sessions,
			Keys: clusterHost{m}, SealDir: o.PKIDir, Session: o.Keys.PublishSession})
		return m.peers.Secrets().Rotate(context.Background())
	}
	m.peers, err = cluster.NewSeveral(cluster.Options{Vault: vault, Host: clusterHost{m},
		Keys: m.keys, Sessions: m.sessions, Presence: m.network.Presence, Events: m.events,
		Log: o.Log, Session: o.Keys.PublishSession, Loop: o.LoopInterval})
	return err
}

func (m *Master) setIdentity(id keys.Identity) {
	m.identity = protocol.AuthIdentity{Key: id.Key, SignKey: id.Sign,
		PubkeySignature: id.PubkeySignature, PromptReturns: true, Now: time.Now}
}

// Masters returns the names of the cluster's live masters, sorted, or nil for a single master.
func (m *Master) Masters(ctx context.Context) ([]string, error) { return m.peers.Masters(ctx) }

// clusterHost implements cluster.Host and cluster.KeyHolder.
type clusterHost struct{ m *Master }

var (
	_ cluster.Host      = clusterHost{}
	_ cluster.KeyHolder = clusterHost{}
)

// UseKey implements cluster.KeyHolder.
func (h clusterHost) UseKey(key *crypt.Key) { h.m.network.Keyring.Use(key) }

// PublishHere implements cluster.Host.
func (h clusterHost) PublishHere(p cluster.Publication) error {
	if p.NoCache {
		h.m.runs.skipCache(fields.Text(p.Job, "jid"))
	}
	if probe.IsProbe(p.Job) {
		h.m.orders.AskedElsewhere(p.IDs)
	}
	return h.m.network.Sender.Send(p.Job, subscribers.Audience{IDs: p.IDs, Topics: p.Topics})
}

// OrderedElsewhere implements cluster.Host.
func (h clusterHost) OrderedElsewhere(ids, connected []string) {
	h.m.orders.ExpectElsewhere(ids, connected)
}

// HeardElsewhere implements cluster.Host.
func (h clusterHost) HeardElsewhere(id string, load map[string]any) bool {
	m := h.m
	m.orders.HeardElsewhere(id)
	if !probe.IsProbe(load) || !m.network.Names.Answered(id, load) &&
		probe.Sender(load) != m.peers.Name() {
		return false
	}
	m.orders.Heard(id, load)
	return true
}

// Awaits implements cluster.Host.
func (h clusterHost) Awaits(jid string) bool { return h.m.runs.of(jid) != nil }

// ReturnedElsewhere implements cluster.Host.
func (h clusterHost) ReturnedElsewhere(jid, id string, load map[string]any) {
	h.m.runs.Deliver(jid, id, load)
}

// DeletedElsewhere implements cluster.Host.
func (h clusterHost) DeletedElsewhere(id string) { h.m.requests.Pillar.Drop(id) }

// CatchUp implements cluster.Host.
func (h clusterHost) CatchUp(ctx context.Context) { h.m.catchUpAll(ctx) }

// Dismiss implements cluster.Host.
func (h clusterHost) Dismiss() {
	if h.m.life.Serving() {
		h.m.network.Sender.Dismiss()
	}
}

// Here implements cluster.Host.
func (h clusterHost) Here(id string) bool {
	return h.m.life.Serving() && h.m.network.Sender.Here(id)
}

// Connected implements cluster.Host.
func (h clusterHost) Connected() map[string]struct{} {
	return h.m.network.Connected()
}
