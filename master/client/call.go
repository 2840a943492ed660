package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/payload"
)

// FunctionCall is a call of a runner or wheel function.
type FunctionCall struct {
	// Kind is "runner" or "wheel".
	Kind, Fun string
	Args      []any
	Kwargs    map[string]any
	// Saltenv, if not nil, is the value of the function's parameter saltenv, if it has one. Stock masters
	// ignore it.
	Saltenv any
	// Login authenticates the caller instead of the key file: "eauth", "username" and "password", or "token".
	Login map[string]any
}

// ErrNoFunction means that the master has no such runner or wheel function.
var ErrNoFunction = errors.New("the master has no such function")

// Call runs a runner or wheel function on the master and waits for its end. In the answer, "success" reports
// whether "return" is the function's result or the text of an error.
func (c *Client) Call(ctx context.Context, f FunctionCall) (map[string]any, error) {
	bus, err := ipc.Dial(ctx, c.o.Events) // before the call, so that its end is not missed
	if err != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", ErrNotRunning, err)
		}
		return nil, err
	}
	defer bus.Close()
	reply, err := c.callMaster(ctx, f)
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
	tag, err := tagOf(reply)
	if err != nil {
		return nil, err
	}
	for {
		e, err := bus.Next(ctx)
		if err != nil {
			return c.missedEnd(ctx, f.Fun, tag, err)
		}
		if e.Tag == tag+"/ret" {
			return e.Data, nil
		}
	}
}

// Start is [Client.Call] for a runner function without waiting for its end. It returns the run's job id and the
// prefix of its event tags.
func (c *Client) Start(ctx context.Context, f FunctionCall) (jid, tag string, err error) {
	reply, err := c.callMaster(ctx, f)
	if err != nil {
		return "", "", err
	}
	tag, err = tagOf(reply)
	return tag[strings.LastIndexByte(tag, '/')+1:], tag, err
}

func tagOf(reply map[string]any) (string, error) {
	tag, _ := payload.Text(reply["tag"])
	if tag == "" {
		return "", &PublishError{"the master's answer does not tell where the result will be"}
	}
	return tag, nil
}

// missedFor is how long the store is searched for the end of a function after the event socket was lost.
const missedFor = 5 * time.Second

// missedEnd finds the end of a runner function in the store, after events were missed because of cause.
func (c *Client) missedEnd(ctx context.Context, fun, tag string, cause error) (data map[string]any,
	err error) {
	jid := tag[strings.LastIndexByte(tag, '/')+1:]
	for end := time.Now().Add(missedFor); ctx.Err() == nil && time.Now().Before(end); {
		err = c.storedReturns(ctx, jid, nil, nil, func(_ string, ret map[string]any) {
			data, _ = payload.Map(ret["return"])
		})
		if data != nil {
			return data, nil
		}
		if errors.Is(err, errNoReturns) {
			break
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("events were missed while %s ran (%w); look up its result later "+
		"with salt-run jobs.lookup_jid %s", fun, cause, jid)
}

// callMaster requests a function call. If the key is refused it retries with the current one, because a
// restarted master has a new key.
func (c *Client) callMaster(ctx context.Context, f FunctionCall) (map[string]any, error) {
	args, kwargs := f.Args, f.Kwargs
	if args == nil {
		args = []any{}
	}
	if kwargs == nil {
		kwargs = map[string]any{}
	}
	load := map[string]any{"cmd": f.Kind, "fun": f.Fun}
	if f.Login == nil {
		load["user"] = c.o.User
	}
	maps.Copy(load, f.Login)
	if f.Kind == "wheel" {
		load["arg"], load["kwarg"] = args, kwargs
	} else {
		load["kwarg"] = map[string]any{"arg": args, "kwarg": kwargs}
	}
	if f.Saltenv != nil {
		load["saltenv"] = f.Saltenv
	}
	for again := true; ; again = false {
		if f.Login == nil {
			c.mu.Lock()
			load["key"] = c.key
			c.mu.Unlock()
		}
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
		case again && f.Login == nil && c.readKey():
		default:
			return nil, refusalError(e)
		}
	}
}
