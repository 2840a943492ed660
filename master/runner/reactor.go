package runner

import (
	"context"
	"errors"
	"time"

	"github.com/brine-salt/brine/master/runner/host"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// managing is the prefix of the tags for requests to a running reactor (package master/reactor).
const managing = "salt/reactors/manage/"

// reactorModule declares the runner reactor (salt/runners/reactor.py).
func (f funcs) reactorModule() *modules.Module {
	env := []modules.Param{{Name: "saltenv", Default: "base"}, {Name: "test", Optional: true}}
	return &modules.Module{Name: "reactor", Doc: "What the running master does on events.",
		Funcs: []modules.Def{
			{Name: "list", Doc: `What is done on which events.

    salt-run reactor.list`, Params: env,
				Run: func(ctx context.Context, _ *modules.Call) (any, error) {
					return f.askReactor(ctx, "list", "list-results", "reactors", nil)
				}},
			{Name: "add", Doc: `Do something on further events, until the master ends.

event
    A pattern of tags.
reactors
    Files of reactions, or one.

    salt-run reactor.add 'salt/cloud/*/destroyed' reactors='/srv/reactor/destroy/*.sls'`,
				Params: append([]modules.Param{{Name: "event"}, {Name: "reactors"}}, env...),
				Run: func(ctx context.Context, c *modules.Call) (any, error) {
					files := c.Value("reactors")
					if one, ok := files.(string); ok {
						files = []any{one}
					}
					return f.askReactor(ctx, "add", "add-complete", "result",
						map[string]any{"event": c.Value("event"), "reactors": files})
				}},
			{Name: "delete", Doc: `Do nothing any more on events, until the master ends.

event
    The pattern of tags as it stands in the list.

    salt-run reactor.delete 'salt/cloud/*/destroyed'`, Params: append([]modules.Param{{Name: "event"}}, env...),
				Run: func(ctx context.Context, c *modules.Call) (any, error) {
					return f.askReactor(ctx, "delete", "delete-complete", "result",
						map[string]any{"event": c.Value("event")})
				}},
			{Name: "is_leader", Doc: `Whether the reactor reacts: one of several masters may be told not to.

    salt-run reactor.is_leader`,
				Run: func(ctx context.Context, _ *modules.Call) (any, error) {
					return f.askReactor(ctx, "is_leader", "leader/value", "result", nil)
				}},
			{Name: "set_leader", Doc: `Let the reactor react, or not.

    salt-run reactor.set_leader True`, Params: []modules.Param{{Name: "value", Default: true}},
				Run: func(ctx context.Context, c *modules.Call) (any, error) {
					return f.askReactor(ctx, "set_leader", "leader/value", "result",
						map[string]any{"id": f.ID, "value": c.Value("value")})
				}},
		}}
}

// askReactor sends a request to the reactor as an event and waits for the event with its answer.
func (f funcs) askReactor(ctx context.Context, what, answer, key string, data map[string]any) (any,
	error) {
	if !pytext.Truth(f.Opts["reactor"]) {
		return nil, modules.Errorf("Reactor system is not running.")
	}
	if f.Listen == nil || f.Fire == nil || f.Key == "" {
		return nil, host.Needs("event bus")
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	bus, err := f.Listen(ctx, "master", "")
	if err != nil {
		return nil, err
	}
	defer bus.Close()
	load := map[string]any{"key": f.Key}
	for k, v := range data {
		load[k] = v
	}
	if err := f.Fire(ctx, managing+what, load); err != nil {
		return nil, err
	}
	for {
		tag, got, err := bus.Next(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return nil, modules.Errorf("Reactor system is not running.")
		case err != nil:
			return nil, err
		case tag == managing+answer:
			return got[key], nil
		}
	}
}
