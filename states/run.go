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

	"github.com/brine-salt/brine/internal/modkit/owncode"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Options set how states run.
type Options struct {
	// Registry holds the state modules; nil means [Default].
	Registry *Registry
	// Opts are __opts__ of the run, test among them. Pillar is its pillar; nil means the minion's.
	Opts   map[string]any
	Pillar map[string]any
	// Grains and Files replace the minion's; nil keeps those.
	Grains map[string]any
	Files  modules.Files
	// JID is the job id, "" for runs that cannot be paused and send no progress.
	JID string
	// Mocked runs everything but the state functions (the argument mock).
	Mocked bool
}

// A Run is one run of states (salt/state.py: State). Its methods belong to one goroutine; only functions that run
// in parallel share it, and those use the fields that mu guards.
type Run struct {
	parent *modules.Call
	reg    *Registry
	env    *modules.Env
	exec   *modules.Registry // execution functions that states reach; nil means those of parent
	opts   map[string]any
	jid    string
	mocked bool
	// instance identifies the run (__instance_id__).
	instance string

	mu      sync.Mutex
	targets map[string]*target // guarded by mu

	chunks     []*Low
	index      chunkIndex
	running    *results
	pre        map[string]record
	active     map[string]bool
	inited     map[string]bool
	processed  map[string]bool // SLS files, those without states too
	num        int64
	nesting    int // how many chunks wait for the one that runs
	aggregate  any
	aggregated bool // aggregate was looked up
	conditions *pyobj.Dict
	disabled   []string // requisites that the option disabled_requisites switches off
	umask      *int
	slots      parallelSlots
	// shipped is the code that the tree distributes and this host does not run, by environment.
	shipped map[string][]owncode.File
}

// record is the record of a chunk that ran, with Salt's keys.
type record = map[string]any

// New prepares a run inside the call of an execution function.
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

// masked runs programs with the umask of the state that runs, if the state has one.
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

// textList returns an option that is a string or a list of strings, as a list.
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

// Env returns the environment that functions see during the run.
func (r *Run) Env() *modules.Env { return r.env }

// ownCall returns a call on behalf of the state system itself, with the context of the job.
func (r *Run) ownCall() (*modules.Call, error) {
	return r.parent.Foreign(r.env, r.exec, &modules.Def{Name: "call"}, "state", nil, nil)
}

// callExec calls an execution function on behalf of the state system (Salt's self.functions).
func (r *Run) callExec(ctx context.Context, fun string, args []any, kwargs map[string]any) (any, error) {
	c, err := r.ownCall()
	if err != nil {
		return nil, err
	}
	return c.ExecKw(ctx, fun, args, kwargs)
}

// runGrains returns the grains of the run. An earlier state of the job may have changed them.
func (r *Run) runGrains() map[string]any {
	c, err := r.ownCall()
	if err != nil {
		return r.env.GrainData()
	}
	return c.GrainData()
}

// hasExec reports whether an execution function exists and suits this host.
func (r *Run) hasExec(fun string) bool {
	reg := r.exec
	if reg == nil {
		reg = r.parent.Registry()
	}
	_, err := reg.Lookup(fun, r.env)
	return err == nil
}

// configOption returns config.option for an option, which also looks into pillar and grains. A program without that
// function has the option itself.
func (r *Run) configOption(ctx context.Context, name string) any {
	if !r.hasExec("config.option") {
		return r.opts[name]
	}
	v, err := r.callExec(ctx, "config.option", []any{name}, nil)
	if err != nil {
		return r.opts[name]
	}
	return v
}

// started is the moment at which a state began.
type started struct{ at time.Time }

func (r *Run) startTimer() started { return started{r.env.Now()} }

// startTime returns the time of day as Salt's records have it: microseconds, left out if they are zero.
func (s started) startTime() string {
	text := s.at.Local().Format("15:04:05.000000")
	return strings.TrimSuffix(text, ".000000")
}

// sinceStart returns the duration in milliseconds with three digits, the precision of Python's microseconds.
func (r *Run) sinceStart(s started) float64 {
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
	s := r.startTimer()
	rec["start_time"], rec["duration"] = s.startTime(), r.sinceStart(s)
	rec["__run_num__"] = r.num
	r.num++
	return identifyRecord(low, rec)
}

// identifyRecord adds the keys that every record has.
func identifyRecord(low *Low, rec record) record {
	for _, key := range [...]string{"__sls__", "__id__", "name"} {
		rec[key] = low.Value(key)
	}
	return rec
}

// Call runs one chunk, without its requisites (State.call). The error ends the whole run; a failed state is not an
// error.
func (r *Run) Call(ctx context.Context, low *Low) (record, error) {
	rec, err := r.runChunk(ctx, low, 1)
	rec = unifyRecord(rec)
	plainSubs(rec)
	return rec, err
}

