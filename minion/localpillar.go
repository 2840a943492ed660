package minion

import (
	"context"
	"sync"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/pillar"
)

// localOnly prepares a link without a master: the pillar is compiled from pillar_roots at first use, and files
// come from file_roots.
func (l *link) localOnly(ctx context.Context) {
	l.pillar.init()
	l.files = sync.OnceValue(func() modules.Files {
		if l.m.o.Files == nil {
			return nil
		}
		return l.m.o.Files(l.m.settings().options, nil)
	})
	l.lazy = sync.OnceFunc(func() {
		if err := l.localPillar(ctx); err != nil {
			l.log.Error("Cannot read local pillar", "err", err)
		}
	})
}

// localPillar compiles the pillar from pillar_roots and stores it.
func (l *link) localPillar(ctx context.Context) error {
	d, err := l.compilePillar(ctx, "", "", nil)
	l.pillar.put(d, err)
	return err
}

// compilePillar compiles the pillar from pillar_roots. Errors of single files are stored under its key _errors,
// as in Salt.
func (l *link) compilePillar(ctx context.Context, saltenv, pillarenv string,
	override *pyobj.Dict) (*pyobj.Dict, error) {
	set := l.m.settings()
	env := l.m.jobEnvironment(ctx, l, nil)
	c := pillar.New(pillar.Options{Opts: set.options, Registry: l.m.o.Registry, Env: *env,
		Version: l.m.o.Version, Log: l.log})
	r := pillar.Request{Override: override, ID: set.id, Grains: l.m.grains.get(ctx),
		GrainsOrder: l.m.grains.inOrder(), Saltenv: saltenv, Pillarenv: pillarenv}
	fresh, err := c.Compile(context.WithValue(ctx, compiling{}, true), r)
	if err != nil || override == nil {
		return fresh, err
	}
	if ctx.Value(compiling{}) == nil { // a template of the pillar cannot wait for the pillar
		l.pillarData(ctx)
	}
	return underOrder(l.pillar.inOrder(), fresh), nil
}

// compiling marks the context of calls that pillar templates make.
type compiling struct{}

// underOrder returns fresh with the keys that have also contains first, in have's order. This is the order that
// a stock minion produces, which merges a call's pillar over the cached one (option ssh_merge_pillar).
func underOrder(have, fresh *pyobj.Dict) *pyobj.Dict {
	if have == nil {
		return fresh
	}
	out := &pyobj.Dict{Ordered: fresh.Ordered}
	for k, old := range have.All() {
		v, ok := fresh.Get(k)
		if !ok {
			continue
		}
		before, a := old.(*pyobj.Dict)
		after, b := v.(*pyobj.Dict)
		if a && b {
			v = underOrder(before, after)
		}
		_ = out.Set(k, v) // cannot fail: k is a key of have
	}
	for k, v := range fresh.All() {
		if !out.Has(k) {
			_ = out.Set(k, v)
		}
	}
	return out
}
