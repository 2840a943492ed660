package modules

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/brine-salt/brine/modules/pyobj"
)

// Registry is a set of modules. Add modules while the program starts; after that it is safe for concurrent use.
type Registry struct {
	kind Kind // what a [Policy] is asked about

	mu      sync.Mutex
	modules []*Module          // guarded by mu
	sources []Source           // guarded by mu
	options []string           // see AddOptions
	chosen  map[string]*choice // guarded by mu; by called name, decided at first use
	version int                // guarded by mu; counts what makes choices void
}

type choice struct {
	module  *Module
	refused []string
}

// Source provides modules that change while a program runs, such as programs in a directory. It is queried on each
// use, so it must be quick if nothing has changed. It must be safe for concurrent use.
type Source interface {
	// Find returns the source's modules that are called by a name. They take precedence over the registry's own.
	Find(r *Registry, e *Env, called string) []*Module
	// Modules returns all modules of the source, whether or not they are available.
	Modules(r *Registry, e *Env) []*Module
	// Reset makes the source read its modules again, even if nothing seems to have changed.
	Reset()
}

// global is the registry that a program's blank imports register into.
var global Registry

// Default returns the registry that [Register] fills.
func Default() *Registry { return &global }

// Register adds a module to the default registry. Call it from init and nowhere else.
func Register(m *Module) { global.Add(m) }

// RegisterSource adds a source to the default registry. Call it from init and nowhere else.
func RegisterSource(s Source) { global.AddSource(s) }

// RegisterOptions declares options in the default registry. Call it from init and nowhere else.
func RegisterOptions(names ...string) { global.AddOptions(names...) }

// NewRegistry creates a registry with these modules only.
func NewRegistry(list ...*Module) *Registry {
	r := &Registry{}
	for _, m := range list {
		r.Add(m)
	}
	return r
}

// NewRegistryOf creates a registry of another kind of functions than execution functions.
func NewRegistryOf(kind Kind, list ...*Module) *Registry {
	r := NewRegistry(list...)
	r.kind = kind
	return r
}

// Add adds a module. It panics on a module without a name, or with a name that is taken: both are programming errors.
func (r *Registry) Add(m *Module) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m == nil || m.Name == "" || strings.Contains(m.Name, ".") {
		panic("modules: a module needs a name without dots")
	}
	for _, have := range r.modules {
		if have.Name == m.Name && have.Called() == m.Called() {
			panic("modules: module registered twice: " + m.Name)
		}
	}
	at := sort.Search(len(r.modules), func(i int) bool { return r.modules[i].Name > m.Name })
	r.modules = slices.Insert(slices.Clone(r.modules), at, m) // pick reads the old list without the lock
	r.forget()
}

// AddOptions declares options of the minion's configuration that the program or its modules read. The minion logs a
// warning for options that are neither declared here nor known to Salt or brine. Call it while the program starts.
func (r *Registry) AddOptions(names ...string) { r.options = append(r.options, names...) }

// Options returns the options declared with [Registry.AddOptions]. Callers must not modify the list.
func (r *Registry) Options() []string { return r.options }

// AddSource adds a source of modules.
func (r *Registry) AddSource(s Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sources = append(slices.Clone(r.sources), s)
}

func (r *Registry) allSources() []Source {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sources
}

// pick decides which module a called name stands for on this host: one of a source, or otherwise one of the program.
// As in Salt, a module that the host's owner has installed replaces the program's module of that name, even if it
// refuses the host.
func (r *Registry) pick(called string, e *Env) *choice {
	off := r.disabled(e)
	if m := r.provider(called, e); m != nil && !m.named(off) {
		return r.remembered(choiceKey(called+" "+m.Name, off), func() *choice { return &choice{module: m.with(r.own(called, e).module)} })
	}
	for _, s := range r.allSources() {
		if list := s.Find(r, e, called); len(list) > 0 {
			return choose(list, called, e, off)
		}
	}
	return r.own(called, e)
}

