package modules

import (
	"context"
	"sync"
)

// The kinds of modules, besides execution modules, that sources may provide. The names are those of Salt's loader.
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

// RegisterSourceOf adds a source of states, grains, beacons, returners or renderers that the host's owner installed.
// Call it from init and nowhere else.
func RegisterSourceOf(kind string, s Source) {
	sourcesOf.Lock()
	defer sourcesOf.Unlock()
	if sourcesOf.list == nil {
		sourcesOf.list = map[string][]Source{}
	}
	sourcesOf.list[kind] = append(sourcesOf.list[kind], s)
}

// SourcesOf returns the program's sources of a kind. Callers must not modify the list.
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
	// CallState calls another state function with keyword arguments and returns its result in Salt's form.
	CallState(ctx context.Context, fun string, kwargs map[string]any) (map[string]any, error)
	// Global returns the value of a variable that Salt sets in state modules: __low__, __env__, __instance_id__,
	// __running__ or __lowstate__. It returns nil for other names.
	Global(name string) any
	// Test reports whether the state must only report what it would change.
	Test() bool
}

type stateRunKey struct{}

// WithStateRun returns a context that carries the state run to which functions belong.
func WithStateRun(ctx context.Context, r StateRun) context.Context {
	return context.WithValue(ctx, stateRunKey{}, r)
}

// StateRunOf returns the state run that a context carries, or nil.
func StateRunOf(ctx context.Context) StateRun {
	r, _ := ctx.Value(stateRunKey{}).(StateRun)
	return r
}
