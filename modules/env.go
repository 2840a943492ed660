package modules

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/brine-salt/brine/modules/pyobj"
)

// Runner runs programs. Package internal/modkit/runcmd implements it; tests use fakes.
type Runner interface {
	// Run starts the command and waits for it unless Detach is set. It returns an error if the program cannot be
	// started, a *MissingCommandError if it is not installed. A program that fails is not an error; see
	// CommandResult.ExitCode. When ctx ends or the timeout passes, Run kills the command and every process it started.
	Run(ctx context.Context, cmd Command) (CommandResult, error)
}

// Command is a program to run.
type Command struct {
	// Args is the program and its arguments. It is never split or expanded.
	Args []string
	// Shell, if set, is the shell that interprets Script. Args is not used then.
	Shell, Script string
	// Dir is the working directory; empty means the home directory of the user that the program runs as.
	Dir string
	// Env are "name=value" settings that override the inherited environment, or replace it if CleanEnv is set. The
	// last setting of a name wins; a bare "name" removes the variable.
	Env      []string
	CleanEnv bool
	// Defaults are settings that override the inherited environment. Env and the login environment of RunAs override
	// them.
	Defaults []string
	// RunAs and Group are the user and group that the program runs as; empty means the current ones. Password is for
	// platforms that need it to switch users.
	RunAs, Group, Password string
	// Umask is the file mode mask; nil means the current one.
	Umask *int
	Stdin io.Reader
	// Stdout and Stderr, if set, receive the output as it arrives, and the result does not contain it. A slow writer
	// slows the program down. Nothing is written after Run has returned.
	Stdout, Stderr io.Writer
	// Merge redirects standard error to standard output.
	Merge bool
	// Timeout is how long the program may run before its process group is killed; 0 means no limit.
	Timeout time.Duration
	// Grace is how long the program and its children may take to end after SIGTERM before they are killed.
	Grace time.Duration
	// Seen, if set, is called with each piece of output that no writer of the command receives, as it arrives, also
	// beyond Limit. It must return quickly and not retain piece. Calls for standard output and standard error may overlap.
	Seen func(stderr bool, piece []byte)
	// Limit is the maximum number of bytes kept of each output stream; 0 means the runner's default.
	Limit int64
	// Detach starts the program without waiting for it.
	Detach bool
}

func (c Command) name() string {
	if len(c.Args) > 0 {
		return c.Args[0]
	}
	return c.Shell
}

// CommandResult holds the output and the exit status of a program.
type CommandResult struct {
	Stdout, Stderr []byte
	// ExitCode is the exit status. If a signal killed the program it is the negative signal number, as in Python.
	ExitCode, PID int
	TimedOut      bool
	// Truncated means that output beyond the limit was dropped.
	Truncated bool
}

// Master sends requests and events to a Salt master.
type Master interface {
	// Request sends an encrypted request ("cmd" and its arguments) and returns the decoded answer.
	Request(ctx context.Context, load map[string]any) (any, error)
	// Fire sends an event to the master. Listeners find the data under the key "data".
	Fire(ctx context.Context, tag string, data any) error
}

// OrderedMaster is a [Master] whose answers can keep the order of dictionaries.
type OrderedMaster interface {
	// RequestOrdered is Request with ordered values (package modules/pyobj).
	RequestOrdered(ctx context.Context, load map[string]any) (any, error)
}

// RequestOrdered sends a request and returns the answer with ordered values (package modules/pyobj). Values in load
// may be ordered too. If m is not an [OrderedMaster], keys are in alphabetical order.
func RequestOrdered(ctx context.Context, m Master, load map[string]any) (any, error) {
	if o, ok := m.(OrderedMaster); ok {
		return o.RequestOrdered(ctx, load)
	}
	v, err := m.Request(ctx, load)
	return pyobj.From(v), err
}

// MasterHost is the Salt master that runs on this host. It offers what only local callers may do.
type MasterHost interface {
	// Call runs a runner or wheel function on the master and waits for its end. The map is the result of Salt's
	// clients with full_return: "fun", "jid", "user", "fun_args", "return" and "success"; without success, "return"
	// is the error text. If the master lacks the function the error is a [*NotAvailableError], and [ErrNoMasterHere]
	// if no master runs on this host.
	Call(ctx context.Context, q MasterCall) (map[string]any, error)
	// Run publishes a job on the master, as the program salt does, and passes each answer to each as it arrives. A
	// target that matches no minion gives no answers and no error. The error is [ErrNoMasterHere] if no master runs
	// on this host.
	Run(ctx context.Context, q MasterJob, each func(MasterAnswer)) error
	// Fire sends an event on the master's event bus.
	Fire(ctx context.Context, tag string, data map[string]any) error
}

// ErrNoMasterHere means that no Salt master runs on this host.
var ErrNoMasterHere = errors.New("no master runs on this host")

// MasterCall is a runner or wheel function of the master on this host.
type MasterCall struct {
	// Kind is "runner" or "wheel". Fun is the function's name.
	Kind, Fun string
	Args      []any
	Kwargs    map[string]any
	// Saltenv is the value of a parameter saltenv, if the function has one.
	Saltenv any
	// User is the user that made the request, if the master cannot determine it itself.
	User string
}

