package master

import (
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

// Default ports of Salt. A port of AnyPort in Options takes any free one.
const (
	DefaultPublishPort = 4505
	DefaultRetPort     = 4506
	AnyPort            = -1
)

// DefaultMaxUnordered is JobOptions.MaxUnordered where it is 0.
const DefaultMaxUnordered = 1 << 30

// defaultAuthRate and defaultAuthBurst are SecurityOptions.AuthRate and AuthBurst where these are 0.
const defaultAuthRate, defaultAuthBurst = 200, 2000

// Options of a Master. The zero value is a master on Salt's ports, on all addresses, that keeps everything in memory,
// accepts no key by itself and serves no files and no pillar.
type Options struct {
	// ID names the master in events; empty means the host name with "_master" behind it.
	ID string
	// PKIDir holds the master's key pair and the minions' keys in Salt's layout; empty keeps them in memory.
	PKIDir string
	// CacheDir holds session keys, minion data and pushed files in Salt's layout; empty keeps them in memory.
	CacheDir string
	// Store keeps jobs and returns; nil keeps the last ones in memory. The caller closes it after Serve returned. See
	// store/sqlite.
	Store store.Store
	// Shared makes this one of several equal masters that use one Store; nil is a master alone.
	Shared *Shared
	// LoopInterval is the pause between rounds of maintenance; 0 means 60 s.
	LoopInterval time.Duration

	Network  NetworkOptions  // where minions connect
	Keys     KeyOptions      // the master's keys, and which minions join
	Security SecurityOptions // what a sign-in and a request must be like
	Jobs     JobOptions      // jobs for the minions that listen now, and how long they are kept
	Orders   OrderOptions    // jobs that are kept until they are delivered
	Files    FileOptions     // what minions read, and may push
	Pillar   PillarOptions   // what each minion alone is told
	// what minions are told of the master, and may ask of it and of each other
	Minions MinionOptions
	Events  EventOptions // who hears of events, who fires them, which are kept

	// Local serves Salt's own command line tools on this host; nil opens nothing but the two ports.
	Local *Local
	// Audit gets a line of JSON, an [AuditEntry], for each call of users and minions, those that are refused, too; nil
	// keeps no account.
	Audit io.Writer
	// Log gets what an operator should know; nil is silent.
	Log *slog.Logger
}

// NetworkOptions are where minions connect. The zero value is ZeroMQ on Salt's ports, on all addresses.
type NetworkOptions struct {
	// Interface is the address to listen on; empty means all.
	Interface string
	// PublishPort and RetPort are Salt's publish_port and ret_port; 0 is the default, AnyPort any free one.
	PublishPort, RetPort int
	// PublishListener and RequestListener are used instead when given. The master closes them.
	PublishListener, RequestListener net.Listener
	// Listen is the transport; nil means ZeroMQ, which is Salt's default. See protocol/transport/tcp and ws.
	Listen transport.Listen
	// WrapListener puts TLS over the listeners of tcp and ws.
	WrapListener func(net.Listener) net.Listener
	// Filter is Salt's zmq_filtering; minions must agree.
	Filter bool
	// More are further transports of the same master.
	More []Listener
	// Isolate delivers each job only to the minions that it targets, whatever the kind of target. A connection
	// receives nothing until its minion is identified, which takes about a second. Without it connections that are
	// not identified receive everything, also from a minion that keeps silent on purpose, and targets other than by
	// id go to every minion, as with Salt.
	Isolate bool
	// MaxMessage is the largest request in bytes; 0 means the transport's default.
	MaxMessage int64
	// Advertise are the addresses that minions are told to use (EnsureMinion), and AdvertiseTransport Salt's name of
	// the transport there; empty is zeromq.
	Advertise          []string
	AdvertiseTransport string
}

// Loopback returns what a program that is tried out listens with: 127.0.0.1, on free ports, which PublishAddr and
// RequestAddr tell.
func Loopback() NetworkOptions {
	return NetworkOptions{Interface: "127.0.0.1", PublishPort: AnyPort, RetPort: AnyPort}
}

// Listener is one more transport of a master; its fields are those of [NetworkOptions].
type Listener struct {
	Listen                           transport.Listen
	Interface                        string
	PublishPort, RetPort             int
	PublishListener, RequestListener net.Listener
	WrapListener                     func(net.Listener) net.Listener
	Filter                           bool
}

// KeyOptions are the keys of the master and which minions join. The zero value accepts no key without an operator.
type KeyOptions struct {
	// AutoAccept accepts every new key. For more, see Policy.
	AutoAccept bool
	// Policy says which new keys are accepted or rejected without an operator.
	Policy keys.Policy
	// Acceptors are asked, in order, about keys that are neither accepted nor rejected, after a join token (unless
	// BeforeToken) and before what Policy says. The first opinion counts. See package join.
	Acceptors []Acceptor
	// MaxPending bounds the keys that wait; 0 means 10000, below 0 no bound.
	MaxPending int
	// MaxMinions is Salt's max_minions: a new id is turned away when more are connected; 0 is no bound.
	MaxMinions int

	// Size is the size of a new master key in bits; 0 means 2048.
	Size int
	// SignPubkey is Salt's master_sign_pubkey: minions that verify it find a changed master key trustworthy.
	SignPubkey bool
	// UsePubkeySignature is Salt's master_use_pubkey_signature: a signature made elsewhere, so that the signing key
	// need not be here.
	UsePubkeySignature bool
	// SignKeyName and PubkeySignature are Salt's master_sign_key_name and master_pubkey_signature.
	SignKeyName, PubkeySignature string

	// KeepAESOnDelete leaves the shared key as it is when a key is deleted or rejected (rotate_aes_key: False): such a
	// minion then goes on reading publishes.
	KeepAESOnDelete bool
	// PingOnRotate publishes test.ping after the shared key changed (ping_on_rotate), so that minions sign in again at
	// once.
	PingOnRotate bool
	// PublishSession is how long a session key lives; 0 means a day.
	PublishSession time.Duration
}

// SecurityOptions are what a sign-in and a request must be like. The zero value is Salt's newest dialect, with SHA-1
// where every line of Salt uses it.
type SecurityOptions struct {
	// MinimumVersion is Salt's minimum_auth_version: the oldest dialect that a minion may speak. 0 means 3, and the
	// only other is 2, of minions before 3006.12 and 3007.4: their requests are sealed with the key that all minions
	// share.
	MinimumVersion int
	// FIPS is Salt's fips_mode: SHA-1 is not used, and minions that want it are refused.
	FIPS bool
	// SigningAlgorithm signs publishes; empty means PKCS1v15-SHA1, which every Salt knows.
	SigningAlgorithm string
	// AuthRate and AuthBurst bound sign-ins per second and source address; 0 means 200 and 2000, below 0 no bound.
	AuthRate, AuthBurst float64
	// ReplayWindow is how far apart in the minion's own time two of its requests may arrive out of order; 0 means 300
	// s.
	ReplayWindow time.Duration
	// RequestTTL is Salt's request_server_ttl: how old by this host's clock a request may be; 0 does not look.
	RequestTTL time.Duration
}

// JobOptions are how jobs are found, awaited and kept. The zero value keeps jobs for a day.
type JobOptions struct {
	// Nodegroups is Salt's nodegroups.
	Nodegroups map[string]any
	// Timeout is how long Run waits for news before it asks minions whether a job still runs, GatherTimeout how long
	// for their answer; 0 means 5 s and 10 s.
	Timeout, GatherTimeout time.Duration
	// UniqueJID is Salt's unique_jid: job ids end with the process id.
	UniqueJID bool

	// Keep is how long jobs are kept; 0 means a day, below 0 for ever.
	Keep time.Duration
	// Max is how many jobs are kept, the newest, looked after every LoopInterval; 0 means as many as Keep leaves. A
	// store in memory has its own bound. Jobs of orders that are open stay.
	Max int
	// MaxBytes is about how large the store may be, looked after as often: the oldest jobs go. 0 is an eighth of the
	// disk that has the file of store/sqlite, below 0 no bound. It is for store/sqlite, whose file does not grow
	// beyond it for long but does not shrink either, and stores in memory; what a database server takes is not
	// measured.
	MaxBytes int64
	// MaxUnordered is how many bytes of returns that no job asked for one minion may have stored within an hour:
	// those of salt-call, schedules and start-up states, of job ids that this master does not know, and of jobs that
	// do not name the minion. Each counts at least 4 KiB. What is more is not acknowledged, so that minions keep it
	// until there is room. 0 means DefaultMaxUnordered, below 0 no bound.
	MaxUnordered int64
}

// OrderOptions bound and check orders. The zero value lets an order wait for a day.
type OrderOptions struct {
	// TTL is how long an order waits for its minions where it does not say so itself; 0 means DefaultTTL, below 0 for
	// ever.
	TTL time.Duration
	// LostAfter is how long a minion may be silent after a job was sent to it, before the job counts as lost; 0 means
	// an hour.
	LostAfter time.Duration
	// MaxUnfinished is how many deliveries, each an order to one minion, may be open in the store before PlaceOrder
	// answers ErrBusy; 0 means DefaultMaxUnfinished, below 0 no bound. Those that wait for absent minions count.
	MaxUnfinished int
	// MaxUnfinishedTenant is the same for the orders of one tenant, so that none keeps the others out: as many as may
	// be open to its minions; 0 means half of MaxUnfinished, below 0 no bound of its own.
	MaxUnfinishedTenant int
	// Limits bound what orders carry. Zero fields are 100 files of 256 MiB together, a pillar and sealed arguments of
	// 1 MiB each, and 4 GiB for all open orders (256 MiB in a store in memory).
	Limits content.Limits
	// Authorize is asked for every minion of an order, before the order is stored; an error refuses it for this minion.
	Authorize func(ctx context.Context, o Order, id string) error
}

// FileOptions are what minions read under salt://, and may push. The zero value serves no files.
type FileOptions struct {
	// FS is served as environment "base".
	FS fs.FS
	// Roots is Salt's file_roots: environments and their directories.
	Roots map[string][]string
	// FollowSymlinks lets links in Roots lead out of them. Salt does so by default; this master does not.
	FollowSymlinks bool
	// IgnoreSymlinks leaves links out of listings.
	IgnoreSymlinks bool
	// Backends are further sources of files, searched after Roots and FS.
	Backends []fileserver.Backend
	// IgnoreRegex and IgnoreGlob hide files.
	IgnoreRegex, IgnoreGlob []string
	// Access, when set, reports whether a minion may see a path of an environment. Listings are filtered by it.
	Access func(f FileRequest) bool
	// HashType is Salt's hash_type; empty means sha256.
	HashType string
	// ListCache is how long listings of files are kept (fileserver_list_cache_time); 0 means 20 s, below 0 not at all.
	ListCache time.Duration
	// BufferSize is how many bytes of a file one reply carries; 0 means 1 MiB.
	BufferSize int
	// Recv lets minions push files into CacheDir (cp.push).
	Recv bool
	// RecvMaxSize bounds one pushed file, RecvQuota all of one minion, in bytes; 0 means 100 MiB and 1 GiB.
	RecvMaxSize, RecvQuota int64
}

// FileRequest is a minion that wants to see a path.
type FileRequest struct {
	ID string
	// Tenant is the tenant that the minion belongs to, "" for none.
	Tenant string
	// Env is the environment, Path a path in it without ".." and a slash at its beginning.
	Env, Path string
}

// PillarOptions are the sources of pillars. The zero value gives every minion an empty one.
type PillarOptions struct {
	// Func makes pillars. With Roots it is merged over what the files say.
	Func pillar.Func
	// Roots is Salt's pillar_roots: environments and directories with a top file. Files is the same with more options.
	Roots map[string][]string
	Files *pillar.Roots
	// CacheTTL is how long a minion's pillar is given again instead of being made anew (Salt's pillar_cache and
	// pillar_cache_ttl), 0 not at all. They are kept in CacheDir/pillar_cache in Salt's layout, CacheInMemory or
	// without a CacheDir in memory.
	CacheTTL      time.Duration
	CacheInMemory bool
	// NoDataCache keeps pillars out of the cache of minion data. Pillar targets then match no minion here.
	NoDataCache bool
}

// MinionOptions are what minions are told of the master, and may ask of it and of each other. The zero value lets none
// publish, and all read the mine.
type MinionOptions struct {
	// Opts are answers of _master_opts over Salt's defaults: renderer, state_top, failhard, …
	Opts map[string]any
	// Tops answers _master_tops: environments and lists of states for a minion.
	Tops func(ctx context.Context, id string, opts map[string]any) (map[string]any, error)
	// Peer is Salt's peer: which minions (regular expression) may publish what. A rule is a regular expression of
	// functions, on all minions, or a map of one compound target to functions, and conditions for their arguments, as
	// in publisher_acl. Expressions must match in full. No minion may by default.
	Peer map[string][]any
	// PeerRun is Salt's peer_run for Runner.
	PeerRun map[string][]string
	// Runner runs a runner function for a minion that PeerRun allows.
	Runner func(ctx context.Context, id, fun string, args []any, kwargs map[string]any) (any, error)
	// MineGet is Salt's mine_get: which minions (regular expression) may read which mine functions. nil allows all.
	MineGet map[string][]string
	// NoKeyRevoke refuses minions that want their own key deleted (allow_minion_key_revoke: False).
	NoKeyRevoke bool
	// NoDataCache keeps grains and mine out of the cache (minion_data_cache: False).
	NoDataCache bool
}

// EventOptions are who hears of events, who fires them, and which are kept. The zero value has no hooks, and lets
// minions fire what stock's do.
type EventOptions struct {
	// Hooks hear of events.
	Hooks []Hook
	// Access, when set, reports whether a minion may fire a tag. It is not asked about tags that no minion may fire,
	// such as salt/auth, nor about those by which minions report about themselves, such as salt/minion/<id>/start,
	// nor about those that EnsureMinion or GrantEvents grants to one. See EventRules.
	Access func(e EventRequest) bool
	// History bounds the events that Follow can go back to.
	History events.LogLimits
	// Keep are shell patterns of tags. Events of announced minions whose tag one of them matches are stored with the
	// minion before they are acknowledged, up to 256 and 64 KiB of each minion, and outlive the master; see
	// Master.KeptEvents.
	Keep []string
	// Presence fires salt/presence events every LoopInterval.
	Presence bool
	// NoAuth fires no salt/auth events.
	NoAuth bool
}

// withDefaults fills zero fields and refuses what cannot work.
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
	setDefault(&o.Orders.MaxUnfinishedTenant, max(-1, (o.Orders.MaxUnfinished+1)/2))
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

// check refuses what cannot work, of options whose zero fields are filled.
func (o Options) check() error {
	if !crypt.ValidSigning(o.Security.SigningAlgorithm) {
		return fmt.Errorf("signing algorithm %q is unknown", o.Security.SigningAlgorithm)
	}
	if o.Security.FIPS && !crypt.FIPS(o.Security.SigningAlgorithm) {
		return fmt.Errorf("signing algorithm %s is not allowed in FIPS mode",
			o.Security.SigningAlgorithm)
	}
	if o.Security.FIPS && (o.Files.HashType == "md5" || o.Files.HashType == "sha1") {
		return fmt.Errorf("hash type %s is not allowed in FIPS mode", o.Files.HashType)
	}
	if o.Security.MinimumVersion < 2 || o.Security.MinimumVersion > protocol.Version {
		return fmt.Errorf("minimum version %d is not 2 or %d", o.Security.MinimumVersion,
			protocol.Version)
	}
	for i, a := range o.Keys.Acceptors {
		if a.Judge == nil {
			return fmt.Errorf("acceptor %d has no Judge", i+1)
		}
	}
	for i, h := range o.Events.Hooks {
		if h.Func == nil {
			return fmt.Errorf("hook %d has no Func", i+1)
		}
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
