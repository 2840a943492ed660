package states

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// Options say how states shall run.
type Options struct {
	// Registry are the state modules; nil is [Default].
	Registry *Registry
	// Opts are __opts__ of the run, test among them. Pillar is its pillar; nil is the minion's.
	Opts   map[string]any
	Pillar map[string]any
	// Grains and Files are those of the run; nil are the minion's.
	Grains map[string]any
	Files  modules.Files
	// JID is the job, "" for runs that cannot be paused or followed.
	JID string
	// Mocked runs everything but the state functions.
	Mocked bool
}

// Run is one run of states (salt/state.py: State).
type Run struct {
	parent *modules.Call
	reg    *Registry
	env    *modules.Env
	exec   *modules.Registry // what functions can reach; nil is the same as parent
	opts   map[string]any
	jid    string
	mocked bool
	// instance names the run.
	instance string

	mu      sync.Mutex
	targets map[string]*target // guarded by mu

	chunks     []*Low
	index      chunkIndex
	running    *results
	pre        map[string]record
	active     map[string]bool
	inited     map[string]bool
	processed  map[string]bool // SLS files, those without states among them
	num        int64
	nesting    int // chunks that wait for the one that runs
	aggregate  any
	aggregated bool // aggregate is known
	conditions *pyobj.Dict
	disabled   []string // requisites that the option disabled_requisites names
	umask      *int
}

// record is what is known of a chunk that ran, with Salt's keys.
type record = map[string]any

// New prepares a run inside of a call of an execution function.
func New(c *modules.Call, o Options) *Run {
	r := &Run{parent: c, reg: o.Registry, opts: o.Opts, jid: o.JID, mocked: o.Mocked, targets: map[string]*target{}, pre: map[string]record{},
		active: map[string]bool{}, inited: map[string]bool{}, processed: map[string]bool{}, running: newResults()}
	if r.reg == nil {
		r.reg = Default()
	}
	if r.opts == nil {
		r.opts = maps.Clone(c.Config())
	}
	r.instance = fmt.Sprintf("%d", rand.Uint64())
	env := *c.Env
	env.Opts = func() map[string]any { return r.opts }
	if o.Pillar != nil {
		env.Pillar = func() map[string]any { return o.Pillar }
	}
	if o.Grains != nil {
		env.Grains, env.GrainsOrder = func() map[string]any { return o.Grains }, nil
	}
	if o.Files != nil {
		env.Files = o.Files
	}
	env.Runner = masked{r, c.Runner}
	r.env = &env
	r.disabled = textList(r.opts["disabled_requisites"])
	return r
}

// masked gives programs the umask of the state that runs.
type masked struct {
	r    *Run
	next modules.Runner
}

func (m masked) Run(ctx context.Context, cmd modules.Command) (modules.CommandResult, error) {
	if m.next == nil {
		return modules.CommandResult{}, modules.Errorf("cannot run %s: this program runs no commands", strings.Join(cmd.Args, " "))
	}
	if cmd.Umask == nil && m.r.umask != nil {
		cmd.Umask = m.r.umask
	}
	return m.next.Run(ctx, cmd)
}

// textList is an option that is a text or a list of texts.
func textList(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		list := make([]string, len(v))
		for i, x := range v {
			list[i] = pytext.Str(x)
		}
		return list
	}
	return nil
}

// Env is what functions see of the program during the run.
func (r *Run) Env() *modules.Env { return r.env }

// self is what the state system itself sees of the job.
func (r *Run) self() (*modules.Call, error) {
	return r.parent.Foreign(r.env, r.exec, &modules.Def{Name: "call"}, "state", nil, nil)
}

// callExec calls an execution function as the state system itself does (self.functions).
func (r *Run) callExec(ctx context.Context, fun string, args []any, kwargs map[string]any) (any, error) {
	c, err := r.self()
	if err != nil {
		return nil, err
	}
	return c.ExecKw(ctx, fun, args, kwargs)
}

// grains are those of the run as the job has left them.
func (r *Run) grains() map[string]any {
	c, err := r.self()
	if err != nil {
		return r.env.GrainData()
	}
	return c.GrainData()
}

// hasExec tells whether there is such an execution function.
func (r *Run) hasExec(fun string) bool {
	reg := r.exec
	if reg == nil {
		reg = r.parent.Registry()
	}
	_, err := reg.Lookup(fun, r.env)
	return err == nil
}

// option is config.option, once per run.
func (r *Run) option(ctx context.Context, name string) any {
	if !r.hasExec("config.option") {
		return r.opts[name]
	}
	v, err := r.callExec(ctx, "config.option", []any{name}, nil)
	if err != nil {
		return r.opts[name]
	}
	return v
}

