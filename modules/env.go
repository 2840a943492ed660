package modules

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/brine-salt/brine/modules/pyobj"
)

// Runner runs programs. Package internal/modkit/runcmd has the real one; tests bring their own.
type Runner interface {
	// Run starts the command and waits for it, unless it is detached. A program that could not be started is an error
	// (*MissingCommandError when it is not installed); one that failed is a result with its exit code.
	// When ctx ends or the timeout passes, the command and every process it started are killed.
	Run(ctx context.Context, cmd Command) (CommandResult, error)
}

// Command is a program to run.
type Command struct {
	// Args is the program and its arguments. It is never split or expanded.
	Args []string
	// Shell, when set, is the shell that interprets Script; Args is then not used.
	Shell, Script string
	// Dir is the working directory, "" the home of the user it runs as.
	Dir string
	// Env are "name=value" settings over the inherited environment, or instead of it with CleanEnv. The last setting of a
	// name wins; a bare "name" removes the variable.
	Env      []string
	CleanEnv bool
	// Defaults are settings that win over the inherited environment, but not over Env and what a login of RunAs gives.
	Defaults []string
	// RunAs and Group are the user and group it runs as, "" the current ones. Password is for platforms that need one.
	RunAs, Group, Password string
	// Umask is the file mode mask, nil the current one.
	Umask *int
	Stdin io.Reader
	// Stdout and Stderr, when set, get the output as it comes; it is then not kept for the result. A write may take its time, which
	// slows the program down. After Run has returned nothing is written.
	Stdout, Stderr io.Writer
	// Merge puts standard error into standard output as it comes.
	Merge bool
	// Timeout kills the whole process group when it passes; 0 means no limit.
	Timeout time.Duration
	// Grace is how long the program and what it started have to end by themselves, after a SIGTERM, before they are killed.
	Grace time.Duration
	// Seen, when set, is called with each piece of output that is kept for the result, as it comes; the piece is valid during the call,
	// which must be short. Calls for standard output and standard error may overlap.
	Seen func(stderr bool, piece []byte)
	// Limit is the number of bytes of output kept, for each stream; 0 is the runner's own limit.
	Limit int64
	// Detach starts the program and does not wait.
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
	// ExitCode is the exit status; minus the signal's number when one killed it, as Python has it.
	ExitCode, PID int
	TimedOut      bool
	// Truncated means that output beyond the limit was dropped.
	Truncated bool
}

// Master is the way to a Salt master.
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

// RequestOrdered asks a master for an answer with ordered values (package modules/pyobj). Values of load may be such, too. A master that
// is no [OrderedMaster] answers in the order of the keys' text.
func RequestOrdered(ctx context.Context, m Master, load map[string]any) (any, error) {
	if o, ok := m.(OrderedMaster); ok {
		return o.RequestOrdered(ctx, load)
	}
	v, err := m.Request(ctx, load)
	return pyobj.From(v), err
}

// MasterHost is the Salt master that runs on this host, for functions that only its host may call.
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
	// Fire puts an event on the bus of that master.
	Fire(ctx context.Context, tag string, data map[string]any) error
}

// ErrNoMasterHere says that no Salt master runs on this host.
var ErrNoMasterHere = errors.New("no master runs on this host")

// MasterCall is a runner or wheel function of the master on this host.
type MasterCall struct {
	// Kind is "runner" or "wheel", Fun the function's name.
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
	// Ret names returners, with commas.
	Ret string
	// Timeout and Gather are Salt's timeout and gather_job_timeout; 0 is the master's option.
	Timeout, Gather time.Duration
	// Extra are further fields of what is published (ret_config, ret_kwargs).
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
	// Data is the whole return as it travelled, which must not be changed.
	Data map[string]any
	// Failed marks a minion that did not return.
	Failed bool
}

// EventStream are the events of a bus from some moment on.
type EventStream interface {
	// Next waits for the next event. The error is that of ctx, or reports that the bus is closed.
	Next(ctx context.Context) (tag string, data map[string]any, err error)
	Close() error
}

// Files is the minion's file client: the master's file server and the minion's cache of it.
type Files interface {
	// Envs lists the environments.
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
	// CacheWeb is Cache for a file of a web server, fetched in a special way.
	CacheWeb(ctx context.Context, url, saltenv string, o WebFile) (string, error)
	// CachePath is where Cache puts the file.
	CachePath(url, saltenv string) string
	// CacheRoot is the directory of everything cached.
	CacheRoot() string
	// Send uploads a local file to the master (cp.push) under the given name.
	Send(ctx context.Context, path, name string) (bool, error)
	// Clear forgets everything cached.
	Clear() error
	// Local is a client with the same cache of which the files are in directories of this host, by environment.
	Local(roots map[string][]string) Files
}

// WebFile holds the options for fetching a file from a web server. The zero value is what Cache uses.
type WebFile struct {
	// AnyCertificate trusts whatever certificate the server has (verify_ssl: False).
	AnyCertificate bool
	// ETag fetches a file that is in the cache only if the server has another version (use_etag).
	ETag bool
}

// Agent is the running minion as its own functions see it (saltutil, event, status).
type Agent interface {
	// Running are the jobs that run now, each as Salt's proc file has it, plus "pid".
	Running() []map[string]any
	// Job returns the running job with an id, or nil if no such job runs. Cached returns the stored return of a finished
	// job.
	Job(jid string) map[string]any
	Cached(jid string) map[string]any
	// Signal sends a signal to every process of a job. A job without processes is cancelled. The result is that of
	// saltutil.signal_job, or "" if there is no such job.
	Signal(jid string, sig int) string
	// RefreshGrains and RefreshPillar read them anew; clean has the master forget a pillar that it keeps (pillar_cache). Reload
	// re-reads what SIGHUP re-reads.
	RefreshGrains(ctx context.Context) error
	RefreshPillar(ctx context.Context, clean bool) error
	Reload(ctx context.Context) error
	// FireLocal puts an event on the minion's own bus. The result reports whether the minion has one.
	FireLocal(tag string, data any) bool
	// Masters tells for each master whether the minion is connected to it.
	Masters() map[string]bool
	// Restart stops the minion so that its supervisor starts it again.
	Restart() error
}

// Manager is an [Agent] that reaches the running minion of the host, from within it or from a salt-call beside it.
type Manager interface {
	// Manage hands data to the minion as an event with the tag ("manage_schedule", "manage_beacons") does, and gives the event
	// tagged answer with which the minion replies, nil when it does not or answer is "". ok reports whether there is a minion.
	// What Agent's methods have done to the minion already is not done again: then the event only tells programs that listen
	// ("module_refresh", "pillar_refresh"). A salt-call has done it to itself alone, and the event makes the minion do it.
	Manage(ctx context.Context, tag string, data map[string]any, answer string) (reply map[string]any, ok bool)
}

// MasterChooser is an [Agent] with several masters to choose from.
type MasterChooser interface {
	// Via is the master with the given name or address, nil if the minion is not connected to such a one.
	Via(name string) Master
}
