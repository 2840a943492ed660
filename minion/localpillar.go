package minion

import (
	"context"
	"sync"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/pillar"
)

// localOnly makes a link that has no master: pillar from pillar_roots when it is asked for, files from file_roots.
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

// localPillar compiles the pillar of pillar_roots and stores it.
func (l *link) localPillar(ctx context.Context) error {
	d, err := l.compilePillar(ctx, "", "", nil)
	l.pillar.put(d, err)
	return err
}

// compilePillar compiles the pillar of pillar_roots. Errors of single files are in it under _errors, as Salt has them.
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
	if ctx.Value(compiling{}) == nil { // a template of the pillar itself cannot wait for the pillar
		l.pillarData(ctx)
	}
	return underOrder(l.pillar.inOrder(), fresh), nil
}

// compiling marks the context of what templates of a pillar call.
type compiling struct{}

// underOrder is fresh with the keys that have has as well first, in the order of have. A stock minion merges the pillar
// of a call over the one in memory (option ssh_merge_pillar).
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
		_ = out.Set(k, v) // it is a key already
	}
	for k, v := range fresh.All() {
		if !out.Has(k) {
			_ = out.Set(k, v)
		}
	}
	return out
}
