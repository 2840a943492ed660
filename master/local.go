package master

import (
	"context"

	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/tools"
	"github.com/brine-salt/brine/protocol/events/ipc"
)

// Local makes a stand-alone master usable by Salt's own command line tools on its host (salt, salt-key, salt-run of
// every line): event sockets, key files for users, clear publish requests, and the job cache directory.
type Local struct {
	// SockDir is Salt's sock_dir.
	SockDir string
	// Events are the addresses of the event bus; none means sockets below SockDir. See [ipc.Ports] for Salt's
	// ipc_mode: tcp.
	Events ipc.Sockets
	// WriteBuffer is Salt's ipc_write_buffer: how many bytes of events may wait for a client; 0 means 32 MiB.
	WriteBuffer int
	// User is the user that the master runs as; empty means root.
	User string
	// ACL is Salt's publisher_acl: users other than root and User (names, globs or regular expressions), and rules
	// for what they may publish, in the form of external_auth: functions (regular expressions, in full) for any
	// minion, or maps of minions to functions, with conditions for arguments. Users that a pattern means have a key
	// file when they are in this host's list of users at the start.
	ACL map[string][]any
	// SudoACL is Salt's sudo_acl: the rules of ACL also bind users who come through sudo.
	SudoACL bool
	// DeniedUsers and DeniedFunctions are Salt's publisher_acl_blacklist, which counts for everybody: see
	// Master.Denied.
	DeniedUsers, DeniedFunctions []string
	// Auth checks names and passwords, and tokens, for tools that show them in place of a key file (external_auth);
	// nil refuses such tools.
	Auth *eauth.Auth
	// Call runs a runner or wheel function for a tool; nil means there are none. See package master/runner.
	Call func(ctx context.Context, c MasterCall) (MasterResult, error)
	// AnyHost lets tools on other hosts in, if they have a key file or a login. By default they must be on this host.
	AnyHost bool
	// NoJobCache keeps jobs out of CacheDir/jobs. Stock salt then cannot wait for results.
	NoJobCache bool
}

// MasterCall is a runner or wheel function that a tool asks for.
type MasterCall = tools.Call

// ErrNoFunction is what Local.Call says of a function that it does not have.
var ErrNoFunction = tools.ErrNoFunction

// MasterResult is where the events of a call are found, and its result if it was waited for.
type MasterResult = tools.CallResult

// toolHost is the master as command line tools see it.
type toolHost struct{ m *Master }

var (
	_ tools.Publisher = toolHost{}
	_ tools.Caller    = toolHost{}
)

// openTools prepares the answers to command line tools, and has the job cache stand behind the store.
func (m *Master) openTools() (err error) {
	o, l := m.opts, *m.opts.Local
	t := tools.Options{Dir: o.CacheDir, HashType: o.Files.HashType, Events: l.Events,
		WriteBuffer: l.WriteBuffer, User: l.User, ACL: l.ACL, SudoACL: l.SudoACL,
		DeniedUsers: l.DeniedUsers, DeniedFunctions: l.DeniedFunctions, Auth: l.Auth,
		AnyHost: l.AnyHost, NoJobCache: l.NoJobCache, Publisher: toolHost{m}, Targets: m.targets,
		Store: m.store, Bus: m.events, Account: m.account, Log: m.log}
	if t.Events.Pub == "" {
		t.Events = ipc.Master(l.SockDir)
	}
	if l.Call != nil {
		t.Caller = toolHost{m}
	}
	if m.local, err = tools.Open(t); err == nil {
		m.store = m.local.Store()
	}
	return err
}

// PublishFor implements tools.Publisher.
func (h toolHost) PublishFor(ctx context.Context,
	j tools.Job) (jid string, minions, missing []string, err error) {
	out, err := h.m.publish(ctx, publication{fun: j.Fun, arg: j.Arg, tgt: j.Tgt, tgtType: j.TgtType,
		delimiter: j.Delimiter, ret: j.Ret, user: j.User, jid: j.JID, load: j.Load, extra: j.Extra,
		again: true, noCache: j.NoCache})
	return out.JID, out.Minions, out.Missing, err
}

// CallFor implements tools.Caller. Local.Call is set.
func (h toolHost) CallFor(ctx context.Context, c MasterCall) (MasterResult, error) {
	return h.m.opts.Local.Call(ctx, c)
}

// LocalKey is what a user's command line tools on this host show to the master, "" without Options.Local or for a
// user who has none.
func (m *Master) LocalKey(user string) string {
	if m.local == nil {
		return ""
	}
	return m.local.Key(user)
}

// Denied reports whether Local.DeniedUsers or Local.DeniedFunctions keep somebody from publishing functions. As in
// Salt that counts for every job, whoever it comes from: tools, the HTTP interface, runners, the reactor, minions
// (Peer) and the program itself. Only the master's own questions to minions, whether they listen and whether a job
// runs, are exempt.
func (m *Master) Denied(user string, funs ...string) bool {
	return m.local != nil && m.local.Denies(user, funs...)
}
