package modules

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Call is one running function: its arguments, and access to the program that runs it. Only the goroutine that runs
// the function may use it.
type Call struct {
	// Env is what the program offers to functions.
	*Env
	// Fun is the full name that was called.
	Fun string
	// JID is the job id; it is empty outside a job.
	JID string
	// Extra are the positional arguments beyond the parameters (*args).
	Extra []any
	// Keywords are the keyword arguments beyond the parameters (**kwargs), including __pub_ fields.
	Keywords map[string]any

	registry *Registry
	def      *Def   // nil for a call that has no arguments
	values   []any  // by parameter of def
	given    []bool // the same
	args     []any  // as the caller gave them
	kwargs   map[string]any
	job      *Context
	progress func(item any)
	depth    int
}

// Value returns the argument unconverted, or nil for an unknown name.
func (c *Call) Value(name string) any {
	if i := c.def.index(name); i >= 0 {
		return c.values[i]
	}
	return nil
}

// Given reports whether the caller passed the argument, by position or by keyword.
func (c *Call) Given(name string) bool {
	i := c.def.index(name)
	return i >= 0 && c.given[i]
}

// Str returns the argument as text like Python's str(), but "" for None.
func (c *Call) Str(name string) string {
	if v := c.Value(name); v != nil {
		return pytext.Str(v)
	}
	return ""
}

// Bool returns the argument's truth by Python's rules.
func (c *Call) Bool(name string) bool { return pytext.Truth(c.Value(name)) }

// Int returns the argument as an integer, by the rules and with the errors of Python's int().
func (c *Call) Int(name string) (int64, error) { return ToInt(c.Value(name)) }

// Float returns the argument as a float. Integers and texts that contain a number are accepted, too.
func (c *Call) Float(name string) (float64, error) {
	switch v := c.Value(name).(type) {
	case float64:
		return v, nil
	case string:
		if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
			return f, nil
		}
	default:
		if n, err := ToInt(v); err == nil {
			return float64(n), nil
		}
	}
	return 0, Usagef("%s must be a number, not %s", name, pytext.Repr(c.Value(name)))
}

// Seconds converts the argument from seconds to a duration. None and 0 become 0, which means no limit.
func (c *Call) Seconds(name string) (time.Duration, error) {
	if c.Value(name) == nil {
		return 0, nil
	}
	f, err := c.Float(name)
	return time.Duration(f * float64(time.Second)), err
}

// Strings returns the argument as a list of texts. A text is split at commas, and None is an empty list.
func (c *Call) Strings(name string) []string {
	switch v := c.Value(name).(type) {
	case nil:
		return nil
	case []any:
		list := make([]string, len(v))
		for i, x := range v {
			list[i] = pytext.Str(x)
		}
		return list
	case string:
		list := strings.Split(v, ",")
		for i := range list {
			list[i] = strings.TrimSpace(list[i])
		}
		return list
	default:
		return []string{pytext.Str(v)}
	}
}

// Map returns the argument as a map. None becomes an empty map.
func (c *Call) Map(name string) (map[string]any, error) {
	switch v := c.Value(name).(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return v, nil
	case map[any]any:
		m := make(map[string]any, len(v))
		for k, x := range v {
			m[pytext.Str(k)] = x
		}
		return m, nil
	}
	return nil, Usagef("%s must be a dictionary, not %s", name, pytext.Repr(c.Value(name)))
}

// SetRetcode sets the job's return code, as a Python function does through __context__["retcode"].
func (c *Call) SetRetcode(code int) { c.job.setRetcode(code) }

// Uncache removes a bad file from the minion's cache, so that it is fetched again. Files outside the cache belong to
// the user and are kept.
func (c *Call) Uncache(path string) {
	dir, _ := c.Opt("cachedir").(string)
	rel, err := filepath.Rel(dir, path)
	if dir == "" || err != nil || !filepath.IsLocal(rel) {
		return
	}
	if err := os.Remove(c.Path(path)); err != nil {
		c.Logger().Warn("Cannot take a file out of the cache", "path", path, "error", err)
	}
}

// Context returns the state that all calls of the job share.
func (c *Call) Context() *Context { return c.job }

// Cmd runs a program with the job's changes to the environment (environ.setenv).
func (c *Call) Cmd(ctx context.Context, cmd Command) (CommandResult, error) {
	if !cmd.CleanEnv {
		cmd.Env = append(c.job.Environ(), cmd.Env...)
	}
	return c.Env.Cmd(ctx, cmd)
}

// GrainData returns the minion's grains with the changes of this job. Callers must not modify it.
func (c *Call) GrainData() map[string]any { return c.job.overGrains(c.Env.GrainData()) }