// runChunk runs a chunk: it verifies it, evaluates its conditions, calls its function, and retries. retries is the
// number of this attempt, from 1. With __prereq__ the function runs in test mode and the record is neither numbered
// nor logged.
func (r *Run) runChunk(ctx context.Context, low *Low, retries int64) (record, error) {
	s := r.startTimer()
	name := strings.TrimSpace(low.name)
	log := r.env.Logger()
	logs := log.Enabled(ctx, slog.LevelInfo)
	if logs {
		log.Info("Running state ["+name+"] at time "+s.startTime(), "jid", r.jid)
	}
	if r.env.OnState != nil {
		r.env.OnState(modules.StateStep{Number: int(r.num) + 1, Total: len(r.chunks), Fun: low.state + "." + low.fun, Name: name})
	}
	if errs := r.verifyChunk(low); errs != nil {
		rec := record{"result": false, "name": low.Value("name"), "changes": map[string]any{}, "comment": strings.Join(errs, "\n") + "\n", "__run_num__": r.num}
		r.num++
		r.logResult(ctx, rec)
		r.refreshHost(ctx, low, rec)
		return rec, nil
	}
	prereq := low.Truth("__prereq__")
	if logs && !prereq {
		log.Info("Executing state "+low.state+"."+low.fun+" for ["+name+"]", "jid", r.jid)
	}
	restore, err := r.applyProviders(low)
	if err != nil {
		return nil, err
	}
	t := r.findFunction(low.state, low.fun)
	args, extra, err := t.callArguments(low)
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
	rec, err := r.attemptChunk(ctx, low, t, args, extra, prereq)
	if err != nil {
		rec = exceptionResult(low.nameOf(args), err).Map()
	}
	job.Set("runas", nil)
	job.Set("runas_password", nil)
	restore()
	if prereq {
		low.Set("__prereq__", false)
		return unifyRecord(rec), nil
	}
	rec["__sls__"], rec["__run_num__"] = low.Value("__sls__"), r.num
	r.num++
	r.logResult(ctx, rec)
	r.refreshHost(ctx, low, rec)
	took := r.sinceStart(s)
	rec["start_time"], rec["duration"], rec["__id__"] = s.startTime(), took, low.Value("__id__")
	if logs {
		log.Info("Completed state ["+name+"] at time "+r.startTimer().startTime()+" (duration_in_ms="+pytext.Float(took)+")", "jid", r.jid)
	}
	if low.Has("retry") && !low.Has("parallel") {
		if rec, err = r.retryState(ctx, low, rec, retries); err != nil {
			return nil, err
		}
	}
	return unifyRecord(rec), nil
}

// nameOf returns the name for the record of a state whose function raised an exception.
func (l *Low) nameOf(args map[string]any) string {
	if s, ok := args["name"].(string); ok && s != "" {
		return s
	}
	if l.name != "" {
		return l.name
	}
	return l.id
}

// attemptChunk evaluates the conditions of a chunk and runs its function. The error is an exception that becomes
// the state's comment.
func (r *Run) attemptChunk(ctx context.Context, low *Low, t *target, args map[string]any, extra []string, prereq bool) (rec record, err error) {
	rec = record{"result": false, "name": low.Value("name"), "changes": map[string]any{}}
	if (low.Has("unless") || low.Has("onlyif") || low.Has("creates")) && !r.reg.hasFunction(low.state+".mod_run_check", r.env) {
		checked, err := r.checkConditions(ctx, low)
		if err != nil {
			return nil, err
		}
		maps.Copy(rec, checked)
	}
	env := r.chunkSaltenv(low, args)
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
	if low.Has("check_cmd") && (!t.module.RunsCheckCmd || !t.declaresParam("check_cmd")) {
		checked, err := r.checkCmd(ctx, low)
		if err != nil {
			return nil, err
		}
		maps.Copy(rec, checked)
	}
	return rec, nil
}

