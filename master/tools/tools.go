// Package tools answers Salt's command line tools on the master's host: salt, salt-key and salt-run of 3006 to
// 3008. They read key files, listen to the sockets of the event bus, and send clear requests with such a key, a
// token, or a name and password.
//
//	request ──► from this host? ──► who asks: key, token, name and password
//	                                   │
//	                                   ├── publish: denied? allowed by rules? ──► Publisher
//	                                   ├── runner, wheel: allowed by rules? ──► Caller
//	                                   ├── returns of a job: one's own, or root's ──► store
//	                                   └── tokens
//
// Salt's sources are salt/master.py (ClearFuncs), salt/auth/__init__.py and salt/daemons/masterapi.py.
package tools

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/master/audit"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/jobcache"
	"github.com/brine-salt/brine/master/targets"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/events/ipc"
)

// Job is an authorized request of a tool to publish.
type Job struct {
	// Fun, Arg, Tgt, TgtType and the rest are as received.
	Fun                     any
	Arg                     []any
	Tgt                     any
	TgtType, Delimiter, Ret string
	// User is the caller. JID is the tool's job id, or "".
	User, JID string
	// Load is the form for the store. Extra holds additional fields for the minions.
	Load, Extra map[string]any
	// NoCache does not store the job and its returns.
	NoCache bool
}

// Publisher publishes jobs.
type Publisher interface {
	// PublishFor publishes a job under its id, which may exist already, and returns its minions. The error is a
	// *targets.NoMinionsError if its target matches no minion.
	PublishFor(ctx context.Context, j Job) (jid string, minions, missing []string, err error)
}

// Caller calls functions of the master.
type Caller interface {
	// CallFor calls a runner or wheel function. It returns ErrNoFunction if the function is missing.
	CallFor(ctx context.Context, c Call) (CallResult, error)
}

// Options configure a Server. Fields that may be left out say so.
type Options struct {
	// Dir is the directory of the users' key files and the job cache. HashType determines the latter's
	// directories.
	Dir, HashType string
	// Events are the addresses of Bus. WriteBuffer is how many bytes of events may be pending for a client; 0
	// means 32 MiB.
	Events      ipc.Sockets
	WriteBuffer int
	// User is the user that the master runs as; empty means root.
	User string
	// ACL is Salt's publisher_acl. With SudoACL it also applies to users who call through sudo.
	ACL     map[string][]any
	SudoACL bool
	// DeniedUsers and DeniedFunctions are Salt's publisher_acl_blacklist.
	DeniedUsers, DeniedFunctions []string
	// Auth verifies passwords and tokens; nil refuses tools that use them.
	Auth *eauth.Auth
	// AnyHost accepts tools on other hosts.
	AnyHost bool
	// NoJobCache does not write jobs to Dir/jobs.
	NoJobCache bool

	Publisher Publisher
	// Caller is nil if there are no functions of the master.
	Caller  Caller
	Targets *targets.Finder
	// Store holds jobs and returns. The Server combines it with the job cache: see Server.Store.
	Store   store.Store
	Bus     *events.Bus
	Account *audit.Account
	Log     *slog.Logger
}

// localRate and localBurst limit the failed log-ins per name and address, per second and at once.
const localRate, localBurst = 1, 20

// Server answers tools. Its methods are safe for concurrent use.
type Server struct {
	Options
	rules    *eauth.Auth                // evaluates rules; it has no log-ins
	keys     map[string]string          // by user; never modified
	ipc      atomic.Pointer[ipc.Server] // requests may arrive before the sockets are open
	store    store.Store
	cache    *jobcache.Store
	behind   *jobcache.Behind // nil without a database
	tries    *ratelimit.Attempts
	refusals *ratelimit.Limiter // for log lines about refused calls, by source
	addrs    []netip.Addr       // of this host
}

// hostAddrs returns the addresses of this host.
func hostAddrs() []netip.Addr {
	var out []netip.Addr
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap())
		}
	}
	return out
}

// IsLocal reports whether a peer is this host.
func (s *Server) IsLocal(peer string) bool {
	ap, err := netip.ParseAddrPort(peer)
	if err != nil {
		return false
	}
	a := ap.Addr().Unmap().WithZone("")
	return a.IsLoopback() || slices.Contains(s.addrs, a)
}

