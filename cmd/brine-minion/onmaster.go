package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/brine-salt/brine/cmd/internal/localmaster"
	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/minion/standard"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events/ipc"
)

// masterHere is the master on this host, whose configuration is in the same directory as the minion's.
type masterHere struct {
	confFile string // the minion's
	env      func(string) string
	log      *slog.Logger
}

func masterOnHost(confFile string, env func(string) string, log *slog.Logger) modules.MasterHost {
	return masterHere{confFile, env, log}
}

var _ modules.MasterHost = masterHere{}

// functionLimit is the time limit of a wheel function. Runners may take as long as their job.
const functionLimit = 5 * time.Minute

// loadConfig reads the master's configuration, which may have changed since the last call.
func (h masterHere) loadConfig() (*conf.Config, error) {
	c, err := conf.LoadMasterWith(filepath.Join(filepath.Dir(h.confFile), "master"),
		conf.Options{Tool: true, Getenv: h.env})
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration of the master on this host: %w", err)
	}
	return c, nil
}

// Fire implements modules.MasterHost.
func (h masterHere) Fire(ctx context.Context, tag string, data map[string]any) error {
	c, err := h.loadConfig()
	if err != nil {
		return err
	}
	return ipc.Fire(ctx, localmaster.EventSockets(c, ""), tag,
		ordered.ToWire(data).(map[string]any))
}

// connectMaster creates a client of the master that waits up to timeout for an answer; 0 means the default.
func (h masterHere) connectMaster(timeout time.Duration) (*client.Client, *conf.Config, error) {
	c, err := h.loadConfig()
	if err != nil {
		return nil, nil, modules.Errorf("%v", err)
	}
	w := localmaster.Way{Dialer: standard.Dialers()[c.String("transport")], Timeout: timeout}
	if w.Dialer == nil {
		return nil, nil, modules.Errorf("cannot reach the master on this host: there is no "+
			"transport %s", c.String("transport"))
	}
	if w.Options.Wrap, err = standard.TLS(c.Opts); err != nil {
		return nil, nil, modules.Errorf("cannot reach the master on this host: %v", err)
	}
	cl, err := localmaster.Connect(c, w, h.env, h.log)
	if err != nil {
		return nil, nil, modules.Errorf("%v", err)
	}
	return cl, c, nil
}

// Run implements modules.MasterHost.
func (h masterHere) Run(ctx context.Context, q modules.MasterJob,
	each func(modules.MasterAnswer)) error {
	cl, c, err := h.connectMaster(0)
	if err != nil {
		return err
	}
	defer cl.Close()
	args, _ := ordered.ToWire(q.Args).([]any)
	job := client.Command{Fun: q.Fun, Arg: args, Tgt: q.Tgt, TgtType: q.TgtType, Ret: q.Ret,
		Kwargs: q.Extra}
	if len(q.Kwargs) > 0 {
		job.Arg = append(job.Arg, protocol.Kwargs(ordered.ToWire(q.Kwargs).(map[string]any)))
	}
	o := client.RunOptions{Timeout: q.Timeout, Gather: max(q.Gather, 0)}
	if o.Timeout <= 0 {
		o.Timeout = c.Duration("timeout", time.Second)
	}
	if o.Gather == 0 {
		o.Gather = localmaster.Gather(c.Duration("gather_job_timeout", time.Second))
	}
	r, err := cl.Run(ctx, job, o)
	if err != nil {
		return h.explainFailure(ctx, err)
	}
	defer r.Close()
	for ret := range r.Returns(ctx) {
		switch {
		case ret.Status == client.Returned:
			each(modules.MasterAnswer{ID: ret.ID, Value: ret.Value, Retcode: ret.Code(),
				Out: ret.Out, JID: ret.JID, Data: ret.Data})
		case q.Expect || ret.Unknown:
			each(modules.MasterAnswer{ID: ret.ID, Failed: true})
		}
	}
	return h.explainFailure(ctx, r.Err())
}

// explainFailure converts a client's error to one for modules.
func (h masterHere) explainFailure(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, client.ErrNoMatch):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, client.ErrNotRunning):
		h.log.Debug("There is no master on this host", "err", err)
		return modules.ErrNoMasterHere
	}
	return modules.Errorf("%v", err)
}

// Call implements modules.MasterHost.
func (h masterHere) Call(ctx context.Context, q modules.MasterCall) (map[string]any, error) {
	cl, _, err := h.connectMaster(functionLimit)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	args, _ := ordered.ToWire(q.Args).([]any)
	kwargs, _ := ordered.ToWire(q.Kwargs).(map[string]any)
	data, err := cl.Call(ctx,
		client.FunctionCall{Kind: q.Kind, Fun: q.Fun, Args: args, Kwargs: kwargs,
			Saltenv: q.Saltenv})
	if err != nil {
		if ctx.Err() == nil && errors.Is(err, client.ErrNoFunction) {
			return nil, &modules.NotAvailableError{Fun: q.Fun}
		}
		return nil, h.explainFailure(ctx, err)
	}
	return data, nil
}