// choose returns the first module of that name that suits the host. Functions that it lacks come from later ones that
// suit the host too, as in Salt's loader.
func choose(list []*Module, called string, e *Env, off []string) *choice {
	c := &choice{}
	for _, m := range list {
		if m.Called() != called && m.Name != called || m.named(off) {
			continue
		}
		m, ok, reason := m.suits(e)
		switch {
		case ok && m.Called() == called && c.module == nil:
			c.module = m
		case ok && m.Called() == called:
			c.module = c.module.with(m)
		case !ok:
			c.refused = append(c.refused, refusal(called, reason))
		}
	}
	return c
}

// suits returns the module with the functions that it finds on the host, or the reason why the host cannot use it.
func (m *Module) suits(e *Env) (found *Module, ok bool, reason string) {
	if m.Available != nil {
		if ok, reason := m.Available(e); !ok {
			return m, false, reason
		}
	}
	if m.Discover == nil {
		return m, true, ""
	}
	more, err := m.Discover(e)
	if err != nil {
		return m, false, err.Error()
	}
	return m.with(&Module{found: []Found{more}}), true, ""
}

// with returns a module with m's functions and those of other that m lacks.
func (m *Module) with(other *Module) *Module {
	if other == nil {
		return m
	}
	all := *m
	all.Funcs = slices.Clone(m.Funcs)
	for _, d := range other.Funcs {
		if !slices.ContainsFunc(m.Funcs, func(have Def) bool { return have.Name == d.Name }) {
			all.Funcs = append(all.Funcs, d)
		}
	}
	all.found = append(slices.Clone(m.found), other.found...)
	all.Docs, all.docs = nil, slices.Concat(m.allDocs(), other.allDocs())
	return &all
}

// own chooses among the program's own modules, without sources.
func (r *Registry) own(called string, e *Env) *choice {
	off := r.disabled(e)
	return r.remembered(choiceKey(called, off), func() *choice {
		r.mu.Lock()
		list := r.modules
		r.mu.Unlock()
		return choose(list, called, e, off)
	})
}

// remembered returns the cached choice for a key. The first call decides it, outside of the lock since modules look
// at the host; two calls at the same time may both decide.
func (r *Registry) remembered(key string, decide func() *choice) *choice {
	r.mu.Lock()
	c, ok := r.chosen[key]
	version := r.version
	r.mu.Unlock()
	if ok {
		return c
	}
	c = decide()
	if c.module == nil && len(c.refused) == 0 {
		return c // not cached: callers may ask for any name, so the cache could grow without limit
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.version == version {
		if r.chosen == nil {
			r.chosen = map[string]*choice{}
		}
		r.chosen[key] = c
	}
	return c
}

// provider returns the module that the option "providers" sets for a called name, whether or not the module suits the
// host. It returns nil if the option names none, or one that does not exist.
func (r *Registry) provider(called string, e *Env) *Module {
	providers, _ := e.Opt("providers").(map[string]any)
	name, ok := providers[called].(string)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.modules {
		if m.Name == name {
			return m
		}
	}
	return nil
}

func refusal(called, reason string) string {
	if reason == "" {
		return fmt.Sprintf("'%s' __virtual__ returned False", called)
	}
	return fmt.Sprintf("'%s' __virtual__ returned False: %s", called, reason)
}

// Reset discards the decisions about which modules suit the host, so that changed grains take effect, and resets the
// sources.
func (r *Registry) Reset() {
	for _, s := range r.allSources() {
		s.Reset()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget()
}

// Native returns a registry with the program's own modules only, without sources.
func (r *Registry) Native() *Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Registry{kind: r.kind, modules: r.modules}
}

func (m *Module) named(names []string) bool {
	return slices.Contains(names, m.Name) || slices.Contains(names, m.Called())
}

// forget discards all cached choices. The caller holds mu.
func (r *Registry) forget() {
	r.chosen = nil
	r.version++
}

// Lookup returns a function by its full name. The error is a *NotAvailableError, or a *RefusedError of e's policy.
func (r *Registry) Lookup(fun string, e *Env) (*Def, error) {
	if err := e.Refused(r.kind, fun); err != nil {
		return nil, err
	}
	mod, name, ok := strings.Cut(fun, ".")
	if !ok {
		return nil, &NotAvailableError{Fun: fun}
	}
	c := r.pick(mod, e)
	if c.module == nil {
		if len(c.refused) > 0 {
			return nil, &NotAvailableError{Fun: fun, Virtual: c.refused[0]}
		}
		return nil, &NotAvailableError{Fun: fun}
	}
	if d := c.module.Def(name); d != nil {
		return d, nil
	}
	return nil, &NotAvailableError{Fun: fun}
}

// Modules returns the modules that are available on this host, reduced to the functions that e's policy allows. They
// are sorted by the name by which they are called.
func (r *Registry) Modules(e *Env) []*Module {
	r.mu.Lock()
	names := make([]string, 0, len(r.modules))
	for _, m := range r.modules {
		names = append(names, m.Called())
	}
	r.mu.Unlock()
	for _, s := range r.allSources() {
		for _, m := range s.Modules(r, e) {
			names = append(names, m.Called())
		}
	}
	slices.Sort(names)
	var list []*Module
	for _, name := range slices.Compact(names) {
		if c := r.pick(name, e); c.module != nil {
			list = append(list, c.module)
		}
	}
	return e.Permitted(r.kind, list)
}

// All returns every module of the program, whether or not this host can use it, sorted by file name. It does not
// include those of sources.
func (r *Registry) All() []*Module {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.modules)
}

