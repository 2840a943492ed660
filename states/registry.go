package states

import (
	"slices"
	"sync"

	"github.com/brine-salt/brine/modules"
)

// Registry is a set of state modules. Registering happens while a program starts; afterwards it is safe for concurrent use.
type Registry struct {
	mu       sync.Mutex
	list     []*Module         // guarded by mu
	declared *modules.Registry // guarded by mu; made of list at first use
	found    map[*modules.Def]function
}

// function is what a declaration stands for.
type function struct {
	module *Module
	def    *Def // nil for mod_init and its like
}

// global is what the blank imports of a program register into.
var global Registry

// Default is the registry that [Register] fills.
func Default() *Registry { return &global }

// Register adds a module to the default registry. Call it from init and nowhere else.
func Register(m *Module) { global.Add(m) }

// NewRegistry makes a registry of its own.
func NewRegistry(list ...*Module) *Registry {
	r := &Registry{}
	for _, m := range list {
		r.Add(m)
	}
	return r
}

// Add adds a module. It panics on one without a name or one that is there already, which is a programming error.
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

// Reachable lists the modules as Declared does, without those that need an execution function that the program does not have at all (has
// reports that); a host cannot change that.
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

// Declared are the modules as [modules.Env] lists them, for sys.list_state_modules and its like.
func (r *Registry) Declared() []*modules.Module { return r.registry().All() }

// Modules are those that are available on this host, described in the same way.
func (r *Registry) Modules(e *modules.Env) []*modules.Module { return r.registry().Modules(e) }

// Reset forgets which modules suit the host, so that changed grains count.
func (r *Registry) Reset() { r.registry().Reset() }

func (r *Registry) registry() *modules.Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.declared == nil {
		r.declared, r.found = modules.NewRegistryOf(modules.State), map[*modules.Def]function{}
		for _, m := range r.list {
			d := m.Declare()
			for i := range d.Funcs {
				r.found[&d.Funcs[i]] = function{m, m.find(d.Funcs[i].Name)}
			}
			r.declared.Add(d)
		}
	}
	return r.declared
}

// lookup finds a function by its full name. The error is a *modules.NotAvailableError.
func (r *Registry) lookup(fun string, e *modules.Env) (function, *modules.Def, error) {
	decl, err := r.registry().Lookup(fun, e)
	if err != nil {
		return function{}, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found[decl], decl, nil
}

// has tells whether there is such a function, whether or not a policy lets it be called: a refused mod_watch or mod_run_check must
// fail, not count as missing.
func (r *Registry) has(fun string, e *modules.Env) bool {
	free := *e
	free.Policy = nil
	_, _, err := r.lookup(fun, &free)
	return err == nil
}
