// Package pillar defines how a master produces minions' pillars, and implements it with pillar files and a top
// file: Salt's pillar_roots, rendered as by stock Salt, and external pillars. A program that embeds a master
// may supply its own Func instead or in addition. Salt's source: salt/pillar/__init__.py; package
// states/render/pillar contains the compiler.
package pillar

import (
	"context"
	"maps"

	"github.com/brine-salt/brine/protocol/payload"
)

// Request is a minion's request for its pillar. Everything but ID is the minion's own claim: a secret that
// depends on a grain is open to every minion that claims the grain.
type Request struct {
	// GrainsOrder is Grains in the minion's key order; nil if unknown.
	GrainsOrder payload.OrderedMap
	// ID is the verified id.
	ID string
	// Tenant is the tenant for which the minion was announced, or "".
	Tenant string
	// Grains are the grains that the minion sent, with "id" set to the verified id.
	Grains map[string]any
	// Saltenv and Pillarenv select environments; empty means not selected.
	Saltenv, Pillarenv string
	// Override is the pillar of a command (pillar={...}), which is merged over the result. Maps in it may be
	// payload.OrderedMap.
	Override map[string]any
	// OverrideOrder is Override in its original key order; nil if unknown.
	OverrideOrder payload.OrderedMap
	// Extra is extra_minion_data.
	Extra map[string]any
}

// Func returns a pillar, which then belongs to the caller. An error is logged by the master. The minion
// receives a pillar with only _errors, with which it refuses to apply states.
type Func func(ctx context.Context, r Request) (map[string]any, error)

// Chain returns a Func that merges the pillars of several, later ones over earlier ones, recursively.
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

// Static returns a Func with the same pillar for every minion.
func Static(data map[string]any) Func {
	return func(context.Context, Request) (map[string]any, error) { return maps.Clone(data), nil }
}

// Merge merges over over base: maps recursively, everything else is replaced. That is Salt's
// pillar_source_merging_strategy "recurse" (which "smart" means for YAML) without pillar_merge_lists. It does
// not modify its arguments.
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
