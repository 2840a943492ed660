package minion

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/backoff"
	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// grains caches the minion's grains. They are gathered in the background; get waits for the first result.
type grains struct {
	gather func(ctx context.Context) map[string]any
	spawn  func(func())

	mu   sync.Mutex
	data map[string]any // guarded by mu; replaced, never modified
	// order is the order of the keys inside data's values, by grain; guarded by mu; replaced, never modified.
	order *pyobj.Dict
	// pending is closed when the current gathering ends; guarded by mu; nil if none is in progress.
	pending chan struct{}
}

// refresh starts gathering the grains again and does not wait. Gatherings run one after another: a refresh
// during one queues the next.
func (g *grains) refresh(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	prev, done := g.pending, make(chan struct{})
	g.pending = done
	g.spawn(func() {
		if prev != nil {
			<-prev
		}
		data, order := splitOrder(g.gather(ctx))
		g.mu.Lock()
		defer g.mu.Unlock()
		if ctx.Err() == nil || g.data == nil {
			g.data, g.order = data, order
		}
		if g.pending == done {
			g.pending = nil
		}
		close(done)
	})
}

// get returns the grains. If there are none yet it waits for them, and starts gathering if nobody has. If ctx
// ends first, the result is empty.
func (g *grains) get(ctx context.Context) map[string]any {
	g.mu.Lock()
	data, pending := g.data, g.pending
	g.mu.Unlock()
	if data != nil {
		return data
	}
	if pending == nil {
		g.refresh(ctx)
		return g.get(ctx)
	}
	select {
	case <-pending:
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.data == nil {
		return map[string]any{}
	}
	return g.data
}

// inOrder returns the order of the keys inside the values that get returns, by grain.
func (g *grains) inOrder() *pyobj.Dict {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.order
}

// inWire returns the grains in the form in which they are sent to the master.
func (g *grains) inWire(ctx context.Context) any {
	data, order := g.get(ctx), g.inOrder()
	if order == nil || order.Len() == 0 {
		return data
	}
	return ordered.ToWire(pyobj.FromMapIn(data, order))
}

// splitOrder separates values from the order of their keys. It returns data with plain maps, and the order by
// key of data.
func splitOrder(data map[string]any) (map[string]any, *pyobj.Dict) {
	plain, order := make(map[string]any, len(data)), &pyobj.Dict{}
	for k, v := range data {
		v = pyobj.From(v)
		if inside := pyobj.Order(v); inside != nil {
			_ = order.Set(k, inside) // cannot fail: k is a string
		}
		plain[k] = pyobj.Plain(v)
	}
	return plain, order
}

// wait waits for the current gathering, if there is one.
func (g *grains) wait(ctx context.Context) error {
	g.mu.Lock()
	pending := g.pending
	g.mu.Unlock()
	if pending == nil {
		return nil
	}
	select {
	case <-pending:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cannot refresh grains: %w", ctx.Err())
	}
}

func (g *grains) ready() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.data != nil
}

func (m *Minion) gatherGrains(ctx context.Context) map[string]any {
	defer m.logStage("The grains were gathered", time.Now())
	s := m.settings()
	if m.o.Grains != nil {
		if g := m.o.Grains(ctx, s.options); g != nil {
			return s.grainsInOrder(g)
		}
	}
	g := map[string]any{"id": s.id}
	maps.Copy(g, s.dict("grains"))
	return s.grainsInOrder(g)
}

// optsOrder returns the order of the keys in the values of options, by option; nil if unknown.
func (o *Options) optsOrder() *pyobj.Dict {
	if o.OptsOrder == nil {
		return nil
	}
	d, _ := pyobj.From(o.OptsOrder()).(*pyobj.Dict)
	return d
}

// grainsInOrder gives grains that come from the configuration the key order of its files.
func (s *settings) grainsInOrder(g map[string]any) map[string]any {
	if s.order == nil {
		return g
	}
	order, _ := s.order.Value("grains").(*pyobj.Dict)
	if order == nil {
		return g
	}
	g = maps.Clone(g)
	for name := range s.dict("grains") {
		if inside := order.Value(name); inside != nil {
			g[name] = ordered.ToWire(pyobj.InOrder(payload.Plain(g[name]), inside))
		}
	}
	return g
}

// refreshGrains gathers the grains again and waits for the result.
func (m *Minion) refreshGrains(ctx context.Context) error {
	parent := m.ctx
	if parent == nil {
		parent = ctx
	}
	m.grains.refresh(parent)
	if err := m.grains.wait(ctx); err != nil {
		return err
	}
	m.o.Registry.Reset()
	return nil
}

// pillarCache caches the pillar of one master.
type pillarCache struct {
	mu   sync.Mutex
	data map[string]any // guarded by mu; replaced, never modified
	// ordered is data in the order of its source; guarded by mu; replaced, never modified.
	ordered *pyobj.Dict
	tried   chan struct{} // closed after the first attempt
	ended   bool          // guarded by mu; tried is closed
	broken  bool          // guarded by mu; the last attempt failed
	busy    sync.Mutex    // held during a fetch
}

func (p *pillarCache) init() { p.tried = make(chan struct{}) }

func (p *pillarCache) ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

func (p *pillarCache) failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}

