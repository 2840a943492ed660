// Package master is an embeddable Salt master: it accepts minions, sends them jobs and receives the results,
// and serves files, pillar and mine. It works with stock minions of Salt 3006 and later and with brine's.
// Create a master with New, run it with Serve, and order jobs with Run, Submit or Publish. It listens only on
// the two ports of the transport, and on Salt's local sockets if Options.Local is set.
//
// Input from the network is limited before it is decoded and verified before it is used. Functions that act for
// a minion take a protocol.Verified, which only the complete check returns. Ids, job ids and paths from peers
// become file names only below an open directory (os.Root). Salt's sources: salt/master.py,
// salt/channel/server.py, salt/daemons/masterapi.py.
package master

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/brine-salt/brine/master/announced"
	"github.com/brine-salt/brine/master/audit"
	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/clones"
	"github.com/brine-salt/brine/master/cluster"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/master/internal/counts"
	"github.com/brine-salt/brine/master/internal/lifecycle"
	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/network"
	"github.com/brine-salt/brine/master/orders"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/master/requests"
	"github.com/brine-salt/brine/master/requests/door"
	"github.com/brine-salt/brine/master/requests/returns"
	"github.com/brine-salt/brine/master/sessions"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/targets"
	"github.com/brine-salt/brine/master/tenants"
	"github.com/brine-salt/brine/master/tools"
	"github.com/brine-salt/brine/master/upkeep"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/transport"
)

// shutdownTime is how long running requests may take when Serve stops.
const shutdownTime = 5 * time.Second

// Master is a Salt master. Its methods are safe for concurrent use.
type Master struct {
	opts      Options
	log       *slog.Logger
	identity  protocol.AuthIdentity
	keys      *keys.Store
	events    *events.Bus
	store     store.Store
	orders    *orders.Deliverer // nil if the store cannot keep orders
	cache     *cache.Cache
	sessions  *sessions.Store
	network   *network.Network
	clones    *clones.Guard
	tenants   *tenants.Registry
	announced *announced.Book
	targets   *targets.Finder
	counts    *counts.Counters
	peers     cluster.Peers
	local     *tools.Server // nil without Options.Local
	clock     protocol.JIDClock

	requests requests.Answers
	door     *door.Door
	account  *audit.Account
	runs     *runs
	upkeep   *upkeep.Round
	life     *lifecycle.Lifecycle
	kept     *keptEvents
}

// New returns a master. It loads or creates its keys and opens its directories, but only Serve listens. If
// Serve is never called, call Close.
func New(o Options) (*Master, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("cannot make master: %w", err)
	}
	m := &Master{opts: o, log: o.Log, events: events.New(nil), store: o.Store,
		network: network.New(), counts: counts.New(),
		account: audit.NewAccount(o.Audit, o.Log), runs: newRuns(), life: lifecycle.New()}
	m.kept = &keptEvents{bus: m.events, limits: o.Events.History}
	if m.store == nil {
		m.store = store.NewMemory()
	}
	if o.Jobs.UniqueJID {
		m.clock.Process = os.Getpid()
	}
	if err := m.open(); err != nil {
		m.closeRooms()
		return nil, fmt.Errorf("cannot make master: %w", err)
	}
	minions, _ := store.MinionsOf(m.store)
	m.tenants = tenants.New(minions, m.log)
	m.openUpkeep()
	if err := m.openOrders(); err != nil {
		m.closeRooms()
		return nil, fmt.Errorf("cannot make master: %w", err)
	}
	if err := m.openRequests(minions); err != nil {
		m.closeRooms()
		return nil, fmt.Errorf("cannot make master: %w", err)
	}
	m.keys.OnChange(m.keyChanged)
	return m, nil
}

// open opens the master's directories, store and components.
func (m *Master) open() error {
	o := m.opts
	vault, err := m.openMemory()
	if err != nil {
		return err
	}
	m.targets = &targets.Finder{Keys: m.keys, Cache: m.cache, Nodegroups: o.Jobs.Nodegroups}
	pushed := &m.requests.Pushed
	pushed.MaxSize, pushed.Quota, pushed.Log = o.Files.RecvMaxSize, o.Files.RecvQuota, m.log
	if o.Files.Recv {
		if pushed.Dir, err = confined.Open(o.CacheDir, 0o750); err != nil {
			return err
		}
	}
	m.requests.Revocation = requests.Revocation{Keys: m.keys, Cache: m.cache,
		Off: o.Minions.NoKeyRevoke}
	m.requests.Mine = requests.Mine{Cache: m.cache, Minions: requestHost{m}, Log: m.log,
		Ignore: o.Minions.NoDataCache}
	if o.Minions.MineGet != nil {
		if m.requests.Mine.Access, err = requests.CompileAccess("MineGet",
			o.Minions.MineGet); err != nil {
			return err
		}
	}
	if err := m.openFiles(); err != nil {
		return err
	}
	if err := m.openPillar(); err != nil {
		return err
	}
	if o.Local != nil {
		if err := m.openTools(); err != nil {
			return err
		}
	}
	return m.openPeers(vault)
}

