package master

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/master/internal/checks"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// Salt's default ports. AnyPort selects any free port.
const (
	DefaultPublishPort = 4505
	DefaultRetPort     = 4506
	AnyPort            = -1
)

// DefaultMaxUnordered is the default of JobOptions.MaxUnordered.
const DefaultMaxUnordered = 1 << 30

// defaultAuthRate and defaultAuthBurst are the defaults of SecurityOptions.AuthRate and AuthBurst.
const defaultAuthRate, defaultAuthBurst = 200, 2000

// Options configure a Master. The zero value is a master on Salt's ports, on all addresses, that keeps
// everything in memory, accepts no key by itself, and serves no files and no pillar.
type Options struct {
	// ID is the master's name in events; empty means the host name plus "_master".
	ID string
	// PKIDir is the directory of the master's key pair and the minions' keys, in Salt's layout; empty keeps
	// them in memory.
	PKIDir string
	// CacheDir is the directory of session keys, minion data and pushed files, in Salt's layout; empty keeps
	// them in memory.
	CacheDir string
	// Store holds jobs and returns; nil keeps recent ones in memory. The caller closes it after Serve has
	// returned. See store/sqlite.
	Store store.Store
	// Shared makes the master a member of a cluster of equal masters that use one Store; nil means a single
	// master.
	Shared *Shared
	// LoopInterval is the pause between rounds of maintenance; 0 means 60 s.
	LoopInterval time.Duration

	Network  NetworkOptions  // where minions connect
	Keys     KeyOptions      // the master's keys, and which minions may join
	Security SecurityOptions // requirements for sign-ins and requests
	Jobs     JobOptions      // jobs for connected minions, and how long they are kept
	Orders   OrderOptions    // jobs that are stored until they are delivered
	Files    FileOptions     // what minions may read and push
	Pillar   PillarOptions   // data for each minion alone
	// What minions learn about the master, and may ask of it and of each other.
	Minions MinionOptions
	Events  EventOptions // who receives events, who fires them, which are stored

	// Local serves Salt's command line tools on this host; nil opens nothing but the two ports.
	Local *Local
	// Audit receives one line of JSON, an [AuditEntry], for each call of users and minions, including denied
	// ones. nil writes no audit log.
	Audit io.Writer
	// Log receives messages for operators; nil discards them.
	Log *slog.Logger
}

// NetworkOptions configure where minions connect. The zero value is ZeroMQ on Salt's ports, on all addresses.
type NetworkOptions struct {
	// Interface is the address to listen on; empty means all.
	Interface string
	// PublishPort and RetPort are Salt's publish_port and ret_port; 0 means the default, AnyPort any free port.
	PublishPort, RetPort int
	// PublishListener and RequestListener, if set, are used instead. The master closes them.
	PublishListener, RequestListener net.Listener
	// Listen is the transport; nil means ZeroMQ, which is Salt's default. See protocol/transport/tcp and ws.
	Listen transport.Listen
	// WrapListener adds TLS to the listeners of tcp and ws.
	WrapListener func(net.Listener) net.Listener
	// Filter is Salt's zmq_filtering; minions must agree.
	Filter bool
	// More are additional transports of the same master.
	More []Listener
	// Isolate delivers each job only to the minions it targets, for every kind of target. A connection receives
	// nothing until its minion is identified, which takes about a second. Without Isolate, as in Salt,
	// unidentified connections receive everything (a minion may stay unidentified on purpose), and jobs for
	// other targets than ids go to every minion.
	Isolate bool
	// MaxMessage is the largest request in bytes; 0 means the transport's default.
	MaxMessage int64
	// Advertise are the addresses at which minions reach the master (EnsureMinion). AdvertiseTransport is
	// Salt's name of the transport there; empty means zeromq.
	Advertise          []string
	AdvertiseTransport string
}

// Loopback returns network options for trying out a program: 127.0.0.1 with free ports, which PublishAddr and
// RequestAddr return.
func Loopback() NetworkOptions {
	return NetworkOptions{Interface: "127.0.0.1", PublishPort: AnyPort, RetPort: AnyPort}
}

// Listener is an additional transport of a master. Its fields are those of [NetworkOptions].
type Listener struct {
	Listen                           transport.Listen
	Interface                        string
	PublishPort, RetPort             int
	PublishListener, RequestListener net.Listener
	WrapListener                     func(net.Listener) net.Listener
	Filter                           bool
}

