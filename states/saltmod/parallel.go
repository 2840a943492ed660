package saltmod

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

// maxParallel bounds the runners of one state that run at once.
const maxParallel = 64

func parallelRunners(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	runners, ok := c.Value("runners").(map[string]any)
	if s, text := c.Value("runners").(string); text {
		runners, ok = map[string]any{s: []any{map[string]any{c.Name(): s}}}, true
	}
	if !ok {
		return ret.As(states.False, "The runners parameter must be a string or dict.")
	}
	ids := slices.Sorted(maps.Keys(runners))
	outs := make([]any, len(ids))
	errs := make([]error, len(ids))
	slots := make(chan struct{}, maxParallel)
	var wg sync.WaitGroup
	for i, id := range ids {
		d, _ := nested.Repack(pyobj.From(runners[id]))
		config := pyobj.PlainMap(d)
		name := id
		if v, ok := config["name"]; ok {
			name = pytext.Str(v)
		}
		kw, _ := config["kwarg"].(map[string]any)
		kw = maps.Clone(kw)
		if kw == nil {
			kw = map[string]any{}
		}
		maps.Copy(kw, map[string]any{"__orchestration_jid__": orchestration(c), "__env__": c.Saltenv(), "full_return": true})
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			outs[i], errs[i] = c.ExecKw(ctx, "saltutil.runner", []any{name}, kw)
		})
	}
	wg.Wait()
	for _, err := range errs {
		var usage *modules.UsageError
		if modules.IsExecError(err) || errors.As(err, &usage) {
			ret.Extra = map[string]any{"success": false}
			return ret.As(states.False, "One of the runners raised an exception: "+states.ErrorText(err))
		}
		if err != nil {
			return nil, err
		}
	}
	answers := make(map[string]any, len(ids))
	highstate := true
	for i, id := range ids {
		full, _ := outs[i].(map[string]any)
		answers[id] = full["return"]
		m, _ := full["return"].(map[string]any)
		_, has := m["data"]
		highstate = highstate && has && m["outputter"] == "highstate"
	}
	var failed []string
	if highstate {
		changes := map[string]any{}
		for _, id := range ids {
			data := answers[id].(map[string]any)["data"]
			if m, ok := data.(map[string]any); ok && pytext.Truth(m["retcode"]) {
				failed = append(failed, id)
			}
			if found := extract(data); pytext.Truth(found) {
				changes[id] = found
			}
		}
		ret.Changes = changes
	} else {
		for _, id := range ids {
			m, ok := answers[id].(map[string]any)
			if !ok {
				return nil, modules.NoAttribute(answers[id], "get")
			}
			if pytext.Truth(m["exit_code"]) {
				failed = append(failed, id)
			}
		}
		ret.Changes = map[string]any{"ret": answers}
	}
	switch {
	case len(failed) == 0:
		return ret.As(states.True, "All runner functions executed successfully.")
	case len(failed) == 1:
		return ret.As(states.False, "Runner "+failed[0]+" failed.")
	}
	return ret.As(states.False, "Runners "+strings.Join(failed, ", ")+" failed.")
}

// extract finds the changes in the data of an orchestration.
func extract(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return map[string]any{}
	}
	if changes, ok := m["changes"]; ok {
		if c, ok := changes.(map[string]any); ok && c["out"] == "highstate" && c["ret"] != nil {
			return c["ret"]
		}
		return changes
	}
	found := map[string]any{}
	for k, x := range m {
		if c := extract(x); pytext.Truth(c) {
			found[k] = c
		}
	}
	return found
}
