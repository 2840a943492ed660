package states_test

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

// TestStateLog: a run logs what stock logs about each state. Changes may hold ordered dictionaries anywhere.
func TestStateLog(t *testing.T) {
	ordered := func(keys ...string) *pyobj.Dict {
		d := &pyobj.Dict{}
		for _, key := range keys {
			if err := d.Set(key, int64(len(key))); err != nil {
				t.Fatal(err)
			}
		}
		return d
	}
	returns := func(name string, result states.Outcome, changes map[string]any) states.Def {
		return states.Def{Name: name, Params: []modules.Param{{Name: "name"}}, Run: func(_ context.Context, c *states.Call) (*states.Result, error) {
			return &states.Result{Name: c.Name(), Result: result, Changes: changes}, nil
		}}
	}
	mod := &states.Module{Name: "t", Funcs: []states.Def{
		returns("ordered", states.True, map[string]any{"ret": ordered("kwargs", "args"), "list": []any{ordered("b", "a")}}),
		returns("pairs", states.True, map[string]any{"ssh": ordered("old", "new"), "vim": map[string]any{"old": "", "new": "9"}}),
		returns("fails", states.False, nil),
	}}
	var log testlog.Buffer
	e := bare(t)
	e.Log = slog.New(slog.NewTextHandler(&log, nil))
	apply(t, e, parse(t, "a: {t: [ordered]}\nb: {t: [pairs]}\nc: {t: [fails, {retry: {attempts: 2, interval: 0}}]}"),
		states.Options{Registry: states.NewRegistry(mod)})
	line := regexp.MustCompile(`(?m)^time=\S+ level=(\S+) msg=(.*) jid=""$`)
	clock := regexp.MustCompile(`at time [0-9:.]+|in_ms=[0-9.]+`)
	got := clock.ReplaceAllString(line.ReplaceAllString(strings.TrimSpace(log.String()), "$1 $2"), "T")
	again := `INFO "Running state [c] T"
INFO "Executing state t.fails for [c]"
ERROR "No changes made for c"
INFO "Completed state [c] T (duration_T)"`
	want := `INFO "Running state [a] T"
INFO "Executing state t.ordered for [a]"
INFO "{'list': [{'b': 1, 'a': 1}], 'ret': {'kwargs': 6, 'args': 4}}"
INFO "Completed state [a] T (duration_T)"
INFO "Running state [b] T"
INFO "Executing state t.pairs for [b]"
INFO "Made the following changes:\n'ssh' changed from '3' to '3'\n'vim' changed from 'absent' to '9'\n"
INFO "Completed state [b] T (duration_T)"
` + again + `
INFO "State result does not match retry until value, state will be re-run in 0 seconds"
` + again
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