// Grain returns a grain's value, or nil if it is not set.
func (c *Call) Grain(name string) any { return c.GrainData()[name] }

// Options returns the minion's configuration in the form of Salt's __opts__, which includes grains and pillar. The
// map is a copy; its values must not be modified.
func (c *Call) Options() map[string]any {
	opts := maps.Clone(c.Config())
	if opts == nil {
		opts = map[string]any{}
	}
	opts["grains"], opts["pillar"] = c.GrainData(), c.PillarData()
	return opts
}

// Progress reports an item before the function returns. The master receives it as a progress event. It does nothing if
// no receiver is set.
func (c *Call) Progress(item any) {
	if c.progress != nil {
		c.progress(item)
	}
}

// maxDepth limits how deep functions may call each other, so that endless recursion becomes an error.
const maxDepth = 64

// Exec calls another function by name with positional arguments, like __salt__["mod.fun"](…). A return code that the
// other function sets becomes the job's.
func (c *Call) Exec(ctx context.Context, fun string, args ...any) (any, error) {
	return c.ExecKw(ctx, fun, args, nil)
}

// ExecKw is like Exec with keyword arguments.
func (c *Call) ExecKw(ctx context.Context, fun string, args []any, kwargs map[string]any) (any, error) {
	v, err := c.ExecAsGiven(ctx, fun, args, kwargs)
	plain, _ := pyobj.Settled(pyobj.Plain(v))
	return plain, err
}

// ExecAsGiven is like ExecKw for a function that passes on the result of another one: dictionaries inside it may be
// ordered (package modules/pyobj).
func (c *Call) ExecAsGiven(ctx context.Context, fun string, args []any, kwargs map[string]any) (any, error) {
	if c.depth >= maxDepth {
		return nil, Errorf("functions call each other more than %d deep at %s", maxDepth, fun)
	}
	sub := &Call{Env: c.Env, Fun: fun, JID: c.JID, registry: c.registry, job: c.job, progress: c.progress, depth: c.depth + 1}
	return c.registry.run(ctx, sub, args, kwargs, nil)
}

// Foreign creates a Call for a function that is declared like a module function but is not in the registry: a state.
// Arguments are bound by Python's rules. The call shares the job of c and has the environment e. r is the registry
// that it can use; nil is that of c.
func (c *Call) Foreign(e *Env, r *Registry, d *Def, fun string, args []any, kwargs map[string]any) (*Call, error) {
	if c.depth >= maxDepth {
		return nil, Errorf("functions call each other more than %d deep at %s", maxDepth, fun)
	}
	if r == nil {
		r = c.registry
	}
	sub := &Call{Env: e, Fun: fun, JID: c.JID, registry: r, job: c.job, progress: c.progress, depth: c.depth + 1}
	return sub, sub.fit(d, args, kwargs)
}

// fit binds the arguments to the parameters of d.
func (c *Call) fit(d *Def, args []any, kwargs map[string]any) error {
	if c.depth > 0 && d.Kwargs == "" {
		// In calls between functions the error is Python's own. Only callers from outside see Salt's friendlier text.
		if unknown := d.unknown(kwargs); unknown != nil {
			return &TypeError{d.python() + "() got an unexpected keyword argument '" + unknown[0] + "'"}
		}
	}
	return c.bind(d, args, kwargs)
}

// Registry returns the set of functions that the call can use.
func (c *Call) Registry() *Registry { return c.registry }

