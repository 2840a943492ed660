package modules

import (
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/brine-salt/brine/modules/pyobj"
)

// Context is the state that the calls of one job share: the return code, values that functions store for each other,
// and changes to the environment. It corresponds to Salt's __context__ and os.environ: Salt runs each job in its own
// process, brine runs all jobs in one. The zero value is ready to use. Its methods are safe for concurrent use.
type Context struct {
	mu      sync.Mutex
	retcode int                  // guarded by mu
	values  map[string]any       // guarded by mu
	environ map[string]*string   // guarded by mu; nil is a variable that was removed
	grains  map[string]*jobGrain // guarded by mu; nil is a grain that was removed
	// pillar is the job's own pillar. plainPillar is the same as a map, if it differs from the minion's. mu guards
	// both.
	pillar      *pyobj.Dict
	plainPillar map[string]any
	closers     []func() // guarded by mu
	keep        bool     // guarded by mu
}

// Keep makes resources that functions hold for later calls of the job last until Close. By default they are released
// when idle. It is for jobs that never end, such as those of beacons.
func (x *Context) Keep() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.keep = true
}

// Kept reports whether Keep was called.
func (x *Context) Kept() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.keep
}

// AtClose registers f to be called by Close.
func (x *Context) AtClose(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closers = append(x.closers, f)
}

// Close releases resources that functions hold for later calls of the job, such as a Python process. Without Close,
// functions release them after some idle time. The context stays usable.
func (x *Context) Close() {
	x.mu.Lock()
	closers := x.closers
	x.mu.Unlock()
	for _, f := range closers {
		f()
	}
}

// Retcode returns the job's return code so far.
func (x *Context) Retcode() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.retcode
}

func (x *Context) setRetcode(code int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.retcode = code
}

// Get returns the value that the job stored under a key.
func (x *Context) Get(key string) (any, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	v, ok := x.values[key]
	return v, ok
}

// Set stores a value for later calls of the job.
func (x *Context) Set(key string, v any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.values == nil {
		x.values = map[string]any{}
	}
	x.values[key] = v
}

// Getenv returns an environment variable with the job's changes applied.
func (x *Context) Getenv(name string) (string, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if v, ok := x.environ[name]; ok {
		if v == nil {
			return "", false
		}
		return *v, true
	}
	return os.LookupEnv(name)
}

// Setenv sets an environment variable for the rest of the job.
func (x *Context) Setenv(name, value string) { x.change(name, &value) }

// Unsetenv removes an environment variable for the rest of the job.
func (x *Context) Unsetenv(name string) { x.change(name, nil) }

func (x *Context) change(name string, value *string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.environ == nil {
		x.environ = map[string]*string{}
	}
	x.environ[name] = value
}

// Environ returns the job's changes to the environment in the form of Command.Env: "name=value", or a bare name for a
// removed variable.
func (x *Context) Environ() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var env []string
	for _, name := range slices.Sorted(maps.Keys(x.environ)) {
		if v := x.environ[name]; v != nil {
			env = append(env, name+"="+*v)
		} else {
			env = append(env, name)
		}
	}
	return env
}

// A jobGrain is a grain that a job has set. Nothing changes its values.
type jobGrain struct{ plain, ordered any }

// SetGrain sets a grain for the rest of the job. The value may be ordered (package modules/pyobj). It is copied.
func (x *Context) SetGrain(name string, value any) {
	ordered := pyobj.DeepCopy(pyobj.From(value))
	x.changeGrain(name, &jobGrain{plain: pyobj.Plain(ordered), ordered: ordered})
}

// DropGrain removes a grain for the rest of the job.
func (x *Context) DropGrain(name string) { x.changeGrain(name, nil) }

func (x *Context) changeGrain(name string, g *jobGrain) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.grains == nil {
		x.grains = map[string]*jobGrain{}
	}
	x.grains[name] = g
}

// orderedGrain returns a copy of a grain that the job has set, with ordered dictionaries. ok is false if the job has
// not set it.
func (x *Context) orderedGrain(name string) (v any, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if g := x.grains[name]; g != nil {
		return pyobj.DeepCopy(g.ordered), true
	}
	return nil, false
}

// orderGrains gives the grains that the job has set their ordered values.
func (x *Context) orderGrains(grains *pyobj.Dict) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, g := range x.grains {
		if g != nil {
			_ = grains.Set(name, pyobj.DeepCopy(g.ordered)) // a text is a key
		}
	}
}

// overGrains returns the grains with the job's changes applied.
func (x *Context) overGrains(grains map[string]any) map[string]any {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.grains) == 0 {
		return grains
	}
	grains = maps.Clone(grains)
	if grains == nil {
		grains = map[string]any{}
	}
	for k, v := range x.grains {
		if v == nil {
			delete(grains, k)
		} else {
			grains[k] = v.plain
		}
	}
	return grains
}
