package minion

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/brine-salt/brine/minion/beacon"
	"github.com/brine-salt/brine/minion/policy"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
)

// Options are everything a minion is told from outside.
type Options struct {
	// Opts is the configuration under Salt's names, with defaults filled in and paths joined to root_dir. "id" must be
	// set. Missing options have Salt's defaults, but without "sock_dir" no event sockets are opened. It must not be
	// changed afterwards.
	Opts map[string]any
	// Load reads the configuration anew for [Minion.Reload]; nil means that a reload keeps Opts.
	Load func() (map[string]any, error)
	// OptsOrder gives, for Opts or what Load gave last, the order of keys in the values of options, where templates are
	// to see another one than that of the text: maps of the same shape, whose other values do not count. nil means that
	// no order is known.
	OptsOrder func() payload.OrderedMap
	// Log receives messages; nil is silent.
	Log *slog.Logger
	// Registry holds the execution functions; nil is modules.Default().
	Registry *modules.Registry
	// Dialers are the transports by the name that the option transport has. Not needed for local calls.
	Dialers map[string]transport.Dialer
	// Wrap puts a layer, TLS, over connections to the master, see transport.ClientOptions.
	Wrap func(ctx context.Context, c net.Conn, host string) (net.Conn, error)
	// Lookup resolves the name of a master whose address may have changed; nil is the system's resolver.
	Lookup func(ctx context.Context, host string) ([]string, error)
	// Grains gathers the grains from the configuration; nil means only the option grains. What is a payload.OrderedMap
	// keeps its order in templates.
	Grains func(ctx context.Context, opts map[string]any) map[string]any
	// Files makes the file client. Request asks the master; it is nil in local calls. nil means that there is none.
	Files func(opts map[string]any, request FileRequest) modules.Files
	// Seal is what the owner of the host leaves of the agent; nil is no seal. It must also be in Runner
	// (runcmd.Runner.Permit), where programs are found.
	Seal *policy.Seal
	// Restrict is called once before the minion does anything for a master or salt-call, when keys, journal and event
	// sockets are open: a sealed program asks the kernel there. Its error ends the minion. nil is nothing.
	Restrict func() error
	// Runner runs programs; nil means that functions cannot run any.
	Runner modules.Runner
	// Templates renders templates and state files for functions (package states/render); nil means that there are no
	// renderers.
	Templates func(ctx context.Context, c *modules.Call, t modules.Template) (any, error)
	// Beacons are the kinds of beacons that there are, beacon.Kinds() for all; nil is none.
	Beacons []*beacon.Kind
	// MasterHost is the master on this host, for saltutil.runner and saltutil.wheel; nil is none.
	MasterHost modules.MasterHost
	// Others lists what the program has besides execution modules, see [modules.Env]; nil is nothing.
	Others func(kind string) []*modules.Module
	// Version is what log lines call this program's version.
	Version string
	// Ready is called once when configuration, keys and state on disk are loaded, before the first master is asked: the
	// moment to tell a supervisor that the service is up. Not called by Call.
	Ready func()
	// OnState is called, one call at a time, whenever the connection to a master changes. It must not block.
	OnState func(Status)
	// OnJobs is called, one call at a time, with the number of jobs whenever it changes; nil is nobody. It must not
	// block. Programs use it to find out when they are idle.
	OnJobs func(running int)
	// OnWork is called after the minion did something that is not a job: a timer's work, or what a connection does to
	// stay alive; nil is nobody. It must not block.
	OnWork func()
	// StopTimeout is how long running jobs may go on after the end of Run's context; then they are killed, and what
	// they return is sent after the next start. 0 means DefaultStopTimeout.
	StopTimeout time.Duration
	// Clock is the time; nil is time.Now.
	Clock func() time.Time
}

// DefaultStopTimeout is short because a job may be the one that restarts the minion, and waits for it.
const DefaultStopTimeout = 2 * time.Second

// FileRequest asks the master a file server question. raw leaves every text of the answer as bytes.
type FileRequest func(ctx context.Context, load map[string]any, raw bool) (any, error)

// State is where the connection to a master stands.
type State string

// The states of a connection.
const (
	Connecting   State = "connecting"   // no answer yet, or the connection was lost
	Pending      State = "pending"      // the master has not accepted the key yet
	Rejected     State = "rejected"     // the master refuses the key
	Full         State = "full"         // the master takes no more minions
	Connected    State = "connected"    // signed in and subscribed
	Disconnected State = "disconnected" // given up for another master, or the minion stops
)

// Status is the news of one master.
type Status struct {
	Master string // as the option master names it
	State  State
	Err    error // why it is not connected, if known
}

func (s Status) String() string {
	if s.Err != nil {
		return fmt.Sprintf("%s %s: %v", s.State, s.Master, s.Err)
	}
	return fmt.Sprintf("%s %s", s.State, s.Master)
}

// CallOptions are one salt-call.
type CallOptions struct {
	// JID is the job id of the call; "" makes one.
	JID    string
	Fun    string
	Args   []any
	Kwargs map[string]any
	// FunArgs are the arguments as they were typed, for the return; nil means Args and Kwargs.
	FunArgs []any
	// Local runs without a master (--local): pillar comes from pillar_roots, files from file_roots.
	Local bool
	// NoReturnEvent keeps the result from the master (--no-return-event).
	NoReturnEvent bool
	// Returners are further places to send the result to (--return). Absent ones are logged.
	Returners []string
	// Metadata is added to the return (--set-metadata).
	Metadata map[string]any
	// ForMaster is a call that a master caused: the policy for masters holds. Without it the call is the host's
	// owner's.
	ForMaster bool
	// SkipGrains leaves the core grains out (--skip-grains).
	SkipGrains bool
	// Direct runs the function whatever module_executors and --module-executors say.
	Direct bool
	// Progress receives what the function reports before it returns; may be nil.
	Progress func(item any)
	// OnState is told of each state before it runs; may be nil.
	OnState func(modules.StateStep)
}

// Exit codes: what a program should end with, as stock does.
const (
	ExitNotAccepted = 2  // salt-call: the master has not accepted the key
	ExitFinger      = 42 // master_finger does not match
	ExitPermission  = 13 // a directory or key file is not safe, or not usable
	ExitRejected    = 77 // the master rejected the key
	ExitRestart     = 99 // the minion wants to be started again
)

// ExitError ends the program with a code.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// Errors that callers test for.
var (
	// ErrRestart is in the ExitError with which Run ends when a function or a lost last master asked for a restart.
	ErrRestart = errors.New("minion: restart requested")
	// ErrRunning is returned when another minion uses the same pki_dir.
	ErrRunning = errors.New("minion: another minion is running with the same pki_dir")
	// ErrRejected is in the ExitError of a rejected key.
	ErrRejected = errors.New("minion: the master has rejected this minion's public key")
	// ErrNotAccepted is in the ExitError of a Call whose key waits for acceptance.
	ErrNotAccepted = errors.New("minion: the master has not accepted this minion's public key yet")
	// ErrFinger is in the ExitError of a wrong master_finger.
	ErrFinger = errors.New("minion: the master's key does not have the fingerprint master_finger")
	// ErrNotConnected is returned by requests while there is no signed-in master.
	ErrNotConnected = errors.New("minion: not connected to a master")
)
