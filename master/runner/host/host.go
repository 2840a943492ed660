// Package host gives runner and wheel functions access to a master. The master runs in this process
// (runner.Embedded), or is a stock or brine master whose directories are on this host (brine-master's
// salt-run). A nil part is missing; functions that need it answer "this master has no …".
package host

import (
	"context"
	"log/slog"
	"time"

	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/modules"
)

// Host is a master as runners see it. Parts that are nil are missing, and functions that need them return an
// error.
type Host struct {
	// ID is the master's id in events.
	ID string
	// Opts are the master's options under Salt's names.
	Opts map[string]any
	// Run publishes a job and waits for its returns. A target without minions is not an error and gives no
	// answers.
	Run func(ctx context.Context, j Job) (map[string]Answer, error)
	// Match returns the accepted minions that a target matches, as far as the master can tell.
	Match func(tgtType string, tgt any) ([]string, error)
	// Connected returns the connected minions, unsorted.
	Connected func(ctx context.Context) ([]string, error)
	// Addresses returns the known addresses of minions; nil means that none are known.
	Addresses func(ids []string) (map[string]string, error)
	// Clones returns the ids that several hosts use at once, with the hosts' descriptions.
	Clones func(ctx context.Context) (map[string]any, error)
	// User is the user of the jobs that the functions publish. It may be empty.
	User string
	// Exec runs an execution function on the master's host, like stock's MasterMinion. Orchestration uses it.
	// nil means a program without states.
	Exec func(ctx context.Context, q modules.Request) (any, error)
	// Listen subscribes to the event bus of the master, or of a minion on its host.
	Listen func(ctx context.Context, node, sockDir string) (modules.EventStream, error)
	// Progress receives what a function reports while it runs, in addition to the event fired for it. It may be
	// nil.
	Progress func(item map[string]any)
	// Print prints a line for the caller while a function runs. It may be nil.
	Print func(line string)
	// Fire fires an event on the master's bus.
	Fire func(ctx context.Context, tag string, data map[string]any) error
	// Key authenticates root's command line tools to the master, for changes of its reactor; it may be empty.
	Key string
	// Pillar compiles a pillar.
	Pillar pillar.Func
	// PillarTop returns the merged top files of the pillar and the errors in them; nil means that there are
	// none.
	PillarTop func(ctx context.Context, r pillar.Request) (map[string]any, []string, error)
	// KeptPillars is the master's cache of pillars (pillar_cache), or nil.
	KeptPillars *pillar.Cache
	// PublicKey is the master's public key as PEM text.
	PublicKey string
	Keys      *keys.Store
	Cache     *cache.Cache
	Jobs      store.Store
	Files     *fileserver.Server
	// CacheDir is the master's cachedir, for the banks of cache.store and similar functions; it may be empty.
	CacheDir string
	// Timeout and Gather are the options timeout and gather_job_timeout.
	Timeout, Gather time.Duration
	Log             *slog.Logger
}

// Job is a job that a runner publishes.
type Job struct {
	Tgt             any
	TgtType, Fun    string
	Args            []any
	Kwargs          map[string]any
	Ret, JID        string
	Timeout, Gather time.Duration
	// Extra holds additional published fields (ret_config, ret_kwargs).
	Extra map[string]any
	// Expect also returns an answer for each minion that did not return.
	Expect bool
}

// Answer is one minion's return.
type Answer struct {
	Value any
	// Ordered is Value with its maps as payload.OrderedMap; nil if the order is unknown.
	Ordered any
	Retcode int
	Out     string
	// JID is the job's id. Data is the whole return as received; it must not be modified.
	JID  string
	Data map[string]any
	// Failed means that the minion did not return.
	Failed bool
}

// UserKey is the key of a run's user in its context. The runs that it causes have the same user (Salt's __user__).
const UserKey = "__user__"

// Needs returns the error for a missing part.
func Needs(what string) error { return modules.Errorf("this master has no %s", what) }
