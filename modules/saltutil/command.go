package saltutil

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// newJob returns the job that the arguments of saltutil.cmd or saltutil.cmd_iter describe.
func newJob(c *modules.Call) (modules.MasterJob, error) {
	j := modules.MasterJob{Tgt: c.Value("tgt"), TgtType: c.Str("tgt_type"), Fun: c.Str("fun"), Ret: names(c.Value("ret")), Extra: map[string]any{},
		Expect: pytext.Truth(c.Keywords["expect_minions"])}
	if c.Bool("ssh") {
		return j, modules.Errorf("cannot reach minions by ssh: the master on this host has no ssh client")
	}
	if c.MasterHost == nil {
		return j, errSilentMaster()
	}
	v, given := c.InOrder("arg")
	if !given {
		v = pyobj.From(c.Value("arg"))
	}
	switch v := v.(type) {
	case nil:
	case *pyobj.List:
		j.Args = v.Items
	default:
		j.Args = []any{v}
	}
	var err error
	if c.Value("kwarg") != nil {
		if j.Kwargs, err = keywords(c); err != nil {
			return j, err
		}
	}
	if pytext.Truth(c.Value("timeout")) {
		if j.Timeout, err = c.Seconds("timeout"); err != nil {
			return j, err
		}
	}
	for _, name := range [...]string{"ret_config", "ret_kwargs"} {
		if v, ok := c.Keywords[name]; ok {
			j.Extra[name] = v
		}
	}
	return j, nil
}

// keywords returns the argument kwarg, with values that keep their order.
func keywords(c *modules.Call) (map[string]any, error) {
	if _, err := c.Map("kwarg"); err != nil {
		return nil, err
	}
	out := map[string]any{}
	v, _ := c.InOrder("kwarg")
	if d, ok := v.(*pyobj.Dict); ok {
		for k, x := range d.All() {
			out[pyobj.Str(k)] = x
		}
	}
	return out, nil
}

// names returns the names of returners in the form of a published job.
func names(v any) string {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var out []string
	for _, x := range list {
		if x != nil {
			out = append(out, pytext.Str(x))
		}
	}
	return strings.Join(out, ",")
}

// errSilentMaster returns the error of Salt's client for a master that does not respond.
func errSilentMaster() error {
	return &modules.PythonError{Type: "SaltClientError", Msg: "The salt master could not be contacted. Is master running?"}
}

// run publishes a job.
func run(ctx context.Context, c *modules.Call, j modules.MasterJob, each func(modules.MasterAnswer)) error {
	err := c.MasterHost.Run(ctx, j, each)
	if errors.Is(err, modules.ErrNoMasterHere) {
		return errSilentMaster()
	}
	return err
}

// cmdIter runs a job. Every answer is reported as it comes, and all of them are the result, as of every generator in Salt.
func cmdIter(ctx context.Context, c *modules.Call) (any, error) {
	j, err := newJob(c)
	if err != nil {
		return nil, err
	}
	out, meta := map[string]any{}, pytext.Truth(c.Keywords["_cmd_meta"])
	err = run(ctx, c, j, func(a modules.MasterAnswer) {
		out[a.ID] = shown(a, meta)
		c.Progress(map[string]any{a.ID: out[a.ID]})
	})
	return out, err
}

// cmd runs a job: at once, on some of the minions, or on a few at a time.
func cmd(ctx context.Context, c *modules.Call) (any, error) {
	j, err := newJob(c)
	if err != nil {
		return nil, err
	}
	out, meta := map[string]any{}, pytext.Truth(c.Keywords["_cmd_meta"])
	switch {
	case pytext.Truth(c.Keywords["batch"]):
		return batch(ctx, c, j, pytext.Str(c.Keywords["batch"]))
	case pytext.Truth(c.Keywords["subset"]):
		if j.Tgt, err = subset(ctx, c, j); err != nil {
			return nil, err
		}
		if len(j.Tgt.([]any)) == 0 {
			return out, nil
		}
		j.TgtType = "list"
	}
	err = run(ctx, c, j, func(a modules.MasterAnswer) { out[a.ID] = shown(a, meta) })
	return out, err
}

// shown returns an answer in the form of Salt's client. With meta it includes everything that came with the answer.
func shown(a modules.MasterAnswer, meta bool) map[string]any {
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

// subset picks some minions at random among those that have the function.
func subset(ctx context.Context, c *modules.Call, j modules.MasterJob) ([]any, error) {
	size, err := modules.ToInt(c.Keywords["subset"])
	if err != nil {
		return nil, err
	}
	var ids []any
	err = run(ctx, c, modules.MasterJob{Tgt: j.Tgt, TgtType: j.TgtType, Fun: "sys.list_functions"}, func(a modules.MasterAnswer) {
		if list, ok := a.Value.([]any); ok && slices.Contains(list, any(j.Fun)) {
			ids = append(ids, a.ID)
		}
	})
	if err != nil {
		return nil, err
	}
	rand.Shuffle(len(ids), func(a, b int) { ids[a], ids[b] = ids[b], ids[a] })
	return ids[:min(len(ids), max(1, int(size)))], nil
}

// batch runs a job on so many minions at a time, a number or a percentage of those that answer a ping. With failhard it ends with
// the first that fails.
func batch(ctx context.Context, c *modules.Call, j modules.MasterJob, size string) (any, error) {
	var ids []any
	err := run(ctx, c, modules.MasterJob{Tgt: j.Tgt, TgtType: j.TgtType, Fun: "test.ping", Timeout: j.Timeout}, func(a modules.MasterAnswer) { ids = append(ids, a.ID) })
	if err != nil {
		return nil, err
	}
	number, isPercent := strings.CutSuffix(strings.TrimPrefix(size, "%"), "%")
	isPercent = isPercent || strings.HasPrefix(size, "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(n >= 0 && n < 1e9) {
		return nil, modules.Usagef("Invalid batch data sent: %s\nData must be in the form of %%10, 10%% or 3", size)
	}
	if isPercent {
		n = n / 100 * float64(len(ids))
	}
	out, stop := map[string]any{}, pytext.Truth(c.Keywords["failhard"])
	for part := range slices.Chunk(ids, max(1, int(n))) {
		j.Tgt, j.TgtType = part, "list"
		failed := false
		err := run(ctx, c, j, func(a modules.MasterAnswer) {
			m := shown(a, false)
			delete(m, "jid")
			if a.Out == "" {
				m["out"] = "highstate"
			}
			out[a.ID] = m
			failed = failed || a.Failed || a.Retcode != 0
		})
		if err != nil {
			return nil, err
		}
		if failed && stop {
			break
		}
	}
	return out, nil
}
