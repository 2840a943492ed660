package state

import (
	"context"
	"os"
	"path/filepath"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// idText returns the argument state_id, or "" for all states.
func idText(c *modules.Call) string {
	if v := c.Value("state_id"); v != nil {
		return pytext.Str(v)
	}
	return ""
}

// entry returns the pause for one state id from the pauses of a job.
func entry(data map[string]any, id string) map[string]any {
	m, _ := data[id].(map[string]any)
	if m == nil {
		m = map[string]any{}
		data[id] = m
	}
	return m
}

func pause(_ context.Context, c *modules.Call) (any, error) {
	var seconds int64
	if c.Bool("duration") {
		n, err := c.Int("duration")
		if err != nil {
			return nil, err
		}
		seconds = n
	}
	return nil, states.ChangePause(c.Env, c.Str("jid"), idText(c), func(data map[string]any, id string) {
		m := entry(data, id)
		if c.Bool("duration") {
			m["duration"] = seconds
		}
	})
}

func softKill(_ context.Context, c *modules.Call) (any, error) {
	return nil, states.ChangePause(c.Env, c.Str("jid"), idText(c), func(data map[string]any, id string) { entry(data, id)["kill"] = true })
}

func resume(_ context.Context, c *modules.Call) (any, error) {
	all := idText(c) == ""
	return nil, states.ChangePause(c.Env, c.Str("jid"), idText(c), func(data map[string]any, id string) {
		if all {
			clear(data)
		}
		delete(data, id)
	})
}

func getPauses(ctx context.Context, c *modules.Call) (any, error) {
	ret := map[string]any{}
	dir := states.PauseDir(c.Env)
	found, err := os.ReadDir(dir)
	if err != nil {
		return ret, nil //nolint:nilerr // no directory, no pauses
	}
	var jids []string
	switch v := c.Value("jid").(type) {
	case nil:
		for _, e := range found {
			jids = append(jids, e.Name())
		}
	case []any:
		jids = textsOf(v)
	default:
		jids = []string{pytext.Str(v)}
	}
	active := map[string]bool{}
	if v, err := c.Exec(ctx, "saltutil.is_running", "state.*"); err == nil {
		list, _ := v.([]any)
		for _, x := range list {
			if job, ok := x.(map[string]any); ok {
				active[pytext.Str(job["jid"])] = true
			}
		}
	}
	for _, jid := range jids {
		if !active[jid] {
			_ = os.Remove(filepath.Join(dir, filepath.Base(jid))) // what is left of a run that ended
			continue
		}
		data, err := states.ReadPause(c.Env, jid)
		if err != nil {
			return nil, err
		}
		ret[jid] = data
	}
	return ret, nil
}
