// Package host is what runner and wheel functions work on: the parts of one master, whether it runs in this process
// (runner.Embedded) or is a stock or brine master whose directories are on this host (brine-master's salt-run). A part
// that is nil is missing; the functions that need it answer "this master has no …".
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

// Host is what runners work on. Parts that are nil are missing, and functions that need them say so.
type Host struct {
	// ID is the master's id, as it stands in events.
	ID string
	// Opts are the master's options under Salt's names.
	Opts map[string]any
	// Run publishes a job and waits for its returns. A target that nobody is in gives no answers and no error.
	Run func(ctx context.Context, j Job) (map[string]Answer, error)
	// Match lists the accepted minions that a target means, as far as the master knows them.
	Match func(tgtType string, tgt any) ([]string, error)
	// Connected lists the minions that are connected, in no order.
	Connected func(ctx context.Context) ([]string, error)
	// Addresses returns an address of each of these minions, where one is known. nil knows none.
	Addresses func(ids []string) (map[string]string, error)
	// Clones shows the ids that several hosts use at once, with what they say of themselves.
	Clones func(ctx context.Context) (map[string]any, error)
	// Exec runs an execution function on the master's host, as stock's MasterMinion does: what orchestration is made
	// of. nil is a program without states.
	Exec func(ctx context.Context, q modules.Request) (any, error)
	// Listen follows the event bus of the master, or of a minion on its host.
	Listen func(ctx context.Context, node, sockDir string) (modules.EventStream, error)
	// Progress gets what a function reports before it ends, besides the event that is made of it; nil is nobody.
	Progress func(item map[string]any)
	// Print shows a line to whoever called, while a function runs; nil is nobody.
	Print func(line string)
	// Fire puts an event on the master's bus.
	Fire func(ctx context.Context, tag string, data map[string]any) error
	// Key is what root's command line tools show to the master, for changes of its reactor; "" is none.
	Key string
	// Pillar compiles a pillar.
	Pillar pillar.Func
	// PillarTop gives the merged top files of pillars, and what is wrong with them; nil is a master without.
	PillarTop func(ctx context.Context, r pillar.Request) (map[string]any, []string, error)
	// KeptPillars are those that the master gives again for a time (pillar_cache), nil if it makes each anew.
	KeptPillars *pillar.Cache
	// PublicKey is the master's public key as PEM text.
	PublicKey string
	Keys      *keys.Store
	Cache     *cache.Cache
	Jobs      store.Store
	Files     *fileserver.Server
	// CacheDir is the master's cachedir, for the banks of cache.store and its like; "" is none.
	CacheDir string
	// Timeout and Gather are the options timeout and gather_job_timeout.
	Timeout, Gather time.Duration
	Log             *slog.Logger
}

// Job is what a runner publishes.
type Job struct {
	Tgt             any
	TgtType, Fun    string
	Args            []any
	Kwargs          map[string]any
	Ret, JID        string
	Timeout, Gather time.Duration
	// Extra are further fields of what is published (ret_config, ret_kwargs).
	Extra map[string]any
	// Expect asks for answers of the minions that did not return as well.
	Expect bool
}

// Answer is one minion's return.
type Answer struct {
	Value any
	// Ordered is Value with its maps as payload.OrderedMap; nil if no order is known.
	Ordered any
	Retcode int
	Out     string
	// JID is the job's id, Data the whole return as it travelled, which must not be changed.
	JID  string
	Data map[string]any
	// Failed marks a minion that did not return.
	Failed bool
}

// Needs says that the host lacks a part.
func Needs(what string) error { return modules.Errorf("this master has no %s", what) }