// Functions returns the full names of all functions available on this host, sorted.
func (r *Registry) Functions(e *Env) []string {
	var names []string
	for _, m := range r.Modules(e) {
		for name := range m.Names() {
			names = append(names, m.Called()+"."+name)
		}
	}
	slices.Sort(names)
	return names
}

// Request is a call from outside: a job or salt-call.
type Request struct {
	Fun    string
	JID    string
	Args   []any
	Kwargs map[string]any
	// Pub are the fields of the published job, for functions with **kwargs.
	Pub map[string]any
	// Progress receives items that the function reports before it returns. It may be nil.
	Progress func(item any)
	// Context is shared by several calls of one job; nil means a new one. The return code starts at 0 in either case.
	Context *Context
	// AsGiven leaves Return in the form in which the function returned it, possibly ordered, for callers that encode
	// it.
	AsGiven bool
}

// Result is the return of a call, as it is sent to the master.
type Result struct {
	// Return is the function's result as plain data, unless the request set AsGiven.
	Return any
	// Ordered is the result as the function returned it, with ordered dictionaries and tuples (package
	// modules/pyobj). It is nil if the function returned plain data.
	Ordered any
	Retcode int
	Success bool
	// Out is the outputter; empty means the default.
	Out string
	// Err is the error of a failed call, or nil if the function returned.
	Err error
}

// Run calls a function. Errors and panics become a result with Salt's text and return code.
func (r *Registry) Run(ctx context.Context, e *Env, q Request) Result {
	job := q.Context
	if job == nil {
		job = &Context{}
	}
	job.setRetcode(0)
	c := &Call{Env: e, Fun: q.Fun, JID: q.JID, registry: r, job: job, progress: q.Progress}
	def, err := r.Lookup(q.Fun, e)
	if err != nil {
		return r.failed(e, q.Fun, e.NoteRefusal(q.Fun, err))
	}
	v, err := def.run(ctx, c, q.Args, q.Kwargs, q.Pub)
	if err != nil {
		return r.failed(e, q.Fun, err)
	}
	res := Result{Return: v, Retcode: job.Retcode(), Out: def.Out}
	switch v.(type) {
	case *pyobj.Dict, *pyobj.List, pyobj.Tuple:
		res.Ordered = v
	}
	if !q.AsGiven {
		had := false
		if res.Return, had = pyobj.Settled(pyobj.Plain(v)); had {
			res.Ordered = v
		}
	}
	if res.Retcode == 0 && falseResult(v) {
		res.Retcode = 1
	}
	res.Success = res.Retcode == 0
	return res
}

