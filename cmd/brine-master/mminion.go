package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"

	"github.com/brine-salt/brine/master/runner/host"

	"github.com/brine-salt/brine/cmd/internal/localmaster"
	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/internal/version"
	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/master/runner"
	"github.com/brine-salt/brine/minion/grains"
	"github.com/brine-salt/brine/modules"
	_ "github.com/brine-salt/brine/modules/all" // for salt.cmd, reactions, orchestration and pillars
	"github.com/brine-salt/brine/modules/pyobj"
	_ "github.com/brine-salt/brine/modules/saltutil" // for orchestration
	_ "github.com/brine-salt/brine/modules/state"
	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/states"
	_ "github.com/brine-salt/brine/states/all" // for orchestration
	"github.com/brine-salt/brine/states/render"
	_ "github.com/brine-salt/brine/states/saltmod"
)

// masterMinion runs execution functions on the master's host, as stock's MasterMinion does for runners. It has the
// master's options, the grains of this host, no pillar, and the files of file_roots.
type masterMinion struct {
	conf *conf.Config
	log  *slog.Logger
	host *host.Host
	// pillars compiles the pillars of orchestrations.
	pillars *pillar.Roots

	registry func() *modules.Registry
	grains   func() map[string]any
}

// newMasterMinion adds the functions for orchestration to a host. The first call of one of them sets them up.
func newMasterMinion(h *host.Host, c *conf.Config, pillars *pillar.Roots,
	log *slog.Logger) *masterMinion {
	m := &masterMinion{conf: c, log: log, host: h, pillars: pillars}
	m.grains = sync.OnceValue(func() map[string]any {
		return grains.Gather(context.Background(),
			grains.Options{Opts: m.options(nil), Log: log, SaltVersion: version.Salt,
				Version: version.Brine()})
	})
	m.registry = modules.Default
	h.Exec = m.exec
	if h.Listen != nil { // the master runs in this process
		return m
	}
	h.Listen = func(ctx context.Context, node, sockDir string) (modules.EventStream, error) {
		if node != "master" {
			return nil, modules.Errorf("cannot follow the bus of node %q: only the master's is here", node)
		}
		bus, err := ipc.Dial(ctx, localmaster.EventSockets(c, sockDir))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", client.ErrNotRunning, err)
		}
		return stream{bus}, nil
	}
	return m
}

func (m *masterMinion) options(grains map[string]any) map[string]any {
	opts := shownOptions(m.conf)
	maps.Copy(opts, map[string]any{"file_client": "local", "__role": "master", "grains": grains,
		"pillar": map[string]any{}})
	for k, v := range map[string]any{"test": false, "features": map[string]any{}, "saltenv": nil,
		"pillarenv": nil} {
		if _, ok := opts[k]; !ok {
			opts[k] = v
		}
	}
	return opts
}

// exec runs a function. If the function fails it returns the function's error.
func (m *masterMinion) exec(ctx context.Context, q modules.Request) (any, error) {
	res := m.registry().Run(ctx, m.env(), q)
	return res.Return, res.Err
}

// renderTemplate renders a file of the master itself.
func (m *masterMinion) renderTemplate(ctx context.Context, t modules.Template) (any, error) {
	return m.registry().NewCall(m.env(), "template", "", nil).Template(ctx, t)
}

// env returns the environment for one call.
func (m *masterMinion) env() *modules.Env {
	data := m.grains()
	opts := m.options(data)
	agent := &masterAgent{host: m.host}
	env := &modules.Env{ID: m.host.ID, Log: m.log, Runner: &runcmd.Runner{},
		Files: localFiles(m.conf, m.log), Templates: render.Render,
		Opts: func() map[string]any { return opts }, Grains: func() map[string]any { return data },
		Pillar:        func() map[string]any { return pyobj.PlainMap(agent.pillar()) },
		OrderedPillar: agent.pillar, Others: stateFunctions,
		Listen: m.host.Listen, Agent: agent,
		MasterHost: runner.Here(m.host, runner.NewClient(m.host), runner.NewWheel(m.host))}
	env.FreshPillar = func(ctx context.Context, saltenv, pillarenv string,
		override *pyobj.Dict) (*pyobj.Dict, error) {
		return m.pillars.Compile(ctx,
			pillar.Request{ID: m.host.ID, Grains: data, Saltenv: saltenv, Pillarenv: pillarenv,
				Override: overrideOf(override)})
	}
	agent.compile = func(ctx context.Context) (*pyobj.Dict,
		error) {
		return env.FreshPillar(ctx, "", "", nil)
	}
	return env
}

// overrideOf returns the pillar from the command line in the form of a pillar request, or nil if it has no pillar.
func overrideOf(d *pyobj.Dict) map[string]any {
	if d == nil {
		return nil
	}
	m, _ := payload.Map(ordered.ToWire(d))
	return m
}

func stateFunctions(kind string) []*modules.Module {
	if kind == "states" {
		return states.Default().Declared()
	}
	return nil
}

// stream provides a master's event bus to functions.
type stream struct{ client *ipc.Client }

func (s stream) Next(ctx context.Context) (string, map[string]any, error) {
	e, err := s.client.Next(ctx)
	return e.Tag, e.Data, err
}

func (s stream) Close() error { return s.client.Close() }

// masterAgent replaces the running minion for functions on the master. It has no jobs, the master's event bus, and an
// empty pillar until states request one.
type masterAgent struct {
	host    *host.Host
	compile func(ctx context.Context) (*pyobj.Dict, error)

	mu   sync.Mutex
	data *pyobj.Dict // guarded by mu; replaced, never changed
}

var _ modules.Agent = (*masterAgent)(nil)

func (a *masterAgent) pillar() *pyobj.Dict {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.data == nil {
		return pyobj.NewDict()
	}
	return a.data
}

// RefreshPillar implements modules.Agent.
func (a *masterAgent) RefreshPillar(ctx context.Context, _ bool) error {
	d, err := a.compile(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.data = d
	return nil
}

var errNoMinion = errors.New("this is a master, not a minion")

func (*masterAgent) Running() []map[string]any           { return nil }
func (*masterAgent) Job(string) map[string]any           { return nil }
func (*masterAgent) Cached(string) map[string]any        { return nil }
func (*masterAgent) Signal(string, int) string           { return "" }
func (*masterAgent) RefreshGrains(context.Context) error { return nil }
func (*masterAgent) Reload(context.Context) error        { return nil }
func (*masterAgent) Masters() map[string]bool            { return nil }
func (*masterAgent) Restart() error                      { return errNoMinion }

// FireLocal implements modules.Agent.
func (a *masterAgent) FireLocal(tag string, data any) bool {
	m, ok := payload.Map(ordered.ToWire(data))
	if !ok || a.host.Fire == nil {
		return false
	}
	if err := a.host.Fire(context.Background(), tag, m); err != nil {
		a.host.Log.Debug("Cannot fire event", "tag", tag, "err", err)
		return false
	}
	return true
}
