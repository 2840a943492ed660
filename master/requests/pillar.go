package requests

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
)

// Tenants maps minions to tenants.
type Tenants interface {
	// TenantOf returns a minion's tenant, or "", from the store.
	TenantOf(ctx context.Context, id string) (string, error)
	// KnownTenant is TenantOf from a cache that is a few seconds old at most.
	KnownTenant(ctx context.Context, id string) (string, error)
}

// PillarProgram provides the embedding program's pillar.
type PillarProgram interface {
	// MakePillar returns the pillar to merge over that from files.
	MakePillar(ctx context.Context, r pillar.Request) (map[string]any, error)
}

// CloneWatch detects ids used by several hosts.
type CloneWatch interface {
	// AsksPillar reports that a minion requested its pillar with these grains.
	AsksPillar(id string, grains map[string]any)
}

// Pillar answers pillar requests. Fields that may be nil say so.
type Pillar struct {
	// Key signs pillars.
	Key *crypt.PrivateKey
	// Roots are the pillar files, Program is the embedding program's pillar; either may be nil.
	Roots   *pillar.Roots
	Program PillarProgram
	// Kept caches compiled pillars; nil compiles a pillar for each request.
	Kept *pillar.Cache
	// Orders provides the pillar of orders; nil if the store cannot keep it.
	Orders  *content.Carrier
	Tenants Tenants
	Clones  CloneWatch
	// Cache stores grains and pillar for targeting.
	Cache  *cache.Cache
	Events *events.Bus
	Log    *slog.Logger
	// Forget does not cache grains and pillar (minion_data_cache: False), ForgetPillar only not the pillar.
	Forget, ForgetPillar bool
}

// Reply answers _pillar. It is the only reply that is a map, with its own key and the master's signature.
// On-demand external pillars ("ext") are not supported, so nothing that a minion names is fetched
// (CVE-2025-22237).
func (p *Pillar) Reply(ctx context.Context, v protocol.Verified, e protocol.Envelope,
	minion *crypt.PublicKey) any {
	if (e.EncAlgo != "" && !crypt.ValidEncryption(e.EncAlgo)) ||
		(e.SigAlgo != "" && !crypt.ValidSigning(e.SigAlgo)) {
		return "Some exception handling minion payload"
	}
	reply, err := protocol.SealPillar(v, e, p.fetchPillar(ctx, v), minion, p.Key)
	if err != nil {
		p.Log.Error("Cannot send pillar", "minion", v.ID(), "err", err)
		return map[string]any{"error": "bad load"}
	}
	return reply
}

// fetchPillar returns a minion's pillar and caches it with the grains it was compiled for. A request without
// grains gets an empty pillar, as in Salt.
func (p *Pillar) fetchPillar(ctx context.Context, v protocol.Verified) payload.OrderedMap {
	load := v.Load()
	grains, ok := payload.Map(payload.Plain(load["grains"]))
	if !ok {
		return payload.OrderedMap{}
	}
	grains["id"] = v.ID()
	p.Clones.AsksPillar(v.ID(), grains)
	r := pillar.Request{ID: v.ID(), Grains: grains, Saltenv: fields.Text(load, "saltenv"),
		Pillarenv: fields.Text(load, "pillarenv")}
	if order, ok := payload.Ordered(load["grains"]); ok {
		r.GrainsOrder = order.Set("id", v.ID())
	}
	override := load["pillar_override"]
	r.Override, _ = payload.Map(payload.Plain(override))
	r.OverrideOrder, _ = override.(payload.OrderedMap)
	r.Extra, _ = payload.Map(load["extra_minion_data"])
	data, err := p.keptPillar(ctx, r, pytext.Truth(load["clean_cache"]))
	if err != nil {
		p.Log.Error("Cannot make pillar", "minion", v.ID(), "err", err)
		data = payload.OrderedMap{{Key: "_errors", Value: []any{pillarFailed}}}
	}
	// Only the minion's own pillar is cached. Additions by a request or an order must not make the minion match
	// a target.
	// guard: pillar-override master:TestPillarOverrideIsNoMembership instead: p.rememberMinion(v.ID(), r.GrainsOrder, pillar.MergeOrdered(data, r.Override))
	p.rememberMinion(v.ID(), r.GrainsOrder, data)
	data = p.withOrders(ctx, v.ID(), data)
	if len(r.Override) > 0 {
		data = pillar.MergeOrdered(data, override)
	}
	return data
}