// started is the moment a state began.
type started struct{ at time.Time }

func (r *Run) begin() started { return started{r.env.Now()} }

func (s started) start() string {
	text := s.at.Local().Format("15:04:05.000000")
	return strings.TrimSuffix(text, ".000000")
}

// since is the duration in milliseconds, with three digits as Python's microseconds give it.
func (r *Run) since(s started) float64 {
	return milliseconds(r.env.Now().Sub(s.at))
}

func milliseconds(d time.Duration) float64 {
	if d < 0 {
		d = 0
	}
	return float64(d.Microseconds()) / 1000
}

// notRun completes the record of a chunk whose function was not called.
func (r *Run) notRun(low *Low, rec record) record {
	s := r.begin()
	rec["start_time"], rec["duration"] = s.start(), r.since(s)
	rec["__run_num__"] = r.num
	r.num++
	return identify(low, rec)
}

func identify(low *Low, rec record) record {
	for _, key := range [...]string{"__sls__", "__id__", "name"} {
		rec[key] = low.Value(key)
	}
	return rec
}

// Call runs a chunk (State.call). The error is one that ends the whole run.
func (r *Run) Call(ctx context.Context, low *Low) (record, error) {
	rec, err := r.call(ctx, low, 1)
	rec = unify(rec)
	plainSubs(rec)
	return rec, err
}

func (r *Run) call(ctx context.Context, low *Low, retries int64) (record, error) {
	s := r.begin()
	if log := r.env.Logger(); log.Enabled(ctx, slog.LevelInfo) {
		log.Info("Running state ["+strings.TrimSpace(low.name)+"] at time "+s.start(), "jid", r.jid)
	}
	if errs := r.verify(low); errs != nil {
		rec := record{"result": false, "name": low.Value("name"), "changes": map[string]any{}, "comment": strings.Join(errs, "\n") + "\n", "__run_num__": r.num}
		r.num++
		r.logResult(ctx, rec)
		r.refresh(ctx, low, rec)
		return rec, nil
	}
	prereq := low.Truth("__prereq__")
	restore, err := r.provide(low)
	if err != nil {
		return nil, err
	}
	t := r.find(low.state, low.fun)
	args, extra, err := t.arguments(low)
	if err != nil {
		return nil, err
	}
	job := r.parent.Context()
	job.Set("runas", low.Value("runas"))
	if low.state == "cmd" && low.Has("password") {
		job.Set("runas_password", low.Value("password"))
	} else {
		job.Set("runas_password", low.Value("runas_password"))
	}
	rec, err := r.attempt(ctx, low, t, args, extra, prereq)
	if err != nil {
		rec = failure(low.nameOf(args), err).Map()
	}
	job.Set("runas", nil)
	job.Set("runas_password", nil)
	restore()
	if prereq {
		low.Set("__prereq__", false)
		return unify(rec), nil
	}
	rec["__sls__"], rec["__run_num__"] = low.Value("__sls__"), r.num
	r.num++
	r.logResult(ctx, rec)
	r.refresh(ctx, low, rec)
	rec["start_time"], rec["duration"], rec["__id__"] = s.start(), r.since(s), low.Value("__id__")
	if low.Has("retry") && !low.Has("parallel") {
		if rec, err = r.retry(ctx, low, rec, retries); err != nil {
			return nil, err
		}
	}
	return unify(rec), nil
}

// nameOf is the name in the record of a state whose function raised.
func (l *Low) nameOf(args map[string]any) string {
	if s, ok := args["name"].(string); ok && s != "" {
		return s
	}
	if l.name != "" {
		return l.name
	}
	return l.id
}

// attempt checks the conditions of a chunk and runs its function. The error is an exception that becomes the state's comment.
func (r *Run) attempt(ctx context.Context, low *Low, t *target, args map[string]any, extra []string, prereq bool) (rec record, err error) {
	rec = record{"result": false, "name": low.Value("name"), "changes": map[string]any{}}
	if (low.Has("unless") || low.Has("onlyif") || low.Has("creates")) && !r.reg.has(low.state+".mod_run_check", r.env) {
		checked, err := r.check(ctx, low)
		if err != nil {
			return nil, err
		}
		maps.Copy(rec, checked)
	}
	env := r.saltenv(low, args)
	if rec["result"] == false {
		switch {
		case r.mocked:
			rec = record{"name": args["name"], "comment": "Not called, mocked", "changes": map[string]any{}, "result": true}
		case !r.conditionsMet(ctx, low):
			rec = record{"name": low.Value("name"), "comment": "Failed to meet global state conditions. State not called.",
				"changes": map[string]any{}, "result": nil}
		case !prereq && low.Truth("parallel"):
			rec = r.startParallel(ctx, low, t, args, extra, env)
		default:
			if rec, err = r.runFunction(ctx, low, t, args, extra, env, prereq); err != nil {
				return nil, err
			}
		}
	}
	if low.Has("check_cmd") && (!t.module.RunsCheckCmd || !t.declares("check_cmd")) {
		checked, err := r.checkCmd(ctx, low)
		if err != nil {
			return nil, err
		}
		maps.Copy(rec, checked)
	}
	return rec, nil
}

