package client

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/payload"
)

// FunctionCall is a runner or wheel function to run.
type FunctionCall struct {
	// Kind is "runner" or "wheel".
	Kind, Fun string
	Args      []any
	Kwargs    map[string]any
	// Saltenv, unless nil, is the value of the function's parameter saltenv, if it has one. Stock masters do not look at it.
	Saltenv any
}

// ErrNoFunction says that the master has no such runner or wheel function.
var ErrNoFunction = errors.New("the master has no such function")

// Call runs a runner or wheel function in the master and waits for its end. The answer tells with "success" whether "return" is the
// function's result or the text of an error.
func (c *Client) Call(ctx context.Context, f FunctionCall) (map[string]any, error) {
	bus, err := ipc.Dial(ctx, c.o.Events) // before the call, or its end may be missed
	if err != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", ErrNotRunning, err)
		}
		return nil, err
	}
	defer bus.Close()
	reply, err := c.call(ctx, f)
	if err != nil {
		return nil, err
	}
	if f.Kind == "wheel" {
		data, ok := payload.Map(reply["data"])
		if !ok {
			return nil, &PublishError{"the master's answer has no data"}
		}
		data = maps.Clone(data)
		delete(data, "tag")
		return data, nil
	}
	tag, _ := payload.Text(reply["tag"])
	if tag == "" {
		return nil, &PublishError{"the master's answer does not tell where the result will be"}
	}
	for {
		e, err := bus.Next(ctx)
		if err != nil {
			if ctx.Err() == nil {
				err = fmt.Errorf("cannot wait for the end of %s: %w", f.Fun, err)
			}
			return nil, err
		}
		if e.Tag == tag+"/ret" {
			return e.Data, nil
		}
	}
}

// call asks for a function; a master that was started anew has a new key.
func (c *Client) call(ctx context.Context, f FunctionCall) (map[string]any, error) {
	args, kwargs := f.Args, f.Kwargs
	if args == nil {
		args = []any{}
	}
	if kwargs == nil {
		kwargs = map[string]any{}
	}
	load := map[string]any{"cmd": f.Kind, "fun": f.Fun, "user": c.o.User}
	if f.Kind == "wheel" {
		load["arg"], load["kwarg"] = args, kwargs
	} else {
		load["kwarg"] = map[string]any{"arg": args, "kwarg": kwargs}
	}
	if f.Saltenv != nil {
		load["saltenv"] = f.Saltenv
	}
	for again := true; ; again = false {
		c.mu.Lock()
		load["key"] = c.key
		c.mu.Unlock()
		v, err := c.Request(ctx, load)
		if err != nil {
			return nil, err
		}
		m, ok := payload.Map(v)
		if !ok || len(m) == 0 {
			m = map[string]any{"error": map[string]any{"name": "AuthenticationError"}}
		}
		e, refused := payload.Map(m["error"])
		if !refused {
			return m, nil
		}
		name, _ := payload.Text(e["name"])
		switch {
		case name == "KeyError":
			return nil, fmt.Errorf("%w: %s", ErrNoFunction, f.Fun)
		case again && c.readKey():
		default:
			return nil, refusal(e)
		}
	}
}
