// Package pillar says how a master makes the pillar of a minion, and makes it from pillar files with a top file: Salt's
// pillar_roots, rendered as stock Salt renders them, and external pillars. A program that embeds a master gives a Func
// of its own instead, or besides. Salt's source: salt/pillar/__init__.py; package states/render/pillar has the
// compiler.
package pillar

import (
	"context"
	"maps"

	"github.com/brine-salt/brine/protocol/payload"
)

// Request is a minion's question for its pillar. Everything but ID comes from the minion and is its own claim: a secret
// that depends on a grain is open to every minion that claims the grain.
type Request struct {
	// GrainsOrder is Grains in the order in which the minion has their keys; nil where it is not known.
	GrainsOrder payload.OrderedMap
	// ID is the verified id.
	ID string
	// Tenant is the tenant that the minion belongs to, "" for none, where it was announced.
	Tenant string
	// Grains as the minion sent them, with "id" set to the verified one.
	Grains map[string]any
	// Saltenv and Pillarenv choose environments; empty means not chosen.
	Saltenv, Pillarenv string
	// Override is pillar given with a command (pillar={...}); it is merged over the result. Maps in it may be
	// payload.OrderedMap.
	Override map[string]any
	// OverrideOrder is Override in the order in which it was given; nil where it is not known.
	OverrideOrder payload.OrderedMap
	// Extra is extra_minion_data.
	Extra map[string]any
}

// Func makes a pillar. The result belongs to the caller. An error goes to the master's log; the minion gets a pillar
// with _errors, which it refuses to apply states with, and no part of the data.
type Func func(ctx context.Context, r Request) (map[string]any, error)

// Chain merges the pillars of several functions, later ones over earlier ones, maps recursively.
func Chain(funcs ...Func) Func {
	return func(ctx context.Context, r Request) (map[string]any, error) {
		out := map[string]any{}
		for _, f := range funcs {
			p, err := f(ctx, r)
			if err != nil {
				return nil, err
			}
			out = Merge(out, p)
		}
		return out, nil
	}
}

// Static is the same pillar for every minion.
func Static(data map[string]any) Func {
	return func(context.Context, Request) (map[string]any, error) { return maps.Clone(data), nil }
}

// Merge puts over over base, maps recursively, everything else replaced: Salt's pillar_source_merging_strategy
// "recurse", which "smart" is for YAML, without pillar_merge_lists. Neither argument is changed.
func Merge(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = make(map[string]any, len(over))
	}
	for k, v := range over {
		oldMap, a := out[k].(map[string]any)
		newMap, b := v.(map[string]any)
		if a && b {
			v = Merge(oldMap, newMap)
		}
		out[k] = v
	}
	return out
}