// KeyOptions configure the master's keys and which minions may join. In the zero value only an operator accepts
// keys.
type KeyOptions struct {
	// AutoAccept accepts every new key. Policy is more selective.
	AutoAccept bool
	// Policy decides which new keys are accepted or rejected without an operator.
	Policy keys.Policy
	// Acceptors decide, in order, about keys that are neither accepted nor rejected. They are asked after the
	// join token (unless BeforeToken is set) and before Policy. The first decision counts. See package join.
	Acceptors []Acceptor
	// MaxPending limits the pending keys; 0 means 10000, below 0 no limit.
	MaxPending int
	// MaxAnnouncedTenant limits a tenant's announced minions (announced.ErrTenantFull); 0 means 10000, below 0 none.
	MaxAnnouncedTenant int
	// MaxMinions is Salt's max_minions: a new id is turned away while more are connected; 0 means no limit.
	MaxMinions int

	// Size is the size of a new master key in bits; 0 means 2048.
	Size int
	// SignPubkey is Salt's master_sign_pubkey: minions that verify the signature trust a changed master key.
	SignPubkey bool
	// UsePubkeySignature is Salt's master_use_pubkey_signature: the signature is made elsewhere, so that the
	// signing key need not be on this host.
	UsePubkeySignature bool
	// SignKeyName and PubkeySignature are Salt's master_sign_key_name and master_pubkey_signature.
	SignKeyName, PubkeySignature string

	// KeepAESOnDelete keeps the shared key when a minion's key is deleted or rejected (rotate_aes_key: False).
	// Such a minion can still read publishes.
	KeepAESOnDelete bool
	// PingOnRotate publishes test.ping after the shared key has changed (ping_on_rotate), so that minions sign
	// in again at once.
	PingOnRotate bool
	// PublishSession is the lifetime of a session key; 0 means a day.
	PublishSession time.Duration
}

// SecurityOptions configure the requirements for sign-ins and requests. The zero value is Salt's newest
// dialect, with SHA-1 where all of Salt's versions use it.
type SecurityOptions struct {
	// MinimumVersion is Salt's minimum_auth_version: the oldest dialect that a minion may speak. 0 means 3. The
	// only other value is 2, for minions before 3006.12 and 3007.4, whose requests are sealed with the shared
	// key of all minions.
	MinimumVersion int
	// FIPS is Salt's fips_mode: SHA-1 is not used, and minions that require it are refused.
	FIPS bool
	// SigningAlgorithm signs publishes; empty means PKCS1v15-SHA1, which every Salt supports.
	SigningAlgorithm string
	// AuthRate and AuthBurst limit sign-ins per second and source address; 0 means 200 and 2000, below 0 no
	// limit.
	AuthRate, AuthBurst float64
	// ReplayWindow is how far apart two requests of a minion may arrive out of order, in the minion's time; 0
	// means 300 s.
	ReplayWindow time.Duration
	// RequestTTL is Salt's request_server_ttl: the maximum age of a request by this host's clock; 0 means no
	// limit.
	RequestTTL time.Duration
}

// JobOptions configure how jobs find minions, are awaited and stored. The zero value keeps jobs for a day.
type JobOptions struct {
	// Nodegroups is Salt's nodegroups.
	Nodegroups map[string]any
	// Timeout is how long Run waits without a result before it asks minions whether the job still runs.
	// GatherTimeout is how long it waits for their answers. 0 means 5 s and 10 s.
	Timeout, GatherTimeout time.Duration
	// UniqueJID is Salt's unique_jid: job ids end with the process id.
	UniqueJID bool

	// Keep is how long jobs are stored; 0 means a day, below 0 for ever.
	Keep time.Duration
	// Max is how many jobs are stored; the oldest are removed every LoopInterval. 0 means that only Keep limits
	// them. A store in memory has its own limit. Jobs of unfinished orders are never removed.
	Max int
	// MaxBytes is the approximate size limit of the store, checked every LoopInterval; the oldest jobs are
	// removed. 0 means an eighth of the disk with the file of store/sqlite, below 0 no limit. It applies to
	// store/sqlite, whose file may exceed it briefly and does not shrink, and to stores in memory. The space on
	// a database server is not measured.
	MaxBytes int64
	// MaxUnordered limits the bytes that one minion may have stored within an hour by returns that no job asked
	// for: those of salt-call, schedules and startup states, of job ids that this master does not know, and of
	// jobs that do not name the minion. Each counts at least 4 KiB. Returns beyond the limit are not
	// acknowledged, so minions keep them until there is room. 0 means DefaultMaxUnordered, below 0 no limit.
	MaxUnordered int64
}