// openRequests prepares the handlers of minions' requests that need the store, which must be open.
func (m *Master) openRequests(minions store.Minions) (err error) {
	o := m.opts
	hourly := ratelimit.NewHourlyLog()
	m.requests.Pillar.Tenants = m.tenants
	e := requests.EventOptions{Bus: m.events, Cache: m.cache, Minions: minions,
		Shared:  o.Shared != nil,
		Tenants: m.tenants, Contacts: m.orders, Keep: o.Events.Keep, Forget: o.Minions.NoDataCache,
		Log: m.log}
	if o.Events.Access != nil {
		e.Access = requestHost{m}
	}
	m.requests.Events = requests.NewEvents(e)
	m.announced = announced.New(announced.Options{Minions: minions, Keys: m.keys,
		Tenants: m.tenants, Grants: m.requests.Events, MaxTenant: o.Keys.MaxAnnouncedTenant,
		Key: m.identity.Key, Log: m.log})
	signIns := m.openSignIns(hourly)
	m.network.Prepare(network.Options{Tenants: m.tenants, Minions: minions, Keys: m.keys,
		SignIns: signIns, Counts: m.counts, Paths: m.orders, Key: m.identity.Key,
		Algorithm: o.Security.SigningAlgorithm, Name: m.peers.Name(),
		Isolate: o.Network.Isolate, MaxMessage: o.Network.MaxMessage, Clock: &m.clock,
		Events: m.events, Log: m.log})
	auth, err := eauth.New(eauth.Options{Match: m.targets.Find})
	if err != nil {
		return err
	}
	p := requests.PeerOptions{Rules: o.Minions.Peer, Runs: o.Minions.PeerRun, Auth: auth,
		Publisher: peerHost{m}, Targets: m.targets,
		Store: m.store, Log: m.log}
	if o.Minions.Runner != nil {
		p.Runner = peerHost{m}
	}
	var queue store.Queue
	if m.orders != nil {
		queue = m.orders.Queue()
	}
	m.requests.Jobs = requests.Jobs{Store: m.store, Queue: queue, Orders: m.requests.Files.Orders,
		Log: m.log}
	m.requests.Returns = returns.New(returns.Options{Store: m.store, Queue: queue, Cluster: m.peers,
		Runs: m.runs, Orders: m.orders, Probes: m.network.Names, Subjects: m.targets,
		Events: m.events, Clock: &m.clock,
		Hourly: hourly, Log: m.log, Started: m.counts.Started, KeepJobs: o.Jobs.Keep,
		MaxUnordered: o.Jobs.MaxUnordered})
	d := door.Options{Answers: &m.requests, Keys: m.keys, Sessions: m.peers.Secrets(),
		SharedKey: requestHost{m},
		Peers:     m.peers, SignIns: signIns, Presence: m.network.Presence, Counts: m.counts,
		Log: m.log, MinimumVersion: o.Security.MinimumVersion, RequestTTL: o.Security.RequestTTL,
		ReplayWindow: o.Security.ReplayWindow}
	if m.local != nil {
		d.Tools = m.local
	}
	m.door = door.New(d)
	m.requests.Peers, err = requests.NewPeers(p)
	return err
}

// openPillar opens the sources of pillar data.
func (m *Master) openPillar() (err error) {
	o, p := m.opts, &m.requests.Pillar
	*p = requests.Pillar{Key: m.identity.Key, Roots: o.Pillar.Files, Clones: m.clones,
		Cache: m.cache, Events: m.events, Log: m.log, Forget: o.Minions.NoDataCache,
		ForgetPillar: o.Pillar.NoDataCache}
	if p.Roots == nil && o.Pillar.Roots != nil {
		p.Roots = pillar.NewRoots(pillar.RootsOptions{Roots: o.Pillar.Roots,
			Nodegroups: o.Jobs.Nodegroups, Log: o.Log})
	}
	if o.Pillar.Func != nil {
		p.Program = requestHost{m}
	}
	if o.Pillar.CacheTTL <= 0 {
		return nil
	}
	dir := ""
	if o.CacheDir != "" && !o.Pillar.CacheInMemory {
		dir = filepath.Join(o.CacheDir, "pillar_cache")
	}
	p.Kept, err = pillar.OpenCache(dir, o.Pillar.CacheTTL, o.Log)
	return err
}

