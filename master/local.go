package master

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/user"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/master/requests/door"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/jobcache"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// Local makes a stand-alone master usable by Salt's own command line tools on its host (salt, salt-key, salt-run of every
// line): event sockets, key files for users, clear publish requests, and the job cache directory.
type Local struct {
	// SockDir is Salt's sock_dir.
	SockDir string
	// Events are the addresses of the event bus; none means sockets below SockDir. See [ipc.Ports] for Salt's ipc_mode: tcp.
	Events ipc.Sockets
	// WriteBuffer is Salt's ipc_write_buffer: how many bytes of events may wait for a client; 0 means 32 MiB.
	WriteBuffer int
	// User is the user that the master runs as; empty means root.
	User string
	// ACL is Salt's publisher_acl: users other than root and User (names, globs or regular expressions), and rules for what they may
	// publish, in the form of external_auth: functions (regular expressions, in full) for any minion, or maps of minions to functions, with
	// conditions for arguments. Users that a pattern means have a key file when they are in this host's list of users at the start.
	ACL map[string][]any
	// SudoACL is Salt's sudo_acl: the rules of ACL also bind users who come through sudo.
	SudoACL bool
	// DeniedUsers and DeniedFunctions are Salt's publisher_acl_blacklist, which counts for everybody: see Master.Denied.
	DeniedUsers, DeniedFunctions []string
	// Auth checks names and passwords, and tokens, for tools that show them in place of a key file (external_auth); nil refuses
	// such tools.
	Auth *eauth.Auth
	// Call runs a runner or wheel function for a tool; nil means there are none. See package master/runner.
	Call func(ctx context.Context, c MasterCall) (MasterResult, error)
	// AnyHost lets tools on other hosts in, if they have a key file or a login. By default they must be on this host.
	AnyHost bool
	// NoJobCache keeps jobs out of CacheDir/jobs. Stock salt then cannot wait for results.
	NoJobCache bool
}

// localRate and localBurst bound the log-ins of one name from one address that fail, a second and at once.
const localRate, localBurst = 1, 20

// local is a running Local.
type local struct {
	m      *Master
	opts   Local
	keys   map[string]string          // by user; never changed
	ipc    atomic.Pointer[ipc.Server] // requests may come before the sockets are open
	cache  *jobcache.Store
	behind *jobcache.Behind // nil without a database
	tries  *ratelimit.Attempts
	addrs  []netip.Addr // of this host
}

// hostAddrs are the addresses of this host.
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

// LocalKey is what a user's command line tools on this host show to the master, "" without Options.Local or for a user who has none.
func (m *Master) LocalKey(user string) string {
	if m.local == nil {
		return ""
	}
	return m.local.keys[user]
}

// IsLocal implements door.Tools.
func (l *local) IsLocal(peer string) bool {
	ap, err := netip.ParseAddrPort(peer)
	if err != nil {
		return false
	}
	a := ap.Addr().Unmap().WithZone("")
	return a.IsLoopback() || slices.Contains(l.addrs, a)
}

// openLocal prepares key files and job cache; listen opens the sockets later.
func openLocal(m *Master, o Local) (*local, error) {
	setDefault(&o.User, "root")
	l := &local{m: m, opts: o, keys: make(map[string]string), addrs: hostAddrs(), tries: ratelimit.NewAttempts(localRate, localBurst)}
	dir, err := confined.Open(m.opts.CacheDir, 0o750)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := dir.Mkdir("proc", 0o750); err != nil { // salt-run 3008 writes there
		return nil, fmt.Errorf("cannot create directory of running jobs: %w", err)
	}
	for _, u := range aclUsers(o.ACL) {
		if err := l.userKey(dir, u); err != nil {
			return nil, err
		}
	}
	for _, u := range []string{"root", o.User} {
		if err := l.userKey(dir, u); err != nil {
			return nil, err
		}
	}
	if o.NoJobCache {
		return l, nil
	}
	if l.cache, err = jobcache.Open(m.opts.CacheDir+"/jobs", m.opts.HashType); err != nil {
		return nil, err
	}
	first, ok := m.store.(store.Paged)
	if !ok { // it is gone with the process: the files are what stays
		m.store = store.Multi(m.store, l.cache)
		return l, nil
	}
	if l.behind, err = l.cache.Behind(first, m.log); err != nil {
		l.cache.Close()
		return nil, err
	}
	m.store = l.behind
	return l, nil
}

