package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/brine-salt/brine/cmd/internal/localmaster"
	"github.com/brine-salt/brine/cmd/internal/saltcli"
	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/events/ipc"
)

// masterHere is the master on this host: the one of which the configuration lies beside the minion's.
type masterHere struct{ p *saltcli.Program }

var _ modules.MasterHost = masterHere{}

// functionLimit is how long a wheel function may take. Runners take as long as their job may.
const functionLimit = 5 * time.Minute

// load reads the master's configuration anew, which may change at any time.
func (h masterHere) load() (*conf.Config, error) {
	c, err := conf.LoadMasterWith(filepath.Join(filepath.Dir(h.p.Conf.String("conf_file")), "master"), conf.Options{TolerateIncludes: true, Getenv: h.p.Env})
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration of the master on this host: %w", err)
	}
	return c, nil
}

// Fire implements modules.MasterHost.
func (h masterHere) Fire(ctx context.Context, tag string, data map[string]any) error {
	c, err := h.load()
	if err != nil {
		return err
	}
	return ipc.Fire(ctx, localmaster.EventSockets(c, ""), tag, data)
}

// Call implements modules.MasterHost.
func (h masterHere) Call(ctx context.Context, q modules.MasterCall) (map[string]any, error) {
	c, err := h.load()
	if err != nil {
		return nil, modules.Errorf("%v", err)
	}
	w := localmaster.Way{Dialer: dialers()[c.String("transport")], Timeout: functionLimit}
	if w.Dialer == nil {
		return nil, modules.Errorf("cannot reach the master on this host: there is no transport %s", c.String("transport"))
	}
	if w.Options.Wrap, err = tlsWrap(c.Opts); err != nil {
		return nil, modules.Errorf("cannot reach the master on this host: %v", err)
	}
	cl, err := localmaster.Connect(c, w, h.p.Env, h.p.Log)
	if err != nil {
		return nil, modules.Errorf("%v", err)
	}
	defer cl.Close()
	data, err := cl.Call(ctx, client.FunctionCall{Kind: q.Kind, Fun: q.Fun, Args: q.Args, Kwargs: q.Kwargs, Saltenv: q.Saltenv})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, client.ErrNotRunning):
		h.p.Log.Debug("there is no master on this host", "err", err)
		return nil, modules.ErrNoMasterHere
	case errors.Is(err, client.ErrNoFunction):
		return nil, &modules.NotAvailableError{Fun: q.Fun}
	case err != nil:
		return nil, modules.Errorf("%v", err)
	}
	return data, nil
}