func (m *Master) openFiles() error {
	o := m.opts
	ignore, err := fileserver.NewIgnore(o.Files.IgnoreRegex, o.Files.IgnoreGlob)
	if err != nil {
		return err
	}
	var back []fileserver.Backend
	if len(o.Files.Roots) > 0 {
		warnMissingRoots(m.log, o.Files.Roots)
		back = append(back, fileserver.NewRoots(fileserver.RootsOptions{Roots: o.Files.Roots,
			FollowSymlinks: o.Files.FollowSymlinks, IgnoreSymlinks: o.Files.IgnoreSymlinks}))
	}
	if o.Files.FS != nil {
		back = append(back, fileserver.NewFS("base", o.Files.FS))
	}
	m.requests.Files.Server, err = fileserver.New(fileserver.Options{Backends: append(back,
		o.Files.Backends...), HashType: o.Files.HashType,
		BufferSize: o.Files.BufferSize, Ignore: ignore, ListCache: o.Files.ListCache})
	if o.Files.Access != nil {
		m.requests.Files.Access = fileAccess{m}
	}
	m.requests.Config = requests.Config{Server: m.requests.Files.Server,
		Nodegroups: o.Jobs.Nodegroups, Set: o.Minions.Opts}
	if o.Minions.Tops != nil {
		m.requests.Config.Tops = requestHost{m}
	}
	return err
}

// warnMissingRoots logs a warning for each missing directory. They may be created later, so they are not
// errors; but most are typing errors.
func warnMissingRoots(log *slog.Logger, roots map[string][]string) {
	for env, dirs := range roots {
		for _, dir := range dirs {
			if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) &&
				!strings.Contains(dir, "__env__") {
				log.Warn("A directory of file_roots is missing", "env", env, "dir", dir)
			}
		}
	}
}

// Serve listens and serves until ctx ends, then closes everything and waits for all of its goroutines. It
// returns nil after an orderly shutdown. Call it at most once.
func (m *Master) Serve(ctx context.Context) error {
	if !m.life.Start() {
		return errors.New("cannot serve: master was started or closed before")
	}
	defer m.closeRooms()
	defer m.life.End()
	if err := m.begin(ctx); err != nil {
		m.life.Fail(err)
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	hooked := m.startHooks(ctx)
	m.life.Listening()
	m.log.Info("Master is ready", "id", m.opts.ID, "publish", m.PublishAddr().String(),
		"request", m.RequestAddr().String())
	delivered := make(chan struct{})
	go func() {
		select {
		case <-m.life.Quitting():
			stop()
		case <-ctx.Done():
		}
	}()
	go func() {
		defer close(delivered)
		if m.orders != nil {
			m.orders.Run(ctx)
		}
	}()
	m.maintain(ctx)
	m.life.Stop()
	<-delivered
	stop()
	hooked()
	m.log.Info("Master ends")
	return m.stop()
}

// begin loads what the master needs before it listens, and listens.
func (m *Master) begin(ctx context.Context) error {
	if _, err := m.tenants.All(ctx); err != nil {
		return fmt.Errorf("cannot read the tenants of minions: %w", err)
	}
	err := m.listen()
	if err == nil && m.local != nil {
		err = m.local.Listen()
	}
	if err != nil {
		m.stop()
	}
	return err
}

// listen opens the listeners of all transports.
func (m *Master) listen() error {
	o := m.opts
	all := append([]Listener{{Listen: o.Network.Listen, Interface: o.Network.Interface,
		PublishPort: o.Network.PublishPort, RetPort: o.Network.RetPort,
		PublishListener: o.Network.PublishListener, RequestListener: o.Network.RequestListener,
		WrapListener: o.Network.WrapListener, Filter: o.Network.Filter}}, o.Network.More...)
	list := make([]network.Transport, len(all))
	for i, l := range all {
		list[i] = network.Transport{Listen: l.Listen, Options: transport.ServerOptions{
			PublishListener: l.PublishListener, RequestListener: l.RequestListener,
			Wrap:        l.WrapListener,
			PublishAddr: address(l.Interface, l.PublishPort, DefaultPublishPort),
			RequestAddr: address(l.Interface, l.RetPort, DefaultRetPort), Filter: l.Filter}}
	}
	return m.network.Listen(m.door, list...)
}

func address(host string, port, def int) string {
	switch port {
	case 0:
		port = def
	case AnyPort:
		port = 0
	}
	return transport.JoinHostPort(host, port)
}

// stop closes the listeners and gives running requests shutdownTime to end.
func (m *Master) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	err := m.network.Stop(ctx)
	if m.local != nil {
		err = errors.Join(err, m.local.Stop())
	}
	return err
}