// Open prepares key files and job cache; Listen opens the sockets later.
func Open(o Options) (*Server, error) {
	if o.User == "" {
		o.User = "root"
	}
	rules, err := eauth.New(eauth.Options{Match: o.Targets.Find})
	if err != nil {
		return nil, err
	}
	s := &Server{Options: o, rules: rules, keys: make(map[string]string), store: o.Store,
		addrs:    hostAddrs(),
		tries:    ratelimit.NewAttempts(localRate, localBurst),
		refusals: ratelimit.New(refusalRate, refusalBurst)}
	dir, err := confined.Open(o.Dir, 0o750)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := dir.Mkdir("proc", 0o750); err != nil { // salt-run 3008 writes there
		return nil, fmt.Errorf("cannot create directory of running jobs: %w", err)
	}
	for _, u := range append(aclUsers(o.ACL), "root", o.User) {
		if err := s.userKey(dir, u); err != nil {
			return nil, err
		}
	}
	if o.NoJobCache {
		return s, nil
	}
	if s.cache, err = jobcache.Open(o.Dir+"/jobs", o.HashType); err != nil {
		return nil, err
	}
	first, ok := o.Store.(store.Paged)
	if !ok { // a memory store is lost with the process; the files remain
		s.store = store.Multi(o.Store, s.cache)
		return s, nil
	}
	if s.behind, err = s.cache.Behind(first, s.Log); err != nil {
		s.cache.Close()
		return nil, err
	}
	s.store = s.behind
	return s, nil
}

// Store returns the store to use instead of Options.Store. It also writes to the job cache.
func (s *Server) Store() store.Store { return s.store }

// Key returns the key of a user's tools, or "".
func (s *Server) Key(user string) string { return s.keys[user] }

// Listen opens the sockets of the event bus.
func (s *Server) Listen() error {
	bus, err := ipc.Listen(s.Bus, ipc.Options{Sockets: s.Events, Buffer: s.WriteBuffer, Log: s.Log})
	if err != nil {
		return err
	}
	s.ipc.Store(bus)
	return nil
}

// Stop closes the sockets.
func (s *Server) Stop() error {
	if bus := s.ipc.Load(); bus != nil {
		return bus.Close()
	}
	return nil
}

// admit accepts the pending connections to the event bus. A program that sends a request listens already, and
// must not miss its events.
func (s *Server) admit() {
	if bus := s.ipc.Load(); bus != nil {
		bus.Admit()
	}
}

// Close closes the job cache.
func (s *Server) Close() {
	if s.behind != nil {
		if err := s.behind.Close(); err != nil {
			s.Log.Error("Cannot close", "err", err)
		}
	}
	if s.cache != nil {
		s.cache.Close()
	}
}

// refusalRate and refusalBurst limit the log lines about refused calls per source, per second and at once.
const refusalRate, refusalBurst = 1, 20

// warnRefused logs a refused call. Beyond the limit per source it logs at debug level.
func (s *Server) warnRefused(peer, msg string, args ...any) {
	level := slog.LevelWarn
	// guard: log-flood master:TestRefusalsDoNotFillTheLogs
	if !s.refusals.Allow(peer, time.Now()) {
		level = slog.LevelDebug
	}
	s.Log.Log(context.Background(), level, msg, args...)
}

// Serve answers a tool's request. load is for checks. ordered returns the load with its maps as
// payload.OrderedMap, for values that are passed on.
func (s *Server) Serve(ctx context.Context, peer, cmd string, load map[string]any,
	ordered func() map[string]any) any {
	// guard: CVE-2020-11651,tools-of-other-hosts TestToolsOfOtherHosts
	if _, err := netip.ParseAddrPort(peer); err == nil && !s.AnyHost && !s.IsLocal(peer) {
		s.warnRefused(peer, "request refused: it does not come from this host", "cmd", cmd, "peer",
			peer)
		return map[string]any{}
	}
	switch cmd {
	case "publish":
		return s.publish(ctx, peer, load, ordered)
	case "mk_token":
		return s.makeToken(ctx, peer, load)
	case "get_token":
		return s.getToken(load)
	case protocol.ReturnsCmd:
		return s.returns(ctx, peer, load)
	}
	return s.call(ctx, peer, cmd, load, ordered)
}
