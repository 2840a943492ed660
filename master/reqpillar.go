package master

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// pillarReply answers _pillar: the only reply that is a map, with a key of its own and the master's signature. On-demand
// external pillar ("ext") is not there, so what a minion names is never fetched (CVE-2025-22237).
func (m *Master) pillarReply(ctx context.Context, v protocol.Verified, e protocol.Envelope, pub *crypt.PublicKey) any {
	if (e.EncAlgo != "" && !crypt.ValidEncryption(e.EncAlgo)) || (e.SigAlgo != "" && !crypt.ValidSigning(e.SigAlgo)) {
		return "Some exception handling minion payload"
	}
	data := m.makePillar(ctx, v)
	reply, err := protocol.SealPillar(v, e, data, pub, m.identity.Key)
	if err != nil {
		m.log.Error("cannot send pillar", "minion", v.ID(), "err", err)
		return map[string]any{"error": "bad load"}
	}
	return reply
}

// makePillar makes the pillar and remembers it with the grains it was made for. A request without grains gets none, as in
// Salt.
func (m *Master) makePillar(ctx context.Context, v protocol.Verified) payload.OrderedMap {
	load := v.Load()
	grains, ok := payload.Map(payload.Plain(load["grains"]))
	if !ok {
		return payload.OrderedMap{}
	}
	grains["id"] = v.ID()
	m.clones.AsksPillar(v.ID(), grains)
	r := pillar.Request{ID: v.ID(), Grains: grains, Saltenv: fields.Text(load, "saltenv"), Pillarenv: fields.Text(load, "pillarenv")}
	r.GrainsOrder, _ = load["grains"].(payload.OrderedMap)
	override := load["pillar_override"]
	r.Override, _ = payload.Map(payload.Plain(override))
	r.OverrideOrder, _ = override.(payload.OrderedMap)
	r.Extra, _ = payload.Map(load["extra_minion_data"])
	data, err := m.keptPillar(ctx, r, pytext.Truth(load["clean_cache"]))
	if err != nil {
		m.log.Error("cannot make pillar", "minion", v.ID(), "err", err)
		data = payload.OrderedMap{{Key: "_errors", Value: []any{pillarFailed}}}
	}
	// What is remembered is the minion's own pillar. What a request or an order adds makes the minion a member of no target.
	// guard: pillar-override TestPillarOverrideIsNoMembership instead: m.remember(v.ID(), grains, pillar.MergeOrdered(data, r.Override))
	m.remember(v.ID(), grains, data)
	data = m.withOrderPillar(ctx, v.ID(), data)
	if len(r.Override) > 0 {
		data = pillar.MergeOrdered(data, override)
	}
	return data
}

// pillarFailed is what a minion is told, as in Salt; why is for the log.
const pillarFailed = "Pillar could not be made. Please see master log for details."

// keptPillar is the pillar that is kept for the minion if one is; what came with a command is no part of that, as in Salt. clean
// forgets what is kept first.
func (m *Master) keptPillar(ctx context.Context, r pillar.Request, clean bool) (payload.OrderedMap, error) {
	if m.pillars == nil {
		return m.callPillar(ctx, r)
	}
	if clean {
		if err := m.pillars.Clear(r.ID); err != nil {
			m.log.Warn("cannot forget a kept pillar", "minion", r.ID, "err", err)
		}
	}
	r.Override, r.OverrideOrder = nil, nil
	return m.pillars.Fetch(r.ID, r.Pillarenv, func() (payload.OrderedMap, error) { return m.callPillar(ctx, r) })
}

// callPillar makes a pillar of files, then of the embedding program's function.
func (m *Master) callPillar(ctx context.Context, r pillar.Request) (data payload.OrderedMap, err error) {
	defer func() {
		if p := recover(); p != nil {
			m.log.Error("pillar function ended in a panic", "minion", r.ID, "err", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if r.Tenant, _, err = m.tenantOf(ctx, r.ID); err != nil {
		return nil, err
	}
	data = payload.OrderedMap{}
	if m.roots != nil {
		if data, err = m.roots.Ordered(ctx, r); err != nil {
			return nil, err
		}
	}
	if m.opts.Pillar == nil {
		return data, nil
	}
	more, err := m.opts.Pillar(ctx, r)
	if err != nil {
		return nil, err
	}
	return pillar.MergeOrdered(data, more), nil
}

// plainPillar is a pillar without its order. Keys of the first level that are no text are left out.
func plainPillar(data payload.OrderedMap) map[string]any {
	out := data.Map()
	for k, v := range out {
		out[k] = payload.Plain(v)
	}
	return out
}

// remember keeps grains and pillar for targeting.
func (m *Master) remember(id string, grains map[string]any, data payload.OrderedMap) {
	if m.opts.NoMinionDataCache {
		return
	}
	d := cache.Data{Grains: grains}
	if !m.opts.NoPillarCache {
		d.Pillar = plainPillar(data)
	}
	if err := m.cache.Store(id, d); err != nil {
		m.log.Warn("cannot remember grains and pillar", "minion", id, "err", err)
		return
	}
	m.events.Publish("minion/refresh/"+id, map[string]any{"Minion data cache refresh": id})
}

// reqMasterOpts answers _master_opts: what a minion needs to compile states as this master's minions do.
func (m *Master) reqMasterOpts(_ context.Context, v protocol.Verified) (any, error) {
	roots := map[string]any{}
	for _, env := range m.files.Envs() {
		roots[env] = []any{}
	}
	out := map[string]any{"file_roots": roots, "top_file_merging_strategy": "merge", "env_order": []any{}, "default_top": "base"}
	if !pytext.Truth(v.Load()["env_only"]) {
		for _, o := range masterOpts() {
			out[o.name] = o.value
		}
		groups := make(map[string]any, len(m.opts.Nodegroups))
		for k, g := range m.opts.Nodegroups {
			groups[k] = g
		}
		out["nodegroups"] = groups
	}
	for k := range out {
		if set, ok := m.opts.MasterOpts[k]; ok && k != "file_roots" {
			out[k] = set
		}
	}
	return out, nil
}

type masterOpt struct {
	name  string
	value any
}

// masterOpts are Salt's defaults (salt/config/__init__.py, DEFAULT_MASTER_OPTS).
func masterOpts() []masterOpt {
	return []masterOpt{
		{"renderer", "jinja|yaml"}, {"failhard", false}, {"state_top", "top.sls"}, {"state_top_saltenv", nil},
		{"state_auto_order", true}, {"state_events", false}, {"state_aggregate", false}, {"jinja_env", map[string]any{}},
		{"jinja_sls_env", map[string]any{}}, {"jinja_lstrip_blocks", false}, {"jinja_trim_blocks", false},
	}
}

// reqMasterTops answers _master_tops. The minion's options are its own claim; only its id is verified.
func (m *Master) reqMasterTops(ctx context.Context, v protocol.Verified) (any, error) {
	if m.opts.MasterTops == nil {
		return map[string]any{}, nil
	}
	opts, _ := payload.Map(v.Load()["opts"])
	out, err := m.opts.MasterTops(ctx, v.ID(), opts)
	if err != nil {
		return nil, errors.Join(errors.New("cannot make master tops"), err)
	}
	if out == nil {
		out = map[string]any{}
	}
	return out, nil
}