func (r *Registry) failed(e *Env, fun string, err error) Result {
	res := Result{Retcode: 1, Out: "nested", Err: err} // whatever the function set before it failed
	var exit *ExitError
	if errors.As(err, &exit) && exit.Code != 0 {
		res.Retcode = exit.Code
	}
	res.Return = errorText(fun, func() string { return r.Help(e, fun) }, err)
	var absent *NotAvailableError
	if errors.As(err, &absent) && absent.Fun == fun {
		if docs := r.Docs(e, fun+"*"); len(docs) > 0 {
			docs[fun] = absent.Error()
			res.Return = docs
		}
	}
	return res
}

// AsGiven returns the result in the form in which the function returned it: ordered, if it was.
func (r Result) AsGiven() any {
	if r.Ordered != nil {
		return r.Ordered
	}
	return r.Return
}

// falseResult implements Salt's check of a returned map: if its "result" or "success" is false, the return code
// becomes 1.
func falseResult(v any) bool {
	for _, key := range [...]string{"result", "success"} {
		if x, ok := Field(v, key); ok && !pyobj.Truth(x) {
			return true
		}
	}
	return false
}

// Field returns an entry of a dictionary that a function returned, whether plain or ordered. ok is false if it is
// missing.
func Field(v any, key string) (x any, ok bool) {
	switch m := v.(type) {
	case map[string]any:
		x, ok = m[key]
	case map[any]any:
		x, ok = m[key]
	case *pyobj.Dict:
		x, ok = m.Text(key)
	}
	return x, ok
}

func (r *Registry) run(ctx context.Context, c *Call, args []any, kwargs, pub map[string]any) (any, error) {
	def, err := r.Lookup(c.Fun, c.Env)
	if err != nil {
		return nil, c.NoteRefusal(c.Fun, err)
	}
	return def.run(ctx, c, args, kwargs, pub)
}

// run binds the arguments and calls the body.
func (d *Def) run(ctx context.Context, c *Call, args []any, kwargs, pub map[string]any) (v any, err error) {
	if err := c.fit(d, args, kwargs); err != nil {
		return nil, err
	}
	// guard: seal minion:TestSealHoldsHoweverDeep
	if err := c.Admit(c.registry.kind); err != nil {
		return nil, err
	}
	if d.Kwargs != "" {
		for k, x := range pub {
			c.Keywords["__pub_"+k] = d.border(x)
		}
	}
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, &panicError{value: p, stack: debug.Stack()}
		}
	}()
	return d.Run(ctx, c)
}

// Help returns the documentation of one function, "" if this host has no such function.
func (r *Registry) Help(e *Env, fun string) string {
	if _, err := r.Lookup(fun, e); err != nil {
		return ""
	}
	mod, name, _ := strings.Cut(fun, ".")
	c := r.pick(mod, e)
	if c.module == nil {
		return "" // the modules were reset in between
	}
	return c.module.help(name)
}

// Docs implements sys.doc: it returns the documentation of every function whose name matches the pattern. The pattern
// is the name of a module or function, with an optional "*" at its end; "" matches everything.
func (r *Registry) Docs(e *Env, pattern string) map[string]any {
	docs := map[string]any{}
	prefix, glob := strings.CutSuffix(pattern, "*")
	for _, m := range r.Modules(e) {
		var documented *Module
		for fun := range m.Names() {
			name := m.Called() + "." + fun
			if pattern == "" || name == pattern || m.Called() == pattern || glob && strings.HasPrefix(name, prefix) {
				if documented == nil {
					documented = m.Documented()
				}
				docs[name] = documented.Def(fun).Help()
			}
		}
	}
	return docs
}