// closeCache closes the job cache.
func (l *local) closeCache(log *slog.Logger) {
	if l.behind != nil {
		if err := l.behind.Close(); err != nil {
			log.Error("cannot close", "err", err)
		}
	}
	if l.cache != nil {
		l.cache.Close()
	}
}

// aclUsers are those that get a key file: the names of rules, and the users of this host that patterns mean.
func aclUsers(acl map[string][]any) []string {
	var out []string
	for name := range acl {
		if regexp.QuoteMeta(name) == strings.ReplaceAll(name, ".", `\.`) && !strings.Contains(name, "/") {
			out = append(out, name)
		}
	}
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil || len(out) == len(acl) {
		return out
	}
	for line := range strings.Lines(string(passwd)) {
		name, _, _ := strings.Cut(line, ":")
		if !slices.Contains(out, name) && len(rulesOf(acl, name)) > 0 {
			out = append(out, name)
		}
	}
	return out
}

// rulesOf are the rules for a user.
func rulesOf(acl map[string][]any, user string) []any {
	var out []any
	for _, name := range slices.Sorted(maps.Keys(acl)) {
		if eauth.MatchName(name, user) {
			out = append(out, acl[name]...)
		}
	}
	return out
}

// userKey reads a user's key file, or makes it (salt/daemons/masterapi.py, mk_key): "." + name + "_key", with a
// backslash of Windows names as "_".
func (l *local) userKey(dir *confined.Dir, name string) error {
	if name == "" || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("user name %q is none", name)
	}
	file := "." + strings.ReplaceAll(name, `\`, "_") + "_key"
	b, _, err := dir.Read(file, 1024)
	if err == nil {
		var key *crypt.Key
		if key, err = crypt.ParseKey(string(b)); err == nil {
			l.keys[name] = key.Text()
			return nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, confined.ErrTooLarge) {
		return fmt.Errorf("cannot read key of user %q: %w", name, err)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		l.m.log.Warn("a damaged key file of a user is made again", "file", dir.Path()+"/"+file, "err", err)
	}
	key, err := crypt.NewKey()
	if err != nil {
		return err
	}
	if err := dir.Write(file, []byte(key.Text()), 0o600, true); err != nil {
		return fmt.Errorf("cannot write key of user %q: %w", name, err)
	}
	l.keys[name] = key.Text()
	if os.Geteuid() != 0 || name == "root" {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		l.m.log.Warn("user of publisher_acl is unknown", "user", name)
		return nil
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil // not a Unix id
	}
	if err := os.Chown(dir.Path()+"/"+file, uid, -1); err != nil {
		return fmt.Errorf("cannot give key file to user %q: %w", name, err)
	}
	return nil
}

func (l *local) listen() error {
	o := ipc.Options{Sockets: l.opts.Events, Buffer: l.opts.WriteBuffer, Log: l.m.log}
	if o.Sockets.Pub == "" {
		o.Sockets = ipc.Master(l.opts.SockDir)
	}
	s, err := ipc.Listen(l.m.events, o)
	if err != nil {
		return err
	}
	l.ipc.Store(s)
	return nil
}

func (l *local) close() error {
	var errs []error
	if s := l.ipc.Load(); s != nil {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// refusalRate and refusalBurst bound the log lines about refused calls of one source, in lines a second and at once.
const refusalRate, refusalBurst = 1, 20

// warnRefused logs a refused call. Of many, from one source, some are logged at debug only.
func (m *Master) warnRefused(peer, msg string, args ...any) {
	level := slog.LevelWarn
	// guard: log-flood TestRefusalsDoNotFillTheLogs
	if !m.refusals.Allow(peer, time.Now()) {
		level = slog.LevelDebug
	}
	m.log.Log(context.Background(), level, msg, args...)
}

func clearError(name string) map[string]any {
	message := map[string]string{"AuthenticationError": "Authentication error occurred.", "AuthorizationError": "Authorization error occurred."}[name]
	return map[string]any{"error": map[string]any{"name": name, "message": message}}
}

// publish answers the publish request of a command line tool (salt/master.py, ClearFuncs.publish).
func (l *local) publish(ctx context.Context, peer string, load map[string]any, ordered func() map[string]any) any {
	kwargs, _ := payload.Map(load["kwargs"])
	args, _ := payload.List(load["arg"])
	who, err := l.ask(ctx, peer, load, kwargs)
	name := who.name
	entry := AuditEntry{Via: "local", From: peer, User: name, EAuth: fields.Text(kwargs, "eauth"), Kind: "local", Fun: fields.Functions(load["fun"]), TgtType: fields.Text(load, "tgt_type"), Tgt: load["tgt"], Outcome: AuditDenied}
	defer func() { l.m.Audit(entry) }()
	if err != nil {
		l.m.warnRefused(peer, "publish refused", "user", fields.Brief(name), "peer", peer, "err", err)
		return clearError("AuthenticationError")
	}
	tgtType, tgt, may := l.mayPublish(who, load, args)
	if !may || l.denied(who, load) {
		l.m.warnRefused(peer, "publish refused: not allowed", "user", fields.Brief(name), "fun", load["fun"], "peer", peer)
		return clearError("AuthorizationError")
	}
	saved := maps.Clone(load)
	delete(saved, "key")
	if list, ok := payload.List(ordered()["arg"]); ok {
		args, saved["arg"] = list, list
	}
	if who.external {
		saved["kwargs"] = withoutSecrets(kwargs)
	}
	p := publication{fun: load["fun"], arg: args, tgt: tgt, tgtType: tgtType, delimiter: fields.Text(kwargs, "delimiter"),
		ret: fields.Text(load, "ret"), user: name, jid: fields.Text(load, "jid"), load: saved, extra: make(map[string]any), again: true,
		noCache: pytext.Truth(kwargs["nocache"])}
	protocol.PublishedKwargs(p.extra, kwargs)
	if to, ok := load["to"]; ok {
		p.extra["to"] = to
	}
	if s := l.ipc.Load(); s != nil {
		s.Admit() // the program listens already, and must not miss the first returns
	}
	out, err := l.m.publish(ctx, p)
	entry.Outcome, entry.JID = AuditAllowed, out.JID
	switch {
	case isNoMinions(err), target.Unusable(err): // as stock answers: a target that cannot be understood matches no minion
		l.m.log.Info("no minion matches", "user", name, "err", err)
		return map[string]any{"enc": "clear", "load": map[string]any{"jid": nil, "minions": []any{}, "error": (&NoMinionsError{Tgt: tgt}).Error()}}
	// guard: disk-full-in-words TestPublishWithoutRoom
	case err != nil:
		entry.Outcome = AuditFailed
		l.m.log.Error("cannot publish", "user", name, "err", err)
		// Not a load without minions: clients print that as a target that matches none.
		return map[string]any{"error": map[string]any{"name": "SaltMasterError", "message": err.Error()}}
	}
	// guard: CVE-2015-6918,CVE-2015-6941,CVE-2021-25284 master:TestT7NoSecretsInLogs instead: l.m.log.Info("user published job", "load", load)
	l.m.log.Info("user published job", "user", name, "fun", load["fun"], "jid", out.JID)
	return map[string]any{"enc": "clear", "load": map[string]any{"jid": out.JID, "minions": nested.Anys(out.Minions), "missing": nested.Anys(out.Missing)}}
}

var _ door.Tools = (*local)(nil)

// Serve implements door.Tools.
func (l *local) Serve(ctx context.Context, peer, cmd string, load map[string]any, ordered func() map[string]any) any {
	// guard: CVE-2020-11651,tools-of-other-hosts TestToolsOfOtherHosts
	if _, err := netip.ParseAddrPort(peer); err == nil && !l.opts.AnyHost && !l.IsLocal(peer) {
		l.m.warnRefused(peer, "request refused: it does not come from this host", "cmd", cmd, "peer", peer)
		return map[string]any{}
	}
	switch cmd {
	case "publish":
		return l.publish(ctx, peer, load, ordered)
	case "mk_token":
		return l.makeToken(ctx, peer, load)
	case "get_token":
		return l.getToken(load)
	case protocol.ReturnsCmd:
		return l.returns(ctx, peer, load)
	}
	return l.call(ctx, peer, cmd, load, ordered)
}