// chunkSaltenv returns the environment that the function sees. The argument saltenv, or one named env, replaces the
// one of the file unless lock_saltenv forbids that.
func (r *Run) chunkSaltenv(low *Low, args map[string]any) string {
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

// runFunction resolves the slots and runs the state function. A umask belongs to a thread, and Go moves goroutines
// between threads, so a function with umask runs on a thread of its own (underMask).
func (r *Run) runFunction(ctx context.Context, low *Low, t *target, args map[string]any, extra []string, saltenv string, test bool) (record, error) {
	args, err := r.formatSlots(ctx, args)
	if err != nil {
		return nil, err
	}
	mc, err := r.parent.Foreign(r.env, r.exec, t.decl, low.state+"."+low.fun, nil, args)
	if err == nil {
		// guard: seal minion:TestSealHoldsHoweverDeep
		err = mc.Admit(modules.State)
	}
	if err != nil {
		return nil, err
	}
	c := &Call{Call: mc, Low: low, KeywordNames: extra, run: r, test: test || pytext.Truth(r.opts["test"]), saltenv: saltenv}
	var res *Result
	if mask, ok := low.d.Value("__umask__").(int64); ok && !low.Has("parallel") {
		n := int(mask)
		r.umask = &n
		underMask(n, func() { res, err = invokeFunction(ctx, t.def, c) })
		r.umask = nil
	} else {
		res, err = invokeFunction(ctx, t.def, c)
	}
	if err != nil {
		return nil, err
	}
	rec := r.resultRecord(res)
	if changes, ok := rec["changes"].(map[string]any); ok && len(changes) > 0 {
		rec["changes"] = keyOrderOf(low).apply(changes)
	}
	if name := low.Value("name"); rec["name"] == any(low.name) {
		rec["name"] = name // the name in the SLS may be a number
	}
	return rec, nil
}

// invokeFunction runs a function and turns a panic into an error: a bug in one module must not end the minion.
func invokeFunction(ctx context.Context, d *Def, c *Call) (res *Result, err error) {
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

// resultRecord returns the record of a result. Sub-states stay Go values until finishChunk gives them records.
func (r *Run) resultRecord(res *Result) record {
	rec := res.Map()
	if len(res.SubStates) > 0 {
		rec["sub_state_run"] = res.SubStates
	}
	return rec
}

// callState implements [Call.State].
func (r *Run) callState(ctx context.Context, c *Call, fun string, kwargs map[string]any) (*Result, error) {
	state, name, _ := strings.Cut(fun, ".")
	t := r.findFunction(state, name)
	if t.err != nil {
		return nil, t.err
	}
	mc, err := c.Foreign(c.Env, r.exec, t.decl, fun, nil, kwargs)
	if err == nil {
		// guard: seal minion:TestSealHoldsHoweverDeep
		err = mc.Admit(modules.State)
	}
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
	return invokeFunction(ctx, t.def, sub)
}

// unifyRecord checks a function's record and converts it to the form that outputters and requisites rely on
// (salt/utils/decorators/state.py): the comment is a string, the result a bool or nil. A malformed record becomes a
// failure, in Salt's words.
func unifyRecord(rec record) record {
	if rec == nil {
		return nil
	}
	if why := findMalformed(rec); why != "" {
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

// findMalformed returns what is wrong with a record, "" if nothing is.
func findMalformed(rec record) string {
	switch rec["changes"].(type) {
	case map[string]any, map[any]any, *pyobj.Dict:
	default:
		return "'Changes' should be a dictionary."
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

// changesOf returns the changes of a record as plain data.
func changesOf(rec record) map[string]any {
	changes, _ := pyobj.Plain(rec["changes"]).(map[string]any)
	return changes
}

// logResult logs what a state did, in the form of salt/state.py: format_log.
func (r *Run) logResult(ctx context.Context, rec record) {
	log, level := r.env.Logger(), slog.LevelInfo
	if rec["result"] == false {
		level = slog.LevelError
	}
	if !log.Enabled(ctx, level) {
		return
	}
	text := pytext.Str(rec["comment"])
	if changes, _ := pyobj.From(rec["changes"]).(*pyobj.Dict); changes != nil && changes.Len() > 0 {
		text = pyobj.Str(changes)
		if diff, ok := changes.Value("diff").(string); ok {
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

// oldAndNew lists changes that all have the form {old: …, new: …}, "" if any has another.
func oldAndNew(changes *pyobj.Dict) string {
	absent := func(v any) any {
		if v != nil && v != false && !pyobj.Truth(v) {
			return "absent"
		}
		return v
	}
	var b strings.Builder
	for name, change := range changes.All() {
		m, _ := pyobj.From(change).(*pyobj.Dict)
		if m == nil || !m.Has("old") || !m.Has("new") {
			return ""
		}
		fmt.Fprintf(&b, "'%s' changed from '%s' to '%s'\n", pyobj.Str(name), pyobj.Str(absent(m.Value("old"))), pyobj.Str(absent(m.Value("new"))))
	}
	return b.String()
}

// refreshHost makes changes of the host visible to later states (State.check_refresh): a package that was just
// installed may bring the program that a module's __virtual__ looks for. The rules are Salt's, among them that
// file.symlink counts only if "bin" is in the name.
func (r *Run) refreshHost(ctx context.Context, low *Low, rec record) {
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
	switch {
	case len(changesOf(rec)) == 0:
		reload = low.Truth("force_reload_modules")
	case reload || low.Truth("reload_modules"):
		reload = true
	case low.state == "file":
		reload = low.fun == "recurse" || low.fun == "symlink" && strings.Contains(low.name, "bin")
	case low.state == "pkg" || low.state == "ports" || low.state == "pip":
		reload = true
	}
	if reload {
		r.reloadModules()
		r.tellReload(ctx)
	}
}

// tellReload sends module_refresh to the running minion of this host, since a salt-call changes the host behind its
// back.
func (r *Run) tellReload(ctx context.Context) {
	m, ok := r.env.Agent.(modules.Manager)
	if ok && !pytext.Truth(r.opts["local"]) {
		m.Manage(ctx, "module_refresh", map[string]any{}, "")
	}
}

// reloadModules makes the registries decide again which modules suit the host.
func (r *Run) reloadModules() {
	r.parent.Registry().Reset()
	r.reg.Reset()
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.targets)
}

// applyProviders implements the argument provider: during one state other execution modules replace those of a
// name. restore ends that.
func (r *Run) applyProviders(low *Low) (restore func(), err error) {
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
