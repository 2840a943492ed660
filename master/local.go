package master

import (
	"context"

	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/tools"
	"github.com/brine-salt/brine/protocol/events/ipc"
)

// Local lets Salt's command line tools on this host (salt, salt-key, salt-run, of 3006 to 3008) use the master.
// It provides event sockets, key files for users, clear publish requests, and the job cache directory.
type Local struct {
	// SockDir is Salt's sock_dir.
	SockDir string
	// Events are the addresses of the event bus; the zero value means sockets below SockDir. See [ipc.Ports]
	// for Salt's ipc_mode: tcp.
	Events ipc.Sockets
	// WriteBuffer is Salt's ipc_write_buffer: how many bytes of events may be pending for a client; 0 means 32
	// MiB.
	WriteBuffer int
	// User is the user that the master runs as; empty means root.
	User string
	// ACL is Salt's publisher_acl. Keys are users other than root and User (names, globs or regular
	// expressions). Values are rules in the form of external_auth: functions (regular expressions that match in
	// full) for any minion, or maps from minions to functions, with conditions for arguments. Users that match
	// a pattern get a key file if this host's user database lists them at start.
	ACL map[string][]any
	// SudoACL is Salt's sudo_acl: the rules of ACL also apply to users who call through sudo.
	SudoACL bool
	// DeniedUsers and DeniedFunctions are Salt's publisher_acl_blacklist, which applies to all callers; see
	// Master.Denied.
	DeniedUsers, DeniedFunctions []string
	// Auth verifies passwords and tokens of tools that have no key file (external_auth). If it is nil, such
	// tools are refused.
	Auth *eauth.Auth
	// Call runs a runner or wheel function for a tool; nil means that there are none. See package
	// master/runner.
	Call func(ctx context.Context, c MasterCall) (MasterResult, error)
	// AnyHost accepts tools on other hosts if they have a key file or log in. By default tools must be on this
	// host.
	AnyHost bool
	// NoJobCache does not write jobs to CacheDir/jobs. The stock salt command then cannot wait for results.
	NoJobCache bool
}

// MasterCall is a tool's request to call a runner or wheel function.
type MasterCall = tools.Call

// ErrNoFunction is returned by Local.Call for a function that does not exist.
var ErrNoFunction = tools.ErrNoFunction

// MasterResult holds the job id and event tag of a call, and its result if the call was waited for.
type MasterResult = tools.CallResult

// toolHost implements tools.Publisher and tools.Caller.
type toolHost struct{ m *Master }

var (
	_ tools.Publisher = toolHost{}
	_ tools.Caller    = toolHost{}
)

// openTools prepares the server for command line tools, and adds the job cache to the store.
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

// CallFor implements tools.Caller. It requires Local.Call.
func (h toolHost) CallFor(ctx context.Context, c MasterCall) (MasterResult, error) {
	return h.m.opts.Local.Call(ctx, c)
}

// LocalKey returns the key with which a user's command line tools on this host authenticate. It is empty
// without Options.Local, or if the user has none.
func (m *Master) LocalKey(user string) string {
	if m.local == nil {
		return ""
	}
	return m.local.Key(user)
}

// Denied reports whether Local.DeniedUsers or Local.DeniedFunctions deny a user or functions. As in Salt, this
// applies to every job: from tools, the HTTP interface, runners, the reactor, minions (Peer) and the program
// itself. Only the master's own probes and status queries are exempt.
func (m *Master) Denied(user string, funs ...string) bool {
	return m.local != nil && m.local.Denies(user, funs...)
}