// saltenv is the environment that the function sees.
func (r *Run) saltenv(low *Low, args map[string]any) string {
	env := "base"
	if low.Has("__env__") {
		env = pyobj.Str(low.d.Value("__env__"))
	}
	if !pytext.Truth(r.opts["lock_saltenv"]) {
		if low.Has("saltenv") {
			env = pyobj.Str(low.d.Value("saltenv"))
		} else if s, ok := args["env"].(string); ok {
			env = s
		}
	}
	return env
}

// runFunction runs the state function itself.
func (r *Run) runFunction(ctx context.Context, low *Low, t *target, args map[string]any, extra []string, saltenv string, test bool) (record, error) {
	args, err := r.slots(ctx, args)
	if err != nil {
		return nil, err
	}
	mc, err := r.parent.Foreign(r.env, r.exec, t.decl, low.state+"."+low.fun, nil, args)
	if err != nil {
		return nil, err
	}
	c := &Call{Call: mc, Low: low, KeywordNames: extra, run: r, test: test || pytext.Truth(r.opts["test"]), saltenv: saltenv}
	var res *Result
	if mask, ok := low.d.Value("__umask__").(int64); ok && !low.Has("parallel") {
		n := int(mask)
		r.umask = &n
		underMask(n, func() { res, err = invoke(ctx, t.def, c) })
		r.umask = nil
	} else {
		res, err = invoke(ctx, t.def, c)
	}
	if err != nil {
		return nil, err
	}
	rec := r.record(res)
	if name := low.Value("name"); rec["name"] == any(low.name) {
		rec["name"] = name // which need not be text
	}
	return rec, nil
}

// invoke runs a function and catches its panic.
func invoke(ctx context.Context, d *Def, c *Call) (res *Result, err error) {
	if d == nil || d.Run == nil {
		return nil, &modules.NotAvailableError{Fun: c.Fun}
	}
	defer func() {
		if p := recover(); p != nil {
			res, err = nil, &crash{value: p, stack: debug.Stack()}
		}
	}()
	if res, err = d.Run(ctx, c); err == nil && res == nil {
		err = modules.Errorf("%s answered nothing", c.Fun)
	}
	return res, err
}

// record is a result as the run keeps it.
func (r *Run) record(res *Result) record {
	rec := res.Map()
	if len(res.SubStates) > 0 {
		rec["sub_state_run"] = res.SubStates
	}
	return rec
}

// callState is [Call.State].
func (r *Run) callState(ctx context.Context, c *Call, fun string, kwargs map[string]any) (*Result, error) {
	state, name, _ := strings.Cut(fun, ".")
	t := r.find(state, name)
	if t.err != nil {
		return nil, t.err
	}
	mc, err := c.Foreign(c.Env, r.exec, t.decl, fun, nil, kwargs)
	if err != nil {
		return nil, err
	}
	low := NewLow(kwargs)
	for _, key := range [...]string{"__sls__", "__env__", "__id__"} {
		if v, ok := c.Low.d.Get(key); ok {
			low.Set(key, v)
		}
	}
	low.Set("state", state)
	low.Set("fun", name)
	sub := &Call{Call: mc, Low: low, KeywordNames: slices.Sorted(maps.Keys(mc.Keywords)), run: r, test: c.test, saltenv: c.saltenv}
	return invoke(ctx, t.def, sub)
}

// unify brings the record of a function into the form that everybody relies on (salt/utils/decorators/state.py).
func unify(rec record) record {
	if rec == nil {
		return nil
	}
	if why := malformed(rec); why != "" {
		return record{"result": false, "name": "later", "changes": map[string]any{}, "comment": "An exception occurred in this state: " + why}
	}
	if list, ok := rec["comment"].([]any); ok {
		parts := make([]string, len(list))
		for i, x := range list {
			parts[i] = pytext.Str(x)
		}
		rec["comment"] = strings.Join(parts, "\n")
	}
	if v := rec["result"]; v != nil {
		rec["result"] = pytext.Truth(v)
	}
	return rec
}