// MasterJob is a job for minions of the master on this host.
type MasterJob struct {
	Tgt          any
	TgtType, Fun string
	Args         []any
	Kwargs       map[string]any
	// Ret names returners, separated by commas.
	Ret string
	// Timeout and Gather are Salt's timeout and gather_job_timeout; 0 means the master's option.
	Timeout, Gather time.Duration
	// Extra holds additional fields of the published job (ret_config, ret_kwargs).
	Extra map[string]any
	// Expect asks for answers in place of the minions that do not return.
	Expect bool
}

// MasterAnswer is the return of one minion.
type MasterAnswer struct {
	ID       string
	Value    any
	Retcode  int
	Out, JID string
	// Data is the whole return as the minion sent it. Callers must not modify it.
	Data map[string]any
	// Failed marks a minion that did not return.
	Failed bool
}

// EventStream yields the events of a bus, from the time of Listen on.
type EventStream interface {
	// Next waits for the next event. The error is that of ctx, or reports that the bus is closed.
	Next(ctx context.Context) (tag string, data map[string]any, err error)
	Close() error
}

// Files is the minion's file client: the master's file server and the minion's cache of it.
type Files interface {
	// Envs returns the environments.
	Envs(ctx context.Context) ([]string, error)
	// List, EmptyDirs, Dirs and Symlinks list an environment below prefix ("" is everything).
	List(ctx context.Context, saltenv, prefix string) ([]string, error)
	EmptyDirs(ctx context.Context, saltenv, prefix string) ([]string, error)
	Dirs(ctx context.Context, saltenv, prefix string) ([]string, error)
	Symlinks(ctx context.Context, saltenv, prefix string) (map[string]string, error)
	// Hash returns the file server's {hash_type, hsum}, or nil if there is no such file. Stat is os.stat's list or
	// nil.
	Hash(ctx context.Context, path, saltenv string) (map[string]any, error)
	HashAndStat(ctx context.Context, path, saltenv string) (hash map[string]any, stat []any, err error)
	// Cache fetches a file (salt://, http(s)://, file://, local path) into the cache and returns its path there, or
	// "" if there is no such file.
	Cache(ctx context.Context, url, saltenv string) (string, error)
	// CacheWeb is Cache for a file of a web server, with options.
	CacheWeb(ctx context.Context, url, saltenv string, o WebFile) (string, error)
	// CachePath returns the path at which Cache stores a file.
	CachePath(url, saltenv string) string
	// CacheRoot returns the cache directory.
	CacheRoot() string
	// Send uploads a local file to the master (cp.push) under the given name.
	Send(ctx context.Context, path, name string) (bool, error)
	// Clear empties the cache.
	Clear() error
	// Local returns a client that reads files from directories of this host instead of the master. roots holds the
	// directories by environment. The cache is shared.
	Local(roots map[string][]string) Files
}

// WebFile holds the options for fetching a file from a web server. The zero value is what Cache uses.
type WebFile struct {
	// AnyCertificate accepts any certificate of the server (verify_ssl: False).
	AnyCertificate bool
	// ETag fetches a cached file again only if the server has another version (use_etag).
	ETag bool
}

// Agent is the running minion as its own functions see it (saltutil, event, status).
type Agent interface {
	// Running returns the running jobs. Each has the fields of Salt's proc file, and "pid".
	Running() []map[string]any
	// Job returns the running job with an id, or nil if no such job runs. Cached returns the stored return of a finished
	// job.
	Job(jid string) map[string]any
	Cached(jid string) map[string]any
	// Signal sends a signal to every process of a job. A job without processes is cancelled. The result is that of
	// saltutil.signal_job, or "" if there is no such job.
	Signal(jid string, sig int) string
	// RefreshGrains and RefreshPillar read the data again. clean makes the master discard a cached pillar
	// (pillar_cache). Reload re-reads what SIGHUP re-reads.
	RefreshGrains(ctx context.Context) error
	RefreshPillar(ctx context.Context, clean bool) error
	Reload(ctx context.Context) error
	// FireLocal sends an event on the minion's own bus. It reports whether the minion has a bus.
	FireLocal(tag string, data any) bool
	// Masters reports for each master whether the minion is connected to it.
	Masters() map[string]bool
	// Restart stops the minion so that its supervisor starts it again.
	Restart() error
}

// Manager is an [Agent] that reaches the host's running minion, from within the minion or from salt-call.
type Manager interface {
	// Manage passes data to the minion like an event with this tag ("manage_schedule", "manage_beacons"). It returns
	// the data of the minion's reply, an event with the tag answer. reply is nil if the minion does not reply or answer
	// is empty. ok reports whether a minion runs.
	//
	// For "module_refresh" and "pillar_refresh" within the minion, Agent's methods have refreshed it already, and the
	// event only notifies listeners. From salt-call they have refreshed only salt-call, and the event makes the minion
	// refresh too.
	Manage(ctx context.Context, tag string, data map[string]any, answer string) (reply map[string]any, ok bool)
}

// MasterChooser is an [Agent] that can be connected to several masters.
type MasterChooser interface {
	// Via returns the master with this name or address, or nil if the minion is not connected to it.
	Via(name string) Master
}
