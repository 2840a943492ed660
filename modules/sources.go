package modules

import (
	"context"
	"sync"
)

// The kinds of code besides execution modules of which a program may have sources, by the names that Salt's loader has for them.
const (
	KindStates    = "states"
	KindGrains    = "grains"
	KindBeacons   = "beacons"
	KindReturners = "returners"
	KindRenderers = "renderers"
)

var sourcesOf struct {
	sync.Mutex
	list map[string][]Source // guarded by the mutex
}

// RegisterSourceOf adds a source of states, grains, beacons, returners or renderers: modules that the host's owner has put there.
// Call it from init and nowhere else.
func RegisterSourceOf(kind string, s Source) {
	sourcesOf.Lock()
	defer sourcesOf.Unlock()
	if sourcesOf.list == nil {
		sourcesOf.list = map[string][]Source{}
	}
	sourcesOf.list[kind] = append(sourcesOf.list[kind], s)
}

// SourcesOf returns the sources of a kind that the program has. Callers must not change the list.
func SourcesOf(kind string) []Source {
	sourcesOf.Lock()
	defer sourcesOf.Unlock()
	return sourcesOf.list[kind]
}

// FindIn returns the first module of a kind that the sources have under a name, or nil if none suits the host. reason
// is then why the host cannot use an existing one.
func FindIn(kind string, e *Env, called string) (m *Module, reason string) {
	r := e.Functions
	if r == nil {
		r = &Registry{}
	}
	for _, s := range SourcesOf(kind) {
		for _, m := range s.Find(r, e, called) {
			found, ok, why := m.suits(e)
			if ok && m.Called() == called {
				return found, ""
			}
			if reason == "" {
				reason = refusal(called, why)
			}
		}
	}
	return nil, reason
}

// StateRun holds the operations of a run that a state function in another language may use.
type StateRun interface {
	// CallState calls another state function with keyword arguments and returns its result as Salt has it.
	CallState(ctx context.Context, fun string, kwargs map[string]any) (map[string]any, error)
	// Global is the value of one of the names that Salt puts into state modules: __low__, __env__, __instance_id__, __running__ and
	// __lowstate__. It is nil for other names.
	Global(name string) any
	// Test reports whether the state must only say what it would do.
	Test() bool
}

type stateRunKey struct{}

// WithStateRun returns a context in which functions find the state run that they belong to.
func WithStateRun(ctx context.Context, r StateRun) context.Context {
	return context.WithValue(ctx, stateRunKey{}, r)
}

// StateRunOf returns the state run that a context belongs to, nil if to none.
func StateRunOf(ctx context.Context) StateRun {
	r, _ := ctx.Value(stateRunKey{}).(StateRun)
	return r
}
