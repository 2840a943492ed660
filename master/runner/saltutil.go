package runner

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// MasterFunctions are the functions of the execution module "saltutil" that only a program with a master has. They are what the
// state module "salt" is made of (salt/modules/saltutil.py).
func MasterFunctions(h *Host, runners, wheels *Client) []modules.Def {
	f := funcs{Host: h, client: runners}
	opt := func(name string) modules.Param { return modules.Param{Name: name, Optional: true} }
	return []modules.Def{
		{Name: "cmd", Doc: `Run a function on minions of this master.

tgt, fun, arg, timeout, tgt_type, ret, kwarg
    As for the program salt.
batch, subset, expect_minions, failhard
    As for the states of the module "salt".
`, Params: []modules.Param{{Name: "tgt"}, {Name: "fun"}, {Name: "arg", Default: []any{}}, opt("timeout"), {Name: "tgt_type", Default: "glob"},
			{Name: "ret", Default: ""}, opt("kwarg"), {Name: "ssh", Default: false}}, Kwargs: "kwargs", Run: f.cmd},
		{Name: "runner", Doc: `Run a runner function of this master.

name
    The function.
arg, kwarg
    Its arguments; further keyword arguments are such too.
`, Params: []modules.Param{{Name: "name"}, opt("arg"), opt("kwarg"), {Name: "full_return", Default: false}, {Name: "saltenv", Default: "base"}, opt("jid")},
			Kwargs: "kwargs", Run: f.onMaster(runners, "runner")},
		{Name: "wheel", Doc: `Run a wheel function of this master.

name
    The function. Further arguments are its own.
`, Params: []modules.Param{{Name: "name"}}, Args: "args", Kwargs: "kwargs", Run: f.onMaster(wheels, "wheel")},
	}
}

// cmd is saltutil.cmd: what LocalClient.cmd_iter gives for each minion.
func (f funcs) cmd(ctx context.Context, c *modules.Call) (any, error) {
	if c.Bool("ssh") {
		return nil, modules.Errorf("cannot reach minions by ssh: this master has no ssh client")
	}
	j := Job{Tgt: c.Value("tgt"), TgtType: c.Str("tgt_type"), Fun: c.Str("fun"), Ret: returners(c.Value("ret")), Extra: map[string]any{},
		Expect: pytext.Truth(c.Keywords["expect_minions"])}
	err := j.take(c)
	if err != nil {
		return nil, err
	}
	for _, name := range [...]string{"ret_config", "ret_kwargs"} {
		if v, ok := c.Keywords[name]; ok {
			j.Extra[name] = v
		}
	}
	meta := pytext.Truth(c.Keywords["_cmd_meta"])
	stop := pytext.Truth(c.Keywords["failhard"])
	switch {
	case pytext.Truth(c.Keywords["batch"]):
		return f.batch(ctx, j, pytext.Str(c.Keywords["batch"]), stop)
	case pytext.Truth(c.Keywords["subset"]):
		if j.Tgt, err = f.subset(ctx, j, c.Keywords["subset"]); err != nil {
			return nil, err
		}
		j.TgtType = "list"
	}
	answers, err := f.command(ctx, j)
	if err != nil {
		return nil, err
	}
	out := make(map[string]any, len(answers))
	for id, a := range answers {
		out[id] = a.shown(meta)
	}
	return out, nil
}

// shown is an answer as LocalClient gives it; with meta everything that came with it is there too.
func (a Answer) shown(meta bool) map[string]any {
	if a.Failed {
		return map[string]any{"failed": true}
	}
	m := map[string]any{"ret": a.Value, "retcode": int64(a.Retcode)}
	if a.Out != "" {
		m["out"] = a.Out
	}
	if a.JID != "" {
		m["jid"] = a.JID
	}
	if meta {
		maps.Copy(m, a.Data)
	}
	return m
}

// returners are names of returners as they are published.
func returners(v any) string {
	if list, ok := v.([]any); ok {
		names := make([]string, len(list))
		for i, x := range list {
			names[i] = pytext.Str(x)
		}
		return strings.Join(names, ",")
	}
	if v == nil {
		return ""
	}
	return pytext.Str(v)
}

// up are the minions of a target that answer a ping.
func (f funcs) up(ctx context.Context, j Job) ([]string, error) {
	answers, err := f.command(ctx, Job{Tgt: j.Tgt, TgtType: j.TgtType, Fun: "test.ping", Timeout: j.Timeout})
	return slices.Sorted(maps.Keys(answers)), err
}