// closeRooms closes directories and ends event subscriptions.
func (m *Master) closeRooms() {
	m.events.Close()
	m.kept.close()
	if m.sessions != nil {
		if err := m.sessions.Close(); err != nil {
			m.log.Error("Cannot close", "err", err)
		}
	}
	if m.local != nil {
		m.local.Close()
	}
	if m.cache != nil {
		m.cache.Close()
	}
	if kept := m.requests.Pillar.Kept; kept != nil {
		kept.Close()
	}
	if m.keys != nil {
		m.keys.Close()
	}
	if dir := m.requests.Pushed.Dir; dir != nil {
		dir.Close()
	}
}

// Close releases what New opened, if Serve was not called. After Serve it does nothing.
func (m *Master) Close() {
	if m.life.Start() {
		m.life.Fail(errClosed)
		m.life.End()
		m.closeRooms()
	}
}

// Ready returns a channel that is closed when the master listens, or when it never will because Serve failed or
// Close was called. AwaitReady tells these apart. After a failure, methods that need the network return
// ErrNotServing with the cause.
func (m *Master) Ready() <-chan struct{} { return m.life.Ready() }

// AwaitReady waits until Serve listens. It returns Serve's error if that failed before, or ctx's if ctx ends
// first.
func (m *Master) AwaitReady(ctx context.Context) error {
	select {
	case <-m.life.Ready():
		return m.life.Failure()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errClosed is the cause for a master that was closed before Serve.
var errClosed = errors.New("master was closed")

// PublishAddr returns the address of the publish channel, or nil before the master listens.
func (m *Master) PublishAddr() net.Addr { return m.network.PublishAddr() }

// RequestAddr returns the address of the request channel, or nil before the master listens.
func (m *Master) RequestAddr() net.Addr { return m.network.RequestAddr() }

// Keys returns the store of the minions' keys.
func (m *Master) Keys() *keys.Store { return m.keys }

// Events returns the event bus.
func (m *Master) Events() *events.Bus { return m.events }

// Store returns the store of jobs and returns.
func (m *Master) Store() store.Store { return m.store }

// Cache returns the cache of minion data.
func (m *Master) Cache() *cache.Cache { return m.cache }

// Files returns the file server.
func (m *Master) Files() *fileserver.Server { return m.requests.Files.Server }

// Pillar compiles a pillar as for a minion.
func (m *Master) Pillar(ctx context.Context, r pillar.Request) (map[string]any, error) {
	return m.requests.Pillar.Make(ctx, r)
}

// KeptPillars returns the cache of compiled pillars, or nil without PillarOptions.CacheTTL.
func (m *Master) KeptPillars() *pillar.Cache { return m.requests.Pillar.Kept }

// Minion returns the grains and pillar last seen of a minion.
func (m *Master) Minion(id string) (cache.Data, bool) { return m.cache.Data(id) }

// Match returns the accepted minions that a target matches, as far as the master can tell.
func (m *Master) Match(tgtType string, tgt any) ([]string, error) {
	return m.targets.Find(tgtType, tgt)
}

// Fingerprint returns the fingerprint of the master's key, which minions can have as master_finger.
func (m *Master) Fingerprint() (string, error) {
	return m.identity.Key.Public().Fingerprint(m.opts.Files.HashType)
}

// PublicKey returns the master's public key as PEM text, which minions can have beforehand as
// minion_master.pub.
func (m *Master) PublicKey() string { return m.identity.Key.Public().Text() }

// Named returns the number of minions whose publish connections are identified. Messages for such a minion by
// id reach no other. A connection is identified within a second.
func (m *Master) Named() int { return m.network.Named() }

// Subscribers returns the number of open publish connections.
func (m *Master) Subscribers() int {
	n, _ := m.network.Subscribers()
	return n
}

// Present returns the accepted minions that are connected to this master or to another one of the same
// database, sorted. A minion with a dead path disappears within half a minute, one that disconnected in order
// after some seconds. With tenants or NetworkOptions.Isolate, jobs reach every minion in the list. Otherwise a
// minion that has just signed in may be in the list before it receives publishes.
func (m *Master) Present() []string { return m.network.Present() }
