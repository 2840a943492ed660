// Package runner has Salt's runners: functions that run on the master's host and look at the master's data, or command
// minions (salt-run, Salt's runner clients). They are declared with the contract of package modules, so that arguments,
// documentation and errors are those of any Salt function.
//
// A [Host] is what they work on: the directories of a master on this host, ours or stock, or an embedded master's own
// parts. Salt's sources: salt/runner.py, salt/client/mixins.py, salt/runners.
package runner

import (
	"github.com/brine-salt/brine/master/runner/data"
	"github.com/brine-salt/brine/master/runner/jobs"
	"github.com/brine-salt/brine/master/runner/manage"
	"github.com/brine-salt/brine/master/runner/orchestrate"
	"github.com/brine-salt/brine/master/runner/rings"
	"github.com/brine-salt/brine/master/runner/wheel"

	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/master/runner/host"

	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/internal/stateresult"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// Client runs the functions of one kind, runners or wheels.
type Client struct {
	kind     string // "runner" or "wheel"
	tag      string // before the job id, in events
	host     *host.Host
	registry *modules.Registry
	env      *modules.Env
}

// newClient creates a Client without functions. tag is what its events have before the job id.
func newClient(h *host.Host, kind, tag string) *Client {
	if h.Log == nil {
		h.Log = slog.New(slog.DiscardHandler)
	}
	return &Client{kind: kind, tag: tag, host: h,
		env: &modules.Env{ID: h.ID, Opts: func() map[string]any { return h.Opts }, Log: h.Log}}
}

// NewClient makes a client for the runners of a host.
func NewClient(h *host.Host) *Client {
	c := newClient(h, "runner", "salt/run/")
	f := funcs{Host: h, client: c}
	c.registry = modules.NewRegistry(jobs.Module(h), manage.Module(h), manage.Survey(h),
		data.Cache(h),
		data.Fileserver(h), data.Pillar(h), data.Mine(h), f.saltModule(), f.eventModule(),
		f.configModule(), f.reactorModule(), f.testModule(),
		f.errorModule(), f.docModule(), f.matchModule(), f.networkModule(), rings.Module(h))
	if h.Exec != nil {
		c.registry.Add(orchestrate.Module(h))
	}
	return c
}

// funcs are the functions of all runners.
type funcs struct {
	*host.Host
	client *Client
}

// Request is one call.
type Request struct {
	Fun    string
	Args   []any
	Kwargs map[string]any
	// JID is the id of the run; empty makes one. User is who asked.
	JID, User string
	// Named says that the arguments stood in the request by their names, not as "arg" and "kwarg": those of a wheel
	// function are then judged before it is called.
	Named bool
	// Saltenv, unless nil, is the value of the function's parameter saltenv, if it has one.
	Saltenv any
}

// Result is what became of a call, as the event of its end has it.
type Result struct {
	JID string
	// Return is the function's value, or the text of an error.
	Return any
	// Ordered is Return with those maps as payload.OrderedMap whose order is known.
	Ordered any
	Success bool
	// Retcode is 1 when the function failed, and 0 else. Failed runs have it in their event.
	Retcode int
	// Missing is set when there is no such function; nothing was run and no event fired.
	Missing bool
	// Tag is the beginning of the tags of the run's events, Data what the last of them has.
	Tag  string
	Data map[string]any
}

// Call runs one function. Its start and its end are events on the master's bus, salt/run/<jid>/new and …/ret.
func (c *Client) Call(ctx context.Context, q Request) Result {
	if q.JID == "" {
		q.JID = string(protocol.NewJID(time.Now()))
	}
	res := Result{JID: q.JID, Tag: c.tag + q.JID}
	def, err := c.registry.Lookup(q.Fun, c.env)
	if err != nil {
		res.Return, res.Missing = "'"+q.Fun+"' is not available.", true
		res.Ordered = res.Return
		return res
	}
	if q.Saltenv != nil &&
		slices.ContainsFunc(def.Params, func(p modules.Param) bool { return p.Name == "saltenv" }) {
		if q.Kwargs = maps.Clone(q.Kwargs); q.Kwargs == nil {
			q.Kwargs = map[string]any{}
		}
		q.Kwargs["saltenv"] = q.Saltenv
	}
	funArgs := slices.Clone(q.Args)
	if funArgs == nil {
		funArgs = []any{}
	}
	if len(q.Kwargs) > 0 {
		funArgs = append(funArgs, q.Kwargs)
	}
	data := map[string]any{"fun": c.kind + "." + q.Fun, "jid": q.JID, "user": q.User,
		"fun_args": funArgs}
	c.fireEvent(ctx, q.JID, "new", data)
	out := c.registry.Run(ctx, c.env,
		modules.Request{Fun: q.Fun, JID: q.JID, Args: q.Args, Kwargs: q.Kwargs,
			Progress: func(item any) {
				if m, ok := item.(map[string]any); ok {
					if c.host.Progress != nil {
						c.host.Progress(m)
					}
					c.fireEvent(ctx, q.JID, "progress", m)
				}
			}})
	res.Ordered, res.Success = out.Return, true
	if out.Ordered != nil {
		res.Ordered = ordered.ToWire(out.Ordered)
	}
	res.Return = payload.Plain(res.Ordered)
	var invalid *modules.TypeError
	var usage *modules.UsageError
	switch {
	case errors.As(out.Err, &invalid), errors.As(out.Err, &usage):
		res.Return = "\nPassed invalid arguments: " + out.Err.Error() + "\n\nUsage:\n" + def.Doc
		res.Ordered = res.Return
		// stock shows this text, or the exception of whoever judges them
		res.Success = c.kind != "wheel" || !q.Named
	case out.Err != nil:
		res.Return = "Exception occurred in " + c.kind + " " + q.Fun + ": " + out.Err.Error()
		res.Ordered = res.Return
		res.Success, res.Retcode = false, 1
	}
	if m, ok := res.Return.(map[string]any); ok && res.Success {
		if state, ok := m["data"].(map[string]any); ok {
			res.Success = stateresult.Succeeded(state, nil, true)
		}
	}
	data["return"], data["success"] = res.Ordered, res.Success
	if res.Retcode != 0 {
		data["retcode"] = int64(res.Retcode)
	}
	if c.kind == "runner" {
		c.storeRun(ctx, q.JID, data)
	}
	res.Data = data
	c.fireEvent(ctx, q.JID, "ret", data)
	return res
}

// storeRun stores the run with the jobs, as one that the master did itself.
func (c *Client) storeRun(ctx context.Context, jid string, data map[string]any) {
	if c.host.Jobs == nil {
		return
	}
	ctx = context.WithoutCancel(ctx) // who asked may have left: the run was all the same
	id := c.host.ID
	err := c.host.Jobs.SaveJob(ctx,
		store.Job{JID: jid, Fun: data["fun"], Tgt: id, TgtType: "list", User: "root",
			Created: time.Now(),
			Load: map[string]any{"id": id, "tgt": id, "jid": jid, "fun": data["fun"],
				"return": data}})
	if err == nil {
		_, err = c.host.Jobs.SaveReturn(ctx, store.Return{JID: jid, ID: id, Received: time.Now(),
			Load: map[string]any{"id": id, "jid": jid, "fun": data["fun"], "return": data}})
	}
	if err != nil {
		c.host.Log.Warn("Cannot store the run of a runner", "jid", jid, "err", err)
	}
}

// fireEvent puts an event of a run on the bus. A bus that is not there is no reason not to run.
func (c *Client) fireEvent(ctx context.Context, jid, suffix string, data map[string]any) {
	if c.host.Fire == nil {
		return
	}
	if err := c.host.Fire(ctx, c.tag+jid+"/"+suffix, data); err != nil {
		c.host.Log.Debug("Cannot fire event of a run", "jid", jid, "err", err)
	}
}

// Docs is the documentation of the functions that name means: one function, all of a runner, or a glob; "" means all.
func (c *Client) Docs(name string) map[string]string {
	out := map[string]string{}
	prefix := strings.TrimSuffix(name, ".") + "."
	for _, fun := range c.registry.Functions(c.env) {
		if name != "" && fun != name && !strings.HasPrefix(fun, prefix) {
			continue
		}
		if def, err := c.registry.Lookup(fun, c.env); err == nil {
			out[fun] = def.Doc
		}
	}
	return out
}

// Argspec returns a function's declaration, for command lines with arguments, or nil if it is unknown.
func (c *Client) Argspec(fun string) *modules.Def {
	def, err := c.registry.Lookup(fun, c.env)
	if err != nil {
		return nil
	}
	return def
}

// NewWheel makes a client for the wheel functions of a host: those that change how the master is set up.
func NewWheel(h *host.Host) *Client {
	c := newClient(h, "wheel", "salt/wheel/")
	f := funcs{Host: h, client: c}
	c.registry = modules.NewRegistry(wheel.Key(h), wheel.Minions(h), wheel.Config(h),
		f.errorModule())
	return c
}
