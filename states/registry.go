package states

import (
	"slices"
	"strings"
	"sync"

	"github.com/brine-salt/brine/modules"
)

// A Registry is a set of state modules. Modules are added while a program starts; afterwards it is safe for
// concurrent use.
type Registry struct {
	mu       sync.Mutex
	list     []*Module         // guarded by mu
	declared *modules.Registry // guarded by mu; built from list at first use
	found    map[*modules.Def]function
}

// A function is a declared function with its module.
type function struct {
	module *Module
	def    *Def // nil for special functions such as mod_init
}

// global is the registry that the blank imports of a program fill.
var global Registry

// Default returns the registry that [Register] fills.
func Default() *Registry { return &global }

// Register adds a module to the default registry. Call it from init only.
func Register(m *Module) { global.Add(m) }

// NewRegistry returns a registry with the given modules and no others.
func NewRegistry(list ...*Module) *Registry {
	r := &Registry{}
	for _, m := range list {
		r.Add(m)
	}
	return r
}

// Add adds a module. It panics if the module has no name or is registered already: that is a programming error,
// which must show when the program starts.
func (r *Registry) Add(m *Module) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m == nil || m.Name == "" {
		panic("states: a module needs a name")
	}
	for _, have := range r.list {
		if have.Name == m.Name && have.Called() == m.Called() {
			panic("states: module registered twice: " + m.Name)
		}
	}
	r.list = append(slices.Clone(r.list), m)
	r.declared, r.found = nil, nil
}

// Reachable returns the modules as Declared does, without those whose execution function (Needs) the program does
// not contain, as reported by has. No change of the host can make these available.
func (r *Registry) Reachable(has func(fun string) bool) []*modules.Module {
	r.mu.Lock()
	list := r.list
	r.mu.Unlock()
	var out []*modules.Module
	for _, m := range list {
		if m.Needs == "" || has(m.Needs) {
			out = append(out, m.Declare())
		}
	}
	return out
}

// Declared returns all modules in the form in which [modules.Env] lists them, for sys.list_state_modules.
func (r *Registry) Declared() []*modules.Module { return r.declaredRegistry().All() }

// Modules returns the modules that are available on this host, in the same form.
func (r *Registry) Modules(e *modules.Env) []*modules.Module { return r.declaredRegistry().Modules(e) }

// Reset forgets which modules suit the host, so that changed grains count.
func (r *Registry) Reset() { r.declaredRegistry().Reset() }

// declaredRegistry returns the declarations, which it builds at first use.
func (r *Registry) declaredRegistry() *modules.Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.declared == nil {
		r.declared, r.found = modules.NewRegistryOf(modules.State), map[*modules.Def]function{}
		for _, s := range modules.SourcesOf(modules.KindStates) {
			r.declared.AddSource(s)
		}
		for _, m := range r.list {
			d := m.Declare()
			for i := range d.Funcs {
				r.found[&d.Funcs[i]] = function{m, m.findDef(d.Funcs[i].Name)}
			}
			r.declared.Add(d)
		}
	}
	return r.declared
}

// lookupFunction finds a function by its full name. The error is a *modules.NotAvailableError.
func (r *Registry) lookupFunction(fun string, e *modules.Env) (function, *modules.Def, error) {
	decl, err := r.declaredRegistry().Lookup(fun, e)
	if err != nil {
		return function{}, nil, err
	}
	r.mu.Lock()
	f, native := r.found[decl]
	r.mu.Unlock()
	if native {
		return f, decl, nil
	}
	called, name, _ := strings.Cut(fun, ".")
	m, reason := modules.FindIn(modules.KindStates, e, called)
	if m == nil { // it was removed meanwhile
		return function{}, nil, &modules.NotAvailableError{Fun: fun, Virtual: reason}
	}
	s := custom(m)
	return function{s, s.findDef(name)}, decl, nil
}

// hasFunction reports whether a function exists, even if a policy forbids calling it. A forbidden mod_watch or
// mod_run_check must fail when it is called; if it counted as missing, the state would silently run without it.
func (r *Registry) hasFunction(fun string, e *modules.Env) bool {
	free := *e
	free.Policy = nil
	_, _, err := r.lookupFunction(fun, &free)
	return err == nil
}
