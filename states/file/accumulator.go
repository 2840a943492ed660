//go:build unix

package file

import (
	"maps"
	"slices"
	"sync"
)

// gathered is what the accumulated states of a run have left for the files that are managed after them.
type gathered struct {
	mu sync.Mutex
	// texts are the texts for a file by accumulator, deps the files that wait for each accumulator. Both guarded by mu.
	texts, deps map[string]map[string][]any
}

// gathering keeps two states that run in parallel from beginning at the same time.
var gathering sync.Mutex

// gathered is what the run has gathered so far (_load_accumulators); changes of it stay (_persist_accummulators).
func (j *job) gathered() *gathered {
	gathering.Lock()
	defer gathering.Unlock()
	key := "file.accumulators " + j.InstanceID()
	if v, ok := j.Context().Get(key); ok {
		if g, ok := v.(*gathered); ok {
			return g
		}
	}
	g := &gathered{texts: map[string]map[string][]any{}, deps: map[string]map[string][]any{}}
	j.Context().Set(key, g)
	return g
}

// charge adds texts to an accumulator of a file unless it has them, and says who waits for it. It tells whether any was new.
func (g *gathered) charge(file, name string, texts, deps []any, same func(a, b any) bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.texts[file] == nil {
		g.texts[file], g.deps[file] = map[string][]any{}, map[string][]any{}
	}
	g.deps[file][name] = append(g.deps[file][name], deps...)
	have, fresh := g.texts[file][name], false
	for _, text := range texts {
		if !slices.ContainsFunc(have, func(x any) bool { return same(x, text) }) {
			have, fresh = append(have, text), true
		}
	}
	g.texts[file][name] = have
	return fresh
}

// of are the texts for a file and who waits for them, both by accumulator; found tells whether there are any.
func (g *gathered) of(file string) (texts, deps map[string][]any, found bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	texts, found = g.texts[file]
	texts, deps = maps.Clone(texts), maps.Clone(g.deps[file])
	for _, m := range [...]map[string][]any{texts, deps} {
		for name := range m {
			m[name] = slices.Clone(m[name])
		}
	}
	return texts, deps, found
}