// subset picks some minions at random among those that answer.
func (f funcs) subset(ctx context.Context, j Job, n any) ([]string, error) {
	size, err := modules.ToInt(n)
	if err != nil {
		return nil, err
	}
	ids, err := f.up(ctx, j)
	if err != nil {
		return nil, err
	}
	rand.Shuffle(len(ids), func(a, b int) { ids[a], ids[b] = ids[b], ids[a] })
	return ids[:min(len(ids), max(0, int(size)))], nil
}

// batch runs a job on so many minions at a time, a number or a percentage. With stop it ends with the first that fails.
func (f funcs) batch(ctx context.Context, j Job, size string, stop bool) (any, error) {
	ids, err := f.up(ctx, j)
	if err != nil {
		return nil, err
	}
	percent, isPercent := strings.CutSuffix(size, "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
	if err != nil {
		return nil, modules.Usagef("Invalid batch data sent: %s\nData must be in the form of %%10, 10%% or 3", size)
	}
	if isPercent {
		n = n / 100 * float64(len(ids))
	}
	out := map[string]any{}
	for part := range slices.Chunk(ids, max(1, int(n))) {
		j.Tgt, j.TgtType = part, "list"
		answers, err := f.command(ctx, j)
		if err != nil {
			return nil, err
		}
		failed := false
		for id, a := range answers {
			shown := map[string]any{"ret": a.Value, "out": "highstate", "retcode": int64(a.Retcode)}
			if a.Out != "" {
				shown["out"] = a.Out
			}
			if a.Failed {
				shown = map[string]any{"failed": true, "out": "highstate"}
			}
			out[id] = shown
			failed = failed || a.Failed || a.Retcode != 0
		}
		if failed && stop {
			break
		}
	}
	return out, nil
}

// onMaster is saltutil.runner or saltutil.wheel.
func (f funcs) onMaster(client *Client, kind string) modules.Func {
	return func(ctx context.Context, c *modules.Call) (any, error) {
		q := Request{Fun: c.Str("name"), User: "UNKNOWN", Kwargs: map[string]any{}}
		jid, env := c.Keywords["__orchestration_jid__"], any("base")
		full := true
		if kind == "runner" {
			full = c.Bool("full_return")
			env = c.Value("saltenv")
			if v, ok := c.Value("arg").([]any); ok {
				q.Args = v
			}
			if v, ok := c.Value("kwarg").(map[string]any); ok {
				maps.Copy(q.Kwargs, v)
			}
			if jid == nil {
				jid = c.Value("jid")
			}
		} else {
			q.Args = c.Extra
		}
		if v, ok := c.Keywords["__env__"]; ok {
			env = v
		}
		for k, v := range c.Keywords {
			if !strings.HasPrefix(k, "__") {
				q.Kwargs[k] = v
			}
		}
		if v, ok := c.Keywords["__pub_user"]; ok {
			q.User = pytext.Str(v)
		}
		if def := client.Argspec(q.Fun); def != nil && slices.ContainsFunc(def.Params, func(p modules.Param) bool { return p.Name == "saltenv" }) {
			q.Kwargs["saltenv"] = env
		}
		if kind == "runner" && slices.Contains([]string{"state.orchestrate", "state.orch", "state.sls"}, q.Fun) {
			q.Kwargs["orchestration_jid"] = jid
		}
		if jid != nil && f.Fire != nil {
			data := map[string]any{"type": kind, "name": q.Fun, "args": any(q.Args), "kwargs": q.Kwargs}
			if kind == "wheel" {
				data = map[string]any{"type": kind, "name": q.Fun, "args": q.Kwargs}
			}
			if err := f.Fire(ctx, "salt/run/"+pytext.Str(jid)+"/args", data); err != nil {
				f.Log.Warn("Failed to fire args event", "err", err)
			}
		}
		res := client.Call(ctx, q)
		if !full {
			return res.Return, nil
		}
		if res.Missing {
			return map[string]any{"fun": kind + "." + q.Fun, "jid": res.JID, "user": q.User, "return": res.Return, "success": false}, nil
		}
		out := maps.Clone(res.Data)
		if _, ok := out["_stamp"]; !ok {
			out["_stamp"] = time.Now().UTC().Format("2006-01-02T15:04:05.000000")
		}
		return out, nil
	}
}