func malformed(rec record) string {
	if _, ok := rec["changes"].(map[string]any); !ok {
		if _, ok := rec["changes"].(map[any]any); !ok {
			return "'Changes' should be a dictionary."
		}
	}
	var missing []string
	for _, key := range [...]string{"name", "result", "changes", "comment"} {
		if _, ok := rec[key]; !ok {
			missing = append(missing, key)
		}
	}
	if missing == nil {
		return ""
	}
	return "The following keys were not present in the state return: " + strings.Join(missing, ", ") + "."
}

// logResult tells the log what a state did, as salt/state.py: format_log does.
func (r *Run) logResult(ctx context.Context, rec record) {
	log, level := r.env.Logger(), slog.LevelInfo
	if rec["result"] == false {
		level = slog.LevelError
	}
	if !log.Enabled(ctx, level) {
		return
	}
	text := pytext.Str(rec["comment"])
	if changes, _ := rec["changes"].(map[string]any); len(changes) > 0 {
		text = pytext.Str(changes)
		if diff, ok := changes["diff"].(string); ok {
			text = "File changed:\n" + diff
		}
		if list := oldAndNew(changes); list != "" {
			text = "Made the following changes:\n" + list
		}
	} else if text == "" {
		text = "No changes made for " + pytext.Str(rec["name"])
	}
	log.Log(ctx, level, text, "jid", r.jid)
}

// oldAndNew lists changes that all have the form {old: …, new: …}; "" if there are others.
func oldAndNew(changes map[string]any) string {
	absent := func(v any) any {
		if v != nil && v != false && !pyobj.Truth(v) {
			return "absent"
		}
		return v
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		m, _ := changes[name].(map[string]any)
		old, ok := m["old"]
		now, ok2 := m["new"]
		if !ok || !ok2 {
			return ""
		}
		fmt.Fprintf(&b, "'%s' changed from '%s' to '%s'\n", name, pytext.Str(absent(old)), pytext.Str(absent(now)))
	}
	return b.String()
}

// refresh makes changes of the host visible to later states (State.check_refresh).
func (r *Run) refresh(ctx context.Context, low *Low, rec record) {
	reload := false
	if low.Truth("reload_grains") {
		if r.env.Agent != nil {
			if err := r.env.Agent.RefreshGrains(ctx); err != nil {
				r.env.Logger().Error("Cannot refresh grains", "jid", r.jid, "err", err)
			}
		}
		reload = true
	}
	if low.Truth("reload_pillar") {
		if pillar, err := Pillar(ctx, r.parent, r.opts, nil); err == nil {
			r.parent.Context().SetPillar(pillar)
		} else {
			r.env.Logger().Error("Cannot refresh pillar", "jid", r.jid, "err", err)
		}
		reload = true
	}
	changes, _ := rec["changes"].(map[string]any)
	switch {
	case len(changes) == 0:
		reload = low.Truth("force_reload_modules")
	case reload || low.Truth("reload_modules"):
		reload = true
	case low.state == "file":
		reload = low.fun == "recurse" || low.fun == "symlink" && strings.Contains(low.name, "bin")
	case low.state == "pkg" || low.state == "ports" || low.state == "pip":
		reload = true
	}
	if reload {
		r.reload()
		r.tellReload(ctx)
	}
}

// tellReload tells the running minion of this host what a salt-call has changed there, and programs that listen.
func (r *Run) tellReload(ctx context.Context) {
	m, ok := r.env.Agent.(modules.Manager)
	if ok && !pytext.Truth(r.opts["local"]) {
		m.Manage(ctx, "module_refresh", map[string]any{}, "")
	}
}

// reload makes the registries ask again which modules suit the host.
func (r *Run) reload() {
	r.parent.Registry().Reset()
	r.reg.Reset()
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.targets)
}

// provide serves the argument provider: execution modules that stand for others during one state. The function it gives ends that.
func (r *Run) provide(low *Low) (restore func(), err error) {
	if !low.Has("provider") {
		return func() {}, nil
	}
	with := map[string]string{}
	switch v := low.d.Value("provider").(type) {
	case string:
		with[low.state] = v
	case *pyobj.List:
		for _, x := range v.Items {
			if d, ok := x.(*pyobj.Dict); ok {
				for k, v := range d.All() {
					with[pyobj.Str(k)] = pyobj.Str(v)
				}
			}
		}
	}
	reg := &modules.Registry{}
	for _, m := range r.parent.Registry().All() {
		if _, replaced := with[m.Called()]; !replaced {
			reg.Add(m)
		}
		for called, name := range with {
			if m.Name == name {
				alias := *m
				alias.Virtual, alias.Available = called, nil
				reg.Add(&alias)
			}
		}
	}
	before := r.exec
	r.exec = reg
	return func() { r.exec = before }, nil
}