// Env holds what a program offers to the functions that it runs. The zero value is a program without configuration,
// master and files; functions that need a missing part return an error.
type Env struct {
	// ID is the minion id.
	ID string
	// Opts is the minion's configuration, Grains and Pillar its data. Callers must not change what they return.
	Opts, Grains, Pillar func() map[string]any
	// Root is a prefix of every path on the host, for tests with a fixture tree. It is empty on a real host.
	Root string
	// Clock returns the current time; nil means time.Now.
	Clock func() time.Time
	// Log receives messages; nil discards them.
	Log *slog.Logger
	// Runner runs programs.
	Runner Runner
	// Match reports whether this minion is in a target (package protocol/target). It is nil if the program has no
	// targets.
	Match func(tgtType string, tgt any, delimiter string) (bool, error)
	// OptsOrder and GrainsOrder return the key order of values (pyobj.Order), by option or grain. Values that are not
	// listed have their keys in alphabetical order. Both may be nil. Callers must not modify the results.
	OptsOrder, GrainsOrder func() *pyobj.Dict
	// OrderedPillar returns Pillar in the order of its source. It is nil if the program does not know the order.
	// Callers must not modify the result.
	OrderedPillar func() *pyobj.Dict
	// FreshPillar compiles the pillar again, in the order of its source, and does not store it. The master compiles
	// it, or this host if there is no master. Empty environments mean those of the configuration. It is nil if the
	// program has no pillar.
	FreshPillar func(ctx context.Context, saltenv, pillarenv string, override *pyobj.Dict) (*pyobj.Dict, error)
	// Templates renders a text for a call. Package states/render implements it; nil means that the program has no
	// renderers. Functions use [Call.Template] and [Call.Render].
	Templates func(ctx context.Context, c *Call, t Template) (any, error)
	// Listen follows the event bus of a master or minion ("node") on this host. sockDir is the directory of its
	// sockets; "" is the default one. Listen is nil if the program has no bus.
	Listen func(ctx context.Context, node, sockDir string) (EventStream, error)
	// Others lists the program's modules of another kind: "states", "renderers", "returners" or "runners". nil means
	// that the program has only execution modules.
	Others func(kind string) []*Module
	// Functions are the program's execution functions, for code that is not an execution function itself (states,
	// beacons, and returners in other languages). If it is nil such code can call none.
	Functions *Registry
	// MasterHost is the master on this host, or nil if the program cannot reach one.
	MasterHost MasterHost
	// OnState is called before each state runs. It may be nil. Parallel states call it concurrently.
	OnState func(StateStep)
	// WaitingRuns holds the minion's queued state runs. It is nil in programs that run one call at a time.
	WaitingRuns *WaitingRuns
	// Policy decides which functions the call may use, directly or through other functions; nil allows all.
	Policy Policy
	// OnRefused is called with the function's name for each call that Policy refuses. It may be nil, and is called
	// concurrently.
	OnRefused func(fun string, err error)
	// Master, Files and Agent are nil if the program has none.
	Master Master
	Files  Files
	Agent  Agent
}

// StateStep describes a state that is about to run: its position among all states of the run, its function
// ("pkg.installed") and its name.
type StateStep struct {
	Number, Total int
	Fun, Name     string
}

// Opt returns a configuration value, or nil if it is not set.
func (e *Env) Opt(name string) any { return call(e.Opts)[name] }

// Config returns the minion's configuration.
func (e *Env) Config() map[string]any { return call(e.Opts) }

// Grain returns a grain's value, or nil if it is not set.
func (e *Env) Grain(name string) any { return call(e.Grains)[name] }

// GrainData returns the minion's grains. Callers must not modify them.
func (e *Env) GrainData() map[string]any { return call(e.Grains) }

// PillarData returns the minion's pillar. Callers must not modify it.
func (e *Env) PillarData() map[string]any { return call(e.Pillar) }

// OptionInOrder returns an option's value with ordered dictionaries (package modules/pyobj), and whether it is set.
func (e *Env) OptionInOrder(name string) (any, bool) {
	return inOrder(e.Config(), e.OptsOrder, name)
}

// ConfigInOrder returns the minion's configuration with ordered dictionaries.
func (e *Env) ConfigInOrder() *pyobj.Dict { return pyobj.FromMapIn(e.Config(), orders(e.OptsOrder)) }

func orders(f func() *pyobj.Dict) *pyobj.Dict {
	if f == nil {
		return nil
	}
	return f()
}

func inOrder(data map[string]any, order func() *pyobj.Dict, name string) (any, bool) {
	v, ok := data[name]
	if !ok {
		return nil, false
	}
	var inside any
	if o := orders(order); o != nil {
		inside, _ = o.Text(name)
	}
	return pyobj.InOrder(v, inside), true
}

func call(f func() map[string]any) map[string]any {
	if f == nil {
		return nil
	}
	return f()
}

// Path returns the path at which to open a file of the host. It is below Root if that is set. Every file access must
// use it.
func (e *Env) Path(path string) string {
	if e.Root == "" {
		return path
	}
	return filepath.Join(e.Root, path)
}

// IsFile reports whether a path of the host is a regular file or a link to one, like Python's os.path.isfile.
func (e *Env) IsFile(path string) bool {
	info, err := os.Stat(e.Path(path))
	return err == nil && info.Mode().IsRegular()
}

// Now returns the current time, from Clock if that is set.
func (e *Env) Now() time.Time {
	if e.Clock != nil {
		return e.Clock()
	}
	return time.Now()
}

// Logger returns Log, or a logger that discards everything if Log is nil.
func (e *Env) Logger() *slog.Logger {
	if e.Log != nil {
		return e.Log
	}
	return slog.New(slog.DiscardHandler)
}

// Cmd runs a program.
func (e *Env) Cmd(ctx context.Context, cmd Command) (CommandResult, error) {
	if e.Runner == nil {
		return CommandResult{}, Errorf("cannot run %s: this program runs no commands", cmd.name())
	}
	return e.Runner.Run(ctx, cmd)
}