// OrderOptions limit and check orders. In the zero value an order waits for a day.
type OrderOptions struct {
	// TTL is how long an order waits for its minions if it does not specify that; 0 means DefaultTTL, below 0
	// for ever.
	TTL time.Duration
	// LostAfter is how long a minion may be silent after a job was sent to it before the job counts as lost; 0
	// means an hour.
	LostAfter time.Duration
	// MaxUnfinished limits the unfinished deliveries in the store, each an order to one minion. Beyond it
	// PlaceOrder returns ErrBusy. Deliveries that wait for absent minions count. 0 means DefaultMaxUnfinished,
	// below 0 no limit.
	MaxUnfinished int
	// MaxUnfinishedTenant is the same limit for each tenant, so that tenants cannot block the others; 0 means
	// as many as are free of MaxUnfinished besides, below 0 no separate limit.
	MaxUnfinishedTenant int
	// Limits limit the content of orders. Zero fields mean 100 files of 256 MiB in total, 1 MiB each for a
	// pillar and sealed arguments, and 4 GiB for all unfinished orders (256 MiB in a store in memory).
	Limits content.Limits
	// Authorize is called for every minion of an order before the order is stored. An error refuses the order
	// for that minion.
	Authorize func(ctx context.Context, o Order, id string) error
}

// FileOptions configure what minions may read under salt://, and push. The zero value serves no files.
type FileOptions struct {
	// FS is served as environment "base".
	FS fs.FS
	// Roots is Salt's file_roots: environments and their directories.
	Roots map[string][]string
	// FollowSymlinks follows links in Roots that lead out of them. Salt does that by default; this master does
	// not.
	FollowSymlinks bool
	// IgnoreSymlinks omits links from listings.
	IgnoreSymlinks bool
	// Backends are additional sources of files, searched after Roots and FS.
	Backends []fileserver.Backend
	// IgnoreRegex and IgnoreGlob hide files.
	IgnoreRegex, IgnoreGlob []string
	// Access, if set, reports whether a minion may see a path in an environment. Listings are filtered too.
	Access func(f FileRequest) bool
	// HashType is Salt's hash_type; empty means sha256.
	HashType string
	// ListCache is how long listings of files are cached (fileserver_list_cache_time); 0 means 20 s, below 0 no
	// caching.
	ListCache time.Duration
	// BufferSize is how many bytes of a file are in one reply; 0 means 1 MiB.
	BufferSize int
	// Recv lets minions push files into CacheDir (cp.push).
	Recv bool
	// RecvMaxSize limits one pushed file, RecvQuota all files of one minion, in bytes; 0 means 100 MiB and 1
	// GiB.
	RecvMaxSize, RecvQuota int64
}

// FileRequest is a minion's request to see a path.
type FileRequest struct {
	ID string
	// Tenant is the minion's tenant, or empty.
	Tenant string
	// Env is the environment. Path is a path in it, without ".." and without a leading slash.
	Env, Path string
}

// PillarOptions configure the sources of pillar data. In the zero value every minion's pillar is empty.
type PillarOptions struct {
	// Func returns pillars. With Roots its result is merged over that of the files.
	Func pillar.Func
	// Roots is Salt's pillar_roots: directories by environment, with a top file. Files is the same with more
	// options.
	Roots map[string][]string
	Files *pillar.Roots
	// CacheTTL is how long a minion's compiled pillar is reused (Salt's pillar_cache and pillar_cache_ttl); 0
	// means not at all. The cache is CacheDir/pillar_cache in Salt's layout, or in memory with CacheInMemory or
	// without a CacheDir.
	CacheTTL      time.Duration
	CacheInMemory bool
	// NoDataCache does not cache pillars as minion data. Pillar targets then match no minion on this master.
	NoDataCache bool
}

// MinionOptions configure what minions learn about the master, and may ask of it and of each other. In the zero
// value no minion may publish, and all may read the mine.
type MinionOptions struct {
	// Opts overrides Salt's defaults in replies to _master_opts: renderer, state_top, failhard, …
	Opts map[string]any
	// Tops answers _master_tops: lists of states by environment, for a minion.
	Tops func(ctx context.Context, id string, opts map[string]any) (map[string]any, error)
	// Peer is Salt's peer: which minions (regular expressions) may publish what. A rule is a regular expression
	// of functions, for all minions, or a map from one compound target to functions, with conditions for their
	// arguments, as in publisher_acl. Expressions must match in full. By default no minion may publish.
	Peer map[string][]any
	// PeerRun is Salt's peer_run for Runner.
	PeerRun map[string][]string
	// Runner runs a runner function for a minion, if PeerRun allows it.
	Runner func(ctx context.Context, id, fun string, args []any, kwargs map[string]any) (any, error)
	// MineGet is Salt's mine_get: which minions (regular expressions) may read which mine functions. nil allows
	// all.
	MineGet map[string][]string
	// NoKeyRevoke refuses minions that ask to delete their own key (allow_minion_key_revoke: False).
	NoKeyRevoke bool
	// NoDataCache does not cache grains and mine data (minion_data_cache: False).
	NoDataCache bool
}

