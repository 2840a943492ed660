// Package orchestrate is Salt's runner state: orchestration. States are compiled and run on the master's host
// by host.Host.Exec; those of saltmod command minions:
//
//	salt-run state.orchestrate ── Exec(state.sls) ── saltmod.state ── host.Run ──▶ minions
//
// Salt's source: salt/runners/state.py.
package orchestrate

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/master/runner/host"

	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/internal/output"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/stateresult"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol"
)

// funcs has the functions of this package, for one host.
type funcs struct{ *host.Host }

// Module returns the runner state.
func Module(h *host.Host) *modules.Module { return funcs{h}.stateModule() }

// state.graph absent: it draws with what only 3008 has.
// state.graph_highstate absent: it draws with what only 3008 has.

// stateModule declares the runner state (salt/runners/state.py).
func (f funcs) stateModule() *modules.Module {
	opt := func(names ...string) []modules.Param {
		list := make([]modules.Param, len(names))
		for i, name := range names {
			list[i] = modules.Param{Name: name, Optional: true}
		}
		return list
	}
	mods := modules.Param{Name: "mods"}
	base := modules.Param{Name: "saltenv", Default: "base"}
	orchestrate := slices.Concat([]modules.Param{mods, base},
		opt("test", "exclude", "pillar", "pillarenv", "pillar_enc", "orchestration_jid"))
	show := slices.Concat([]modules.Param{mods, base}, opt("test"),
		[]modules.Param{{Name: "queue", Default: false}}, opt("pillar", "pillarenv", "pillar_enc"))
	pause := slices.Concat([]modules.Param{{Name: "jid"}}, opt("state_id"))
	m := &modules.Module{Name: "state",
		Doc: "Orchestration: states that run on the master and command minions."}
	add := func(run modules.Func, doc string, params []modules.Param, kwargs, python string,
		names ...string) {
		for _, name := range names {
			m.Funcs = append(m.Funcs,
				modules.Def{Name: name, Python: python, Doc: doc, Params: params, Kwargs: kwargs,
					Run: run})
		}
	}
	add(f.orchestrate, orchestrateDoc, orchestrate, "", "orchestrate", "orchestrate", "orch", "sls")
	add(f.orchestrateSingle, singleDoc,
		slices.Concat([]modules.Param{{Name: "fun"}, {Name: "name"}}, opt("test"),
			[]modules.Param{{Name: "queue", Default: false}},
			opt("pillar")), "kwargs", "", "orchestrate_single")
	add(f.orchestrateHigh, highDoc,
		slices.Concat([]modules.Param{{Name: "data"}}, opt("test"),
			[]modules.Param{{Name: "queue", Default: false}}, opt("pillar")),
		"kwargs", "", "orchestrate_high")
	add(f.showSLS, showDoc, show, "", "orchestrate_show_sls", "orchestrate_show_sls",
		"orch_show_sls")
	add(f.pauseFunc("state.pause"), pauseDoc, append(slices.Clone(pause), opt("duration")...), "",
		"pause", "pause", "set_pause")
	add(f.pauseFunc("state.resume"), resumeDoc, pause, "", "resume", "resume", "rm_pause")
	add(f.pauseFunc("state.soft_kill"), killDoc, pause, "", "", "soft_kill")
	add(f.stateEvents, eventDoc,
		[]modules.Param{{Name: "tagmatch", Default: "*"}, {Name: "count", Default: int64(-1)},
			{Name: "quiet", Default: false},
			{Name: "sock_dir", Optional: true}, {Name: "pretty", Default: false},
			{Name: "node", Default: "master"}}, "", "", "event")
	return m
}

const orchestrateDoc = `Run an orchestration: states on the master that command minions.

mods
    The SLS files, a text with commas or a list.
saltenv, pillarenv, test, exclude, pillar, pillar_enc
    As for state.sls.

    salt-run state.orchestrate deploy
    salt-run state.orchestrate deploy test=True pillar='{"version": 3}'`

const singleDoc = `Run one state on the master.

    salt-run state.orchestrate_single fun=salt.wheel name=key.list_all`

const highDoc = `Run the states of a map, as an SLS file would have it, on the master.

    salt-run state.orchestrate_high '{stage: {salt.state: [{tgt: "db*"}, {sls: setup}]}}'`

const showDoc = `Show the states of SLS files as the master renders them, without running them.

    salt-run state.orchestrate_show_sls deploy`

const pauseDoc = `Make a run stop before a state, or before its next one.

    salt-run state.pause 20240101000000000000 state_id duration=30`

const resumeDoc = `Let a run go on that was paused.

    salt-run state.resume 20240101000000000000`

const killDoc = `End a run before a state, or before its next one.

    salt-run state.soft_kill 20240101000000000000`

const eventDoc = `Print the events of the bus.

tagmatch
    Only those whose tag matches this glob or regular expression.
count
    End after so many; -1 never ends.
quiet
    Print nothing.
pretty
    Print the data over several lines.
node, sock_dir
    Another bus than the master's.

    salt-run state.event 'salt/job/*' count=1`

// pillarArg returns the caller's pillar, or nil.
func pillarArg(c *modules.Call) (*pyobj.Dict, error) {
	switch v, _ := c.InOrder("pillar"); v := v.(type) {
	case nil:
		return nil, nil
	case *pyobj.Dict:
		return v, nil
	}
	return nil, modules.Usagef("Pillar data must be formatted as a dictionary")
}

// contextOf returns the context of a function on this host: it has the run's user, and a return code of its own.
func contextOf(c *modules.Call) *modules.Context {
	job := &modules.Context{}
	if user, ok := c.Context().Get(host.UserKey); ok {
		job.Set(host.UserKey, user)
	}
	return job
}

