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

// Options configure a [Minion].
type Options struct {
	// Opts is the configuration under Salt's names, with defaults filled in and paths joined to root_dir. "id"
	// must be set. Other missing options have Salt's defaults, but without "sock_dir" no event sockets are
	// opened. Do not modify Opts after New.
	Opts map[string]any
	// Load reads the configuration again for [Minion.Reload]. If it is nil, a reload keeps Opts.
	Load func() (map[string]any, error)
	// OptsOrder returns the key order of the values of options, where templates must see another order than
	// Opts has. It returns maps of the same shape as Opts, or as the last result of Load; their other values
	// are ignored. nil means that no order is known.
	OptsOrder func() payload.OrderedMap
	// Log receives log messages; nil discards them.
	Log *slog.Logger
	// Registry holds the execution functions; nil means modules.Default().
	Registry *modules.Registry
	// Dialers are the transports, by the value of the option transport. Local calls need none.
	Dialers map[string]transport.Dialer
	// Wrap adds TLS to connections to the master; see transport.ClientOptions.
	Wrap func(ctx context.Context, c net.Conn, host string) (net.Conn, error)
	// Lookup resolves the master's name when its address may have changed; nil means the system's resolver.
	Lookup func(ctx context.Context, host string) ([]string, error)
	// Grains gathers the grains. If it is nil, only those of the option grains are set. Values of type
	// payload.OrderedMap keep their order in templates.
	Grains func(ctx context.Context, opts map[string]any) map[string]any
	// Files creates the file client; nil means that there is no file client. request sends a request to the
	// master; it is nil in local calls.
	Files func(opts map[string]any, request FileRequest) modules.Files
	// Seal restricts the agent to what the host's owner permits; nil means no restriction. Pass it to Runner as
	// well (runcmd.Runner.Permit), because programs are looked up there.
	Seal *policy.Seal
	// Restrict is called once after keys, journal and event sockets are open, before the minion does anything
	// for a master or for salt-call. A sealed program restricts itself in the kernel there. Its error ends the
	// minion, with the exit code of an *ExitError or 1. It may be nil.
	Restrict func() error
	// Runner runs programs. If it is nil, functions cannot run any.
	Runner modules.Runner
	// Templates renders templates and state files for functions (package states/render). If it is nil, nothing
	// is rendered.
	Templates func(ctx context.Context, c *modules.Call, t modules.Template) (any, error)
	// Beacons are the available kinds of beacons; beacon.Kinds() returns all.
	Beacons []*beacon.Kind
	// MasterHost is the master on this host, for saltutil.runner and saltutil.wheel. It may be nil.
	MasterHost modules.MasterHost
	// Others returns the program's modules of other kinds than execution modules; see [modules.Env]. It may be
	// nil.
	Others func(kind string) []*modules.Module
	// Version is the program's version in log lines.
	Version string
	// Locked is called once when Run holds the lock of pki_dir, so that no other minion runs with it. Programs write
	// their pid file there. It may be nil.
	Locked func()
	// Ready is called once when configuration, keys and state on disk are loaded, before the first connection
	// to a master. Programs report to their supervisor there that the service is up. Call does not use it.
	Ready func()
	// OnState is called when the connection to a master changes, one call at a time. It must not block.
	OnState func(Status)
	// OnJobs is called with the number of jobs when it changes, one call at a time. Programs use it to find out
	// when they are idle. It must not block and may be nil.
	OnJobs func(running int)
	// OnWork is called after work that is not a job: a timer's, or what keeps a connection alive. It must not
	// block and may be nil.
	OnWork func()
	// StopTimeout is how long running jobs may continue after Run's context ends. Then they are cancelled, and
	// their returns are sent after the next start. 0 means DefaultStopTimeout.
	StopTimeout time.Duration
	// Clock returns the time; nil means time.Now.
	Clock func() time.Time
}

// DefaultStopTimeout is short, because the job that restarts the minion waits for it to stop.
const DefaultStopTimeout = 2 * time.Second

// FileRequest sends a file server request to the master. With raw all texts of the reply are []byte.
type FileRequest func(ctx context.Context, load map[string]any, raw bool) (any, error)

// State is the state of the connection to a master.
type State string

// The states of a connection.
const (
	Connecting   State = "connecting"   // no reply yet, or the connection was lost
	Pending      State = "pending"      // the master has not accepted the key yet
	Rejected     State = "rejected"     // the master refuses the key
	Full         State = "full"         // the master takes no more minions
	Connected    State = "connected"    // signed in and subscribed
	Disconnected State = "disconnected" // left for another master, or the minion stops
)

// Status describes the connection to one master.
type Status struct {
	Master string // as written in the option master
	State  State
	Err    error // why it is not connected, if known
}

func (s Status) String() string {
	if s.Err != nil {
		return fmt.Sprintf("%s %s: %v", s.State, s.Master, s.Err)
	}
	return fmt.Sprintf("%s %s", s.State, s.Master)
}

// CallOptions describe one salt-call.
type CallOptions struct {
	// JID is the call's job id. If it is empty, one is created.
	JID    string
	Fun    string
	Args   []any
	Kwargs map[string]any
	// FunArgs are the arguments as typed, for the return; nil means Args and Kwargs.
	FunArgs []any
	// Local runs the call without a master (--local): the pillar comes from pillar_roots, files from
	// file_roots.
	Local bool
	// NoReturnEvent does not send the result to the master (--no-return-event).
	NoReturnEvent bool
	// Returners are additional returners for the result (--return). Missing ones are logged.
	Returners []string
	// Metadata is added to the return (--set-metadata).
	Metadata map[string]any
	// ForMaster applies the policy for masters, because a master caused the call. Otherwise the call counts as
	// the host owner's.
	ForMaster bool
	// SkipGrains leaves out the core grains (--skip-grains).
	SkipGrains bool
	// Direct ignores module_executors.
	Direct bool
	// Progress receives items that the function reports before it returns. It may be nil.
	Progress func(item any)
	// OnState is called before each state runs. It may be nil.
	OnState func(modules.StateStep)
}

// Exit codes, as in stock.
const (
	ExitNotAccepted = 2  // salt-call: the master has not accepted the key
	ExitFinger      = 42 // master_finger does not match
	ExitPermission  = 13 // a directory or key file is unsafe or unusable
	ExitRejected    = 77 // the master rejected the key
	ExitRestart     = 99 // the minion asks to be restarted
)

// ExitError is an error with the exit code for the program.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// Errors that callers may test for.
var (
	// ErrRestart is wrapped by the ExitError of a Run that a function asked to restart.
	ErrRestart = errors.New("minion: restart requested")
	// ErrRunning is returned when another minion uses the same pki_dir.
	ErrRunning = errors.New("minion: another minion is running with the same pki_dir")
	// ErrRejected is wrapped by the ExitError for a rejected key.
	ErrRejected = errors.New("minion: the master has rejected this minion's public key")
	// ErrNotAccepted is wrapped by Call's ExitError while the key is pending.
	ErrNotAccepted = errors.New("minion: the master has not accepted this minion's public key yet")
	// ErrFinger is wrapped by the ExitError for a key that does not match master_finger.
	ErrFinger = errors.New("minion: the master's key does not have the fingerprint master_finger")
	// ErrNotConnected is returned for requests while the minion is not signed in to a master.
	ErrNotConnected = errors.New("minion: not connected to a master")
)
