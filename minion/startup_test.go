package minion

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
)

// TestStartupFailure: the first failed states in their order, or the text of the error, never more than an event should carry.
func TestStartupFailure(t *testing.T) {
	state := func(n int64, result any, comment string) map[string]any {
		return map[string]any{"__run_num__": n, "result": result, "comment": comment}
	}
	many := map[string]any{}
	for i := range 100 {
		many[fmt.Sprintf("cmd_|-%03d_|-x_|-run", i)] = state(int64(100-i), false, strings.Repeat("é", 4000))
	}
	base := func(more map[string]any) map[string]any {
		more["fun"], more["jid"], more["retcode"] = "state.sls", "7", int64(2)
		return more
	}
	for name, c := range map[string]struct {
		res  modules.Result
		want map[string]any
	}{
		"states": {modules.Result{Retcode: 2, Return: map[string]any{"b": state(0, false, "first"), "a": state(1, false, "second"), "c": state(2, true, "good"), "d": state(3, nil, "test")}},
			base(map[string]any{"comment": "first", "failed": int64(2), "states": []any{map[string]any{"state": "b", "comment": "first"}, map[string]any{"state": "a", "comment": "second"}}})},
		"errors of rendering": {modules.Result{Retcode: 2, Return: []any{"one", "two"}}, base(map[string]any{"comment": "one\ntwo"})},
		"an exception":        {modules.Result{Retcode: 2, Return: "text", Err: errors.New("cause")}, base(map[string]any{"comment": "text"})},
		"an error alone":      {modules.Result{Retcode: 2, Err: errors.New("cause")}, base(map[string]any{"comment": "cause"})},
	} {
		if d := cmp.Diff(c.want, startupFailure("state.sls", "7", c.res)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	got := startupFailure("state.sls", "7", modules.Result{Retcode: 2, Return: many})
	list := got["states"].([]any)
	first := list[0].(map[string]any)
	if len(list) != 20 || got["failed"] != int64(100) || first["state"] != "cmd_|-099_|-x_|-run" || len(first["comment"].(string)) != 515 {
		t.Error(len(list), got["failed"], first["state"], len(first["comment"].(string)))
	}
}