// orchestrate is state.orchestrate, which runs an orchestration SLS on the master, as a minion with the
// master's id. Its job id is known beforehand, so that the events of its steps can be followed.
func (f funcs) orchestrate(ctx context.Context, c *modules.Call) (any, error) {
	pillar, err := pillarArg(c)
	if err != nil {
		return nil, err
	}
	kw := map[string]any{"saltenv": c.Value("saltenv"), "pillarenv": c.Value("pillarenv"),
		"pillar_enc": c.Value("pillar_enc")}
	if kw["pillarenv"] == nil {
		kw["pillarenv"] = f.Opts["pillarenv"]
	}
	if kw["saltenv"] == nil {
		kw["saltenv"] = f.Opts["saltenv"]
	}
	if pillar != nil {
		kw["pillar"] = pillar
	}
	jid := c.Str("orchestration_jid")
	if jid == "" {
		jid = string(protocol.NewJID(time.Now()))
	}
	kw["orchestration_jid"], kw["__pub_jid"] = jid, jid
	v, err := f.Exec(ctx,
		modules.Request{Fun: "state.sls", JID: jid, Context: contextOf(c),
			Args: []any{c.Value("mods"), c.Value("test"), c.Value("exclude")}, Kwargs: kw})
	if err != nil {
		return nil, err
	}
	code := int64(1)
	if stateresult.Succeeded(map[string]any{f.ID: v}, nil, true) {
		code = 0
	}
	data := map[string]any{f.ID: ordered.States(v, "highstate")}
	return map[string]any{"data": data, "outputter": "highstate", "retcode": code}, nil
}

// orchestrateSingle is state.orchestrate_single, which runs one orchestration state.
func (f funcs) orchestrateSingle(ctx context.Context, c *modules.Call) (any, error) {
	return f.runOne(ctx, c, "state.single", c.Value("fun"), c.Value("name"))
}

// orchestrateHigh is state.orchestrate_high, which runs the caller's high data.
func (f funcs) orchestrateHigh(ctx context.Context, c *modules.Call) (any, error) {
	return f.runOne(ctx, c, "state.high", highData(c))
}

// highData returns the caller's high data in its order.
func highData(c *modules.Call) any {
	v, _ := c.InOrder("data")
	return v
}

// runOne runs single states. As in Salt, the arguments test and queue are accepted and ignored.
func (f funcs) runOne(ctx context.Context, c *modules.Call, fun string, args ...any) (any, error) {
	pillar, err := pillarArg(c)
	if err != nil {
		return nil, err
	}
	kw := map[string]any{}
	for k := range c.Keywords {
		if !strings.HasPrefix(k, "__pub_") {
			kw[k] = c.KeywordInOrder(k)
		}
	}
	kw["queue"] = false
	if pillar != nil {
		kw["pillar"] = pillar
	}
	v, err := f.Exec(ctx,
		modules.Request{Fun: fun, JID: c.JID, Args: args, Kwargs: kw, Context: contextOf(c)})
	if err != nil {
		return nil, err
	}
	ret := map[string]any{f.ID: ordered.States(v, "highstate")}
	c.Progress(map[string]any{"data": ret, "outputter": "highstate"})
	return ret, nil
}

// showSLS is state.orchestrate_show_sls, which returns the high data of an SLS without running it.
func (f funcs) showSLS(ctx context.Context, c *modules.Call) (any, error) {
	pillar, err := pillarArg(c)
	if err != nil {
		return nil, err
	}
	kw := map[string]any{"saltenv": c.Value("saltenv"), "pillar_enc": c.Value("pillar_enc")}
	if v := c.Value("pillarenv"); v != nil {
		kw["pillarenv"] = v
	}
	if pillar != nil {
		kw["pillar"] = pillar
	}
	v, err := f.Exec(ctx,
		modules.Request{Fun: "state.show_sls", JID: c.JID,
			Args: []any{c.Value("mods"), c.Value("test"), c.Value("queue")}, Kwargs: kw})
	if err != nil {
		return nil, err
	}
	return map[string]any{f.ID: v}, nil
}

// pauseFunc returns one of the functions for pausing a run.
func (f funcs) pauseFunc(fun string) modules.Func {
	return func(ctx context.Context, c *modules.Call) (any, error) {
		args := []any{c.Value("jid"), c.Value("state_id")}
		if fun == "state.pause" {
			args = append(args, c.Value("duration"))
		}
		_, err := f.Exec(ctx, modules.Request{Fun: fun, Args: args})
		return nil, err
	}
}

// stateEvents is state.event, which prints events until count of them matched. It also ends when the caller's
// context ends.
func (f funcs) stateEvents(ctx context.Context, c *modules.Call) (any, error) {
	if f.Listen == nil {
		return nil, host.Needs("event bus")
	}
	count, err := c.Int("count")
	if err != nil {
		return nil, err
	}
	bus, err := f.Listen(ctx, c.Str("node"), c.Str("sock_dir"))
	if err != nil {
		return nil, err
	}
	defer bus.Close()
	for {
		tag, data, err := bus.Next(ctx)
		if err != nil {
			return nil, err
		}
		if !pyre.Expr(tag, c.Str("tagmatch")) {
			continue
		}
		if f.Print != nil && !c.Bool("quiet") {
			indent := -1
			if c.Bool("pretty") {
				indent = 4
			}
			text, err := output.Render("json", data, output.Options{Indent: &indent})
			if err != nil {
				return nil, err
			}
			f.Print(tag + "\t" + text)
		}
		if count > 0 {
			count--
		}
		if count == 0 {
			return nil, nil
		}
	}
}