// put stores the outcome of an attempt. A failed attempt keeps the previous pillar.
func (p *pillarCache) put(data *pyobj.Dict, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = err != nil
	if err == nil {
		p.data, p.ordered = pyobj.PlainMap(data), data
	}
	if !p.ended {
		p.ended = true
		close(p.tried)
	}
}

// get returns the pillar. It waits for the first attempt to fetch it; the result is empty if that failed or ctx
// ends.
func (p *pillarCache) get(ctx context.Context) map[string]any {
	select {
	case <-p.tried:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.data == nil {
		return map[string]any{}
	}
	return p.data
}

// inOrder returns the pillar in the order of its source, or nil.
func (p *pillarCache) inOrder() *pyobj.Dict {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ordered
}

// loadPillar fetches the first pillar and retries until it succeeds. Jobs do not wait for the retries: after
// the first failed attempt they run without pillar.
func (l *link) loadPillar(ctx context.Context) {
	retry := backoff.Backoff{Base: 5 * time.Second, Max: 5 * time.Minute}
	for {
		err := l.refreshPillar(ctx, false)
		if err == nil || ctx.Err() != nil {
			return
		}
		l.log.Error("Pillar data could not be fetched. One or more masters may be down!", "err",
			err)
		if !backoff.Sleep(ctx, retry.Next()) {
			return
		}
	}
}

// refreshPillar fetches the pillar and stores it. With clean the master compiles it again instead of using its
// cache.
func (l *link) refreshPillar(ctx context.Context, clean bool) error {
	l.pillar.busy.Lock()
	defer l.pillar.busy.Unlock()
	defer l.m.logStage("The pillar was compiled", time.Now())
	set := l.m.settings()
	data, err := l.fetchPillar(ctx, set.options["saltenv"], pillarEnv(set), nil, clean)
	if err == nil {
		if errs, bad := data.Get("_errors"); bad {
			l.log.Error("Pillar render error: " + pyobj.Str(errs))
		}
	}
	l.pillar.put(data, err)
	l.m.pillarChanged()
	return err
}

func pillarEnv(set *settings) any {
	if v := set.options["pillarenv"]; v != nil {
		return v
	}
	if set.truth("pillarenv_from_saltenv") {
		return set.options["saltenv"]
	}
	return nil
}

// freshPillar fetches a pillar without storing it. An empty environment means the configured one.
func (l *link) freshPillar(ctx context.Context, saltenv, pillarenv string,
	override *pyobj.Dict) (*pyobj.Dict, error) {
	set := l.m.settings()
	env, penv := any(saltenv), any(pillarenv)
	if saltenv == "" {
		env = set.options["saltenv"]
	}
	if pillarenv == "" {
		penv = pillarEnv(set)
	}
	return l.fetchPillar(ctx, env, penv, override, false)
}

// fetchPillar requests the compiled pillar from the master (salt/pillar/__init__.py:
// AsyncRemotePillar.compile_pillar). The reply must carry the master's signature and this request's nonce, or
// it is refused (CVE-2022-22934).
func (l *link) fetchPillar(ctx context.Context, saltenv, pillarenv any, override *pyobj.Dict,
	clean bool) (*pyobj.Dict, error) {
	if override == nil {
		override = &pyobj.Dict{}
	}
	set := l.m.settings()
	load := map[string]any{"cmd": "_pillar", "id": set.id, "grains": l.m.grains.inWire(ctx),
		"saltenv": saltenv, "pillarenv": pillarenv,
		"pillar_override": ordered.ToWire(override), "extra_minion_data": map[string]any{},
		"ver": "2"}
	if clean {
		load["clean_cache"] = true
	}
	c := l.plainCall()
	c.unsealed = func(v any, s *session, nonce string) (any, error) {
		m, err := protocol.OpenPillarOrdered(v, l.m.key, s.key, set.encAlgo, set.sigAlgo, nonce)
		if err != nil {
			return nil, err
		}
		return m, nil
	}
	start := time.Now()
	v, err := l.requestReply(ctx, load, c)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		waited := int(time.Since(start).Seconds())
		// The text is stock's.
		return nil, fmt.Errorf("Pillar timed out after %d seconds", waited) //nolint:staticcheck
	}
	if err != nil {
		return nil, fmt.Errorf("cannot fetch pillar: %w", err)
	}
	d, ok := pyobj.From(v).(*pyobj.Dict)
	if !ok {
		return nil, errors.New("cannot fetch pillar: the answer is not a map")
	}
	return d, nil
}

// orderedPillar returns pillarData in the order of its source.
func (l *link) orderedPillar(ctx context.Context) *pyobj.Dict {
	l.pillarData(ctx)
	return l.pillar.inOrder()
}

// pillarData returns the pillar for functions and targets. Without a master it is compiled at the first call.
func (l *link) pillarData(ctx context.Context) map[string]any {
	if l.lazy != nil {
		l.lazy()
	}
	return l.pillar.get(ctx)
}

// matchTarget reports whether the target includes this minion.
func (l *link) matchTarget(ctx context.Context, tgtType string, tgt any, delimiter string) (bool,
	error) {
	set := l.m.settings()
	return target.Match(tgtType, tgt, delimiter, target.Subject{ID: set.id,
		Grains:     func() map[string]any { return l.m.grains.get(ctx) },
		Pillar:     func() map[string]any { return l.pillarData(ctx) },
		Data:       l.m.dataStore,
		Nodegroups: set.dict("nodegroups"),
	})
}