// pillarFailed is the text for the minion, as in Salt. The log has the reason.
const pillarFailed = "Pillar could not be made. Please see master log for details."

// keptPillar returns the minion's cached pillar, or a new one. The pillar of a command is not cached, as in
// Salt. clean empties the cache first.
func (p *Pillar) keptPillar(ctx context.Context, r pillar.Request,
	clean bool) (payload.OrderedMap, error) {
	if p.Kept == nil {
		return p.compilePillar(ctx, r)
	}
	if clean {
		p.Drop(r.ID)
	}
	r.Override, r.OverrideOrder = nil, nil
	return p.Kept.Fetch(r.ID, r.Pillarenv, func() (payload.OrderedMap,
		error) {
		return p.compilePillar(ctx, r)
	})
}

// Drop removes a minion's cached pillars.
func (p *Pillar) Drop(id string) {
	if p.Kept == nil {
		return
	}
	if err := p.Kept.Clear(id); err != nil {
		p.Log.Warn("Cannot remove a cached pillar", "minion", id, "err", err)
	}
}

// compilePillar compiles a pillar from files and the embedding program.
func (p *Pillar) compilePillar(ctx context.Context,
	r pillar.Request) (data payload.OrderedMap, err error) {
	defer func() {
		if x := recover(); x != nil {
			p.Log.Error("Pillar function ended in a panic", "minion", r.ID, "err", x, "stack",
				string(debug.Stack()))
			err = fmt.Errorf("panic: %v", x)
		}
	}()
	if r.Tenant, err = p.Tenants.TenantOf(ctx, r.ID); err != nil {
		return nil, err
	}
	data = payload.OrderedMap{}
	if p.Roots != nil {
		if data, err = p.Roots.Ordered(ctx, r); err != nil {
			return nil, err
		}
	}
	if p.Program == nil {
		return data, nil
	}
	more, err := p.Program.MakePillar(ctx, r)
	if err != nil {
		return nil, err
	}
	return pillar.MergeOrdered(data, more), nil
}

// Make returns a pillar as a minion would get it, without the cache and the pillar of orders.
func (p *Pillar) Make(ctx context.Context, r pillar.Request) (map[string]any, error) {
	data, err := p.compilePillar(ctx, r)
	if err != nil {
		return nil, err
	}
	return plainPillar(data), nil
}

// plainPillar returns a pillar without its order. Top-level keys that are not strings are left out.
func plainPillar(data payload.OrderedMap) map[string]any {
	out := data.Map()
	for k, v := range out {
		out[k] = payload.Plain(v)
	}
	return out
}

// rememberMinion caches grains and pillar for targeting.
func (p *Pillar) rememberMinion(id string, grains, data payload.OrderedMap) {
	if p.Forget {
		return
	}
	d := cache.Ordered{Grains: grains}
	if !p.ForgetPillar {
		d.Pillar = data
	}
	if err := p.Cache.Store(id, d); err != nil {
		p.Log.Warn("Cannot remember grains and pillar", "minion", id, "err", err)
		return
	}
	p.Events.Publish("minion/refresh/"+id, map[string]any{"Minion data cache refresh": id})
}

// withOrders merges the pillars of the orders that run on a minion over its own.
func (p *Pillar) withOrders(ctx context.Context, id string,
	data payload.OrderedMap) payload.OrderedMap {
	if p.Orders == nil {
		return data
	}
	all, err := p.Orders.Pillars(ctx, id)
	if err != nil {
		p.Log.Error("Cannot read pillar of an order", "minion", id, "err", err)
		return pillar.MergeOrdered(data, map[string]any{"_errors": []any{pillarFailed}})
	}
	for _, more := range all {
		data = pillar.MergeOrdered(data, more)
	}
	return data
}
