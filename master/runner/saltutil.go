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
	"github.com/brine-salt/brine/protocol"
)

// MasterFunctions are the functions of the execution module "saltutil" that only a program with a master has. They are what the
// state module "salt" is made of (salt/modules/saltutil.py).
func MasterFunctions(h *Host, runners *Client) []modules.Def {
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

// Here is the host as its own functions reach it: saltutil.runner and saltutil.wheel on the master are calls in this process.
func Here(h *Host, runners, wheels *Client) modules.MasterHost {
	return here{h, map[string]*Client{"runner": runners, "wheel": wheels}}
}

type here struct {
	host    *Host
	clients map[string]*Client
}

func (h here) Fire(ctx context.Context, tag string, data map[string]any) error {
	if h.host.Fire == nil {
		return errNeeds("event bus")
	}
	return h.host.Fire(ctx, tag, data)
}

func (h here) Call(ctx context.Context, q modules.MasterCall) (map[string]any, error) {
	client := h.clients[q.Kind]
	if client == nil {
		return nil, errNeeds(q.Kind + " functions")
	}
	res := client.Call(ctx, Request{Fun: q.Fun, Args: q.Args, Kwargs: q.Kwargs, Saltenv: q.Saltenv, User: q.User})
	if res.Missing {
		return nil, &modules.NotAvailableError{Fun: q.Fun}
	}
	out := maps.Clone(res.Data)
	if _, ok := out["_stamp"]; !ok {
		out["_stamp"] = protocol.Stamp(time.Now())
	}
	return out, nil
}
