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

// Call is one running function: its arguments and what it may ask of the program. It belongs to the goroutine that runs the
// function.
type Call struct {
	// Env is the program's side of the contract.
	*Env
	// Fun is the full name that was called.
	Fun string
	// JID is the job id, "" outside a job.
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

// Value returns the argument unconverted, nil for an unknown name.
func (c *Call) Value(name string) any {
	if i := c.def.index(name); i >= 0 {
		return c.values[i]
	}
	return nil
}

// Given reports whether the caller named or placed the argument, rather than leaving its default.
func (c *Call) Given(name string) bool {
	i := c.def.index(name)
	return i >= 0 && c.given[i]
}

// Str returns the argument as by Python's str(), and "" for None.
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

// Uncache removes a file that turned out to be bad, if it is one of the minion's cache; a user's own file it leaves alone.
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

// Cmd runs a program with the environment that the job has set for itself.
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

// Progress reports an item before the function returns; the master sees it as a progress event. Without a listener it does
// nothing.
func (c *Call) Progress(item any) {
	if c.progress != nil {
		c.progress(item)
	}
}

// maxDepth bounds calls of functions by functions.
const maxDepth = 64

// Exec calls another function by name with positional arguments, as __salt__["mod.fun"](…) does. Return codes that the other
// function sets are the job's.
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

// fit puts the arguments in their places.
func (c *Call) fit(d *Def, args []any, kwargs map[string]any) error {
	if c.depth > 0 && d.Kwargs == "" {
		// Python itself refuses what one function gives another; only callers from outside have a kinder text.
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
	// Root is put before every path of the host, for tests on a fixture tree; "" is the real host.
	Root string
	// Clock is the time; nil is time.Now.
	Clock func() time.Time
	// Log receives messages; nil is silent.
	Log *slog.Logger
	// Runner runs programs.
	Runner Runner
	// Match reports whether this minion is in a target (package protocol/target). It is nil if the program has no
	// targets.
	Match func(tgtType string, tgt any, delimiter string) (bool, error)
	// OptsOrder and GrainsOrder have, by option and grain, the order of the keys in its value (pyobj.Order), where it is not that of their text;
	// nil where no order is known. Callers must not change it.
	OptsOrder, GrainsOrder func() *pyobj.Dict
	// OrderedPillar is Pillar in the order of its source; nil where that is not known. Callers must not change it.
	OrderedPillar func() *pyobj.Dict
	// FreshPillar compiles the pillar again, in the order of its source, and does not store it. The master compiles
	// it, or this host if there is no master. Empty environments mean those of the configuration. It is nil if the
	// program has no pillar.
	FreshPillar func(ctx context.Context, saltenv, pillarenv string, override *pyobj.Dict) (*pyobj.Dict, error)
	// Templates sends a text through renderers on behalf of a call; nil where the program has none (package states/render has
	// them). Functions use [Call.Template] and [Call.Render].
	Templates func(ctx context.Context, c *Call, t Template) (any, error)
	// Listen follows the event bus of a master or minion ("node") on this host. sockDir is the directory of its
	// sockets; "" is the default one. Listen is nil if the program has no bus.
	Listen func(ctx context.Context, node, sockDir string) (EventStream, error)
	// Others lists what the program has besides execution modules, described in the same way: "states", "renderers",
	// "returners", "runners". Nil, like an empty list, means none.
	Others func(kind string) []*Module
	// Functions are the program's execution functions, for code that is not an execution function itself (states,
	// beacons, and returners in other languages). If it is nil such code can call none.
	Functions *Registry
	// MasterHost is the master on this host; nil is a program that cannot reach one.
	MasterHost MasterHost
	// OnState is called before each state runs. It may be nil. States that run in parallel call it at the same time.
	OnState func(StateStep)
	// WaitingRuns holds the minion's state runs that wait for others; nil is for programs that run one call at a time.
	WaitingRuns *WaitingRuns
	// Policy decides which functions the call may reach, however deep; nil lets it reach all.
	Policy Policy
	// OnRefused is told of each call that Policy refuses, by the name of its function; nil if refused calls are not counted. Calls
	// that run at the same time call it at the same time.
	OnRefused func(fun string, err error)
	// Master, Files and Agent are nil where the program has no such thing.
	Master Master
	Files  Files
	Agent  Agent
}

// StateStep is a state that is about to run: the Number-th of Total, by the name of its function ("pkg.installed") and its own name.
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

// GrainData and PillarData are the minion's grains and pillar.
func (e *Env) GrainData() map[string]any { return call(e.Grains) }

// PillarData returns the minion's pillar.
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

// Path returns where a path of the host is found, which is below Root if that is set. Every file access must use it.
func (e *Env) Path(path string) string {
	if e.Root == "" {
		return path
	}
	return filepath.Join(e.Root, path)
}

// IsFile reports whether a path of the host is a regular file or a link to one, as Python's os.path.isfile.
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

// Logger is never nil.
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