// EventOptions configure who receives events, who may fire them, and which are stored. The zero value has no
// hooks, and minions may fire what stock minions fire.
type EventOptions struct {
	// Hooks receive events.
	Hooks []Hook
	// Access, if set, reports whether a minion may fire a tag. It is not called for tags that no minion may
	// fire, such as salt/auth, for those with which minions report about themselves, such as
	// salt/minion/<id>/start, and for those granted by EnsureMinion or GrantEvents. See EventRules.
	Access func(e EventRequest) bool
	// History limits the events that Follow can go back to.
	History events.LogLimits
	// Keep are shell patterns of tags. Matching events of announced minions are stored before they are
	// acknowledged, up to 256 events and 64 KiB per minion, and survive a restart of the master; see
	// Master.KeptEvents.
	Keep []string
	// Presence fires salt/presence events every LoopInterval.
	Presence bool
	// NoAuth fires no salt/auth events.
	NoAuth bool
	// AuthGrains are the acts (accept, pend, denied, reject, full, error) whose salt/auth events contain the
	// autosign_grains of the sign-in, which are not verified.
	AuthGrains []string
}

// withDefaults sets zero fields to their defaults and checks the result.
func (o Options) withDefaults() (Options, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.ID == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "localhost"
		}
		o.ID = host + "_master"
	}
	if o.Network.Listen == nil {
		o.Network.Listen = zeromq.Listen
	}
	o.Keys.Policy.AutoAccept = o.Keys.Policy.AutoAccept || o.Keys.AutoAccept
	if o.Keys.Policy.Log == nil {
		o.Keys.Policy.Log = o.Log
	}
	setDefault(&o.Keys.PublishSession, 24*time.Hour)
	setDefault(&o.Security.ReplayWindow, 300*time.Second)
	setDefault(&o.Security.AuthRate, defaultAuthRate)
	setDefault(&o.Security.AuthBurst, defaultAuthBurst)
	setDefault(&o.Jobs.Keep, 24*time.Hour)
	setDefault(&o.Jobs.MaxUnordered, DefaultMaxUnordered)
	setDefault(&o.Orders.TTL, DefaultTTL)
	setDefault(&o.Orders.LostAfter, time.Hour)
	setDefault(&o.Orders.MaxUnfinished, DefaultMaxUnfinished)
	setDefault(&o.Orders.Limits.Files, 100)
	setDefault(&o.Orders.Limits.Bytes, 256<<20)
	setDefault(&o.Orders.Limits.Pillar, 1<<20)
	setDefault(&o.Files.HashType, "sha256")
	setDefault(&o.Files.RecvMaxSize, 100<<20)
	setDefault(&o.Files.RecvQuota, 1<<30)
	if o.Security.FIPS {
		setDefault(&o.Security.SigningAlgorithm, crypt.PKCS1v15SHA224)
	}
	setDefault(&o.Security.SigningAlgorithm, crypt.PKCS1v15SHA1)
	setDefault(&o.Security.MinimumVersion, protocol.Version)
	setDefault(&o.Jobs.Timeout, 5*time.Second)
	setDefault(&o.Jobs.GatherTimeout, 10*time.Second)
	setDefault(&o.LoopInterval, 60*time.Second)
	return o, o.check()
}

// check returns an error for invalid options. Defaults are set already.
func (o Options) check() error {
	if err := cmp.Or(crypt.CheckSigning(o.Security.SigningAlgorithm, o.Security.FIPS),
		checks.Each(o.Keys.Acceptors, func(a Acceptor) bool { return a.Judge == nil },
			"acceptor %d has no Judge"),
		checks.Each(o.Events.Hooks, func(h Hook) bool { return h.Func == nil },
			"hook %d has no Func"),
		checks.Each(o.Files.Backends, func(b fileserver.Backend) bool { return b == nil },
			"Files.Backends: backend %d is nil"),
		checks.Each(o.Network.More, func(l Listener) bool { return l.Listen == nil },
			"Network.More: transport %d has no Listen function")); err != nil {
		return err
	}
	if o.Security.FIPS && (o.Files.HashType == "md5" || o.Files.HashType == "sha1") {
		return fmt.Errorf("hash type %s is not allowed in FIPS mode", o.Files.HashType)
	}
	if v := o.Security.MinimumVersion; v < 2 || v > protocol.Version {
		return fmt.Errorf("minimum version %d is not 2 or %d", v, protocol.Version)
	}
	if o.LoopInterval < 0 {
		return fmt.Errorf("LoopInterval %v is negative", o.LoopInterval)
	}
	if o.Files.Recv && o.CacheDir == "" {
		return errors.New("Files.Recv needs a CacheDir")
	}
	if o.Local != nil && (o.CacheDir == "" || o.PKIDir == "") {
		return errors.New("Local needs a CacheDir and a PKIDir")
	}
	return nil
}

func setDefault[T comparable](p *T, def T) {
	var zero T
	if *p == zero {
		*p = def
	}
}
