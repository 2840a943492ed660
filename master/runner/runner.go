// Package runner contains Salt's runners: functions that run on the master's host and read the master's data,
// or command minions (salt-run, Salt's runner clients). They are declared like execution modules (package
// modules), so arguments, documentation and errors are those of any Salt function.
//
// They work on a [Host]: the directories of a brine or stock master on this host, or an embedded master. Salt's
// sources: salt/runner.py, salt/client/mixins.py, salt/runners.
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
	tag      string // prefix of event tags, before the job id
	host     *host.Host
	registry *modules.Registry
	env      *modules.Env
}

// newClient returns a Client without functions. tag is the prefix of its event tags, before the job id.
func newClient(h *host.Host, kind, tag string) *Client {
	if h.Log == nil {
		h.Log = slog.New(slog.DiscardHandler)
	}
	return &Client{kind: kind, tag: tag, host: h,
		env: &modules.Env{ID: h.ID, Opts: func() map[string]any { return h.Opts }, Log: h.Log}}
}

// NewClient returns a client for the runners of a host.
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

// funcs has the functions of the runners in this package.
type funcs struct {
	*host.Host
	client *Client
}

// Request is a call of one function.
type Request struct {
	Fun    string
	Args   []any
	Kwargs map[string]any
	// JID is the id of the run; if it is empty, one is created. User is the caller.
	JID, User string
	// Named means that the request had the arguments by name, not as "arg" and "kwarg". A wheel function's
	// arguments are then checked before the call.
	Named bool
	// Saltenv, if not nil, is the value of the function's parameter saltenv, if it has one.
	Saltenv any
}

// Result is the result of a call, as in its final event.
type Result struct {
	JID string
	// Return is the function's value, or the text of its error.
	Return any
	// Ordered is Return with maps of known order as payload.OrderedMap.
	Ordered any
	Success bool
	// Retcode is 1 if the function failed, or the code that it set, else 0. Failed runs have it in their event.
	Retcode int
	// Missing means that the function does not exist. Nothing ran and no event was fired.
	Missing bool
	// Tag is the prefix of the tags of the run's events. Data is the data of the last one.
	Tag  string
	Data map[string]any
}

// Call runs one function. It fires events at start and end on the master's bus, salt/run/<jid>/new and …/ret.
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
	job := &modules.Context{}
	job.Set(host.UserKey, q.User)
	out := c.registry.Run(ctx, c.env,
		modules.Request{Fun: q.Fun, JID: q.JID, Args: q.Args, Kwargs: q.Kwargs, Context: job,
			Progress: func(item any) {
				if m, ok := item.(map[string]any); ok {
					if c.host.Progress != nil {
						shown := maps.Clone(m) // as the event is, with its time
						shown["_stamp"] = protocol.Stamp(time.Now())
						c.host.Progress(shown)
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
		res.Return = "\nPassed invalid arguments: " + out.Err.Error() + "\n\nUsage:\n" +
			c.registry.Help(c.env, q.Fun)
		res.Ordered = res.Return
		// Stock returns this text, or the exception of the argument check.
		res.Success = c.kind != "wheel" || !q.Named
	case out.Err != nil:
		res.Return = "Exception occurred in " + c.kind + " " + q.Fun + ": " + out.Err.Error()
		res.Ordered = res.Return
		res.Success, res.Retcode = false, 1
	case job.Retcode() != 0: // as in stock, only the code that the function set counts
		res.Success, res.Retcode = false, job.Retcode()
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

// storeRun stores the run like a job of the master itself.
func (c *Client) storeRun(ctx context.Context, jid string, data map[string]any) {
	if c.host.Jobs == nil {
		return
	}
	ctx = context.WithoutCancel(ctx) // the run must be stored even if the caller has left
	id := c.host.ID
	user, _ := data["user"].(string)
	if user == "" {
		user = "root"
	}
	err := c.host.Jobs.SaveJob(ctx,
		store.Job{JID: jid, Fun: data["fun"], Tgt: id, TgtType: "list", User: user,
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

// fireEvent fires an event of a run. The run continues if there is no bus.
func (c *Client) fireEvent(ctx context.Context, jid, suffix string, data map[string]any) {
	if c.host.Fire == nil {
		return
	}
	if err := c.host.Fire(ctx, c.tag+jid+"/"+suffix, data); err != nil {
		c.host.Log.Debug("Cannot fire event of a run", "jid", jid, "err", err)
	}
}

// Docs returns the documentation of the functions that name selects: one function, all of a runner, or a glob;
// "" means all.
func (c *Client) Docs(name string) map[string]string {
	out := map[string]string{}
	prefix := strings.TrimSuffix(name, ".") + "."
	for _, fun := range c.registry.Functions(c.env) {
		if name != "" && fun != name && !strings.HasPrefix(fun, prefix) {
			continue
		}
		out[fun] = c.registry.Help(c.env, fun)
	}
	return out
}

// Argspec returns a function's declaration, for parsing its arguments, or nil if it is unknown.
func (c *Client) Argspec(fun string) *modules.Def {
	def, err := c.registry.Lookup(fun, c.env)
	if err != nil {
		return nil
	}
	return def
}

// NewWheel returns a client for the wheel functions of a host, which change a master's setup.
func NewWheel(h *host.Host) *Client {
	c := newClient(h, "wheel", "salt/wheel/")
	f := funcs{Host: h, client: c}
	c.registry = modules.NewRegistry(wheel.Key(h), wheel.Minions(h), wheel.Config(h),
		f.errorModule())
	return c
}
