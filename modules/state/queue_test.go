package state_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/modules/state"
	_ "github.com/brine-salt/brine/states/test"
)

// TestOneRunAtATime: a second state run is refused, in Salt's words, or waits, or is let in, as the caller and the configuration say.
func TestOneRunAtATime(t *testing.T) {
	const own, other = "20250102030405678901", "20250102030304000005"
	conflict := []any{`The function "state.apply" is running as PID 42 and was started at 2025, Jan 02 03:03:04.000005 with jid ` + other}
	for name, c := range map[string]struct {
		jid    string         // of the run that is there, "" for none
		rounds int64          // how often it is seen before it ends, 0 for always
		kwargs map[string]any // of the call
		option any            // state_queue
		want   any            // a conflict, or nil for a run
	}{
		"nobody":                      {},
		"it is this one":              {jid: own},
		"refused":                     {jid: other, want: conflict},
		"concurrent":                  {jid: other, kwargs: map[string]any{"concurrent": true}},
		"queue":                       {jid: other, rounds: 3, kwargs: map[string]any{"queue": true}},
		"state_queue":                 {jid: other, rounds: 3, option: true},
		"state_queue is a number":     {jid: other, rounds: 3, option: int64(2)},
		"queue is full":               {jid: other, kwargs: map[string]any{"queue": int64(1)}, want: conflict},
		"queue has room":              {jid: other, rounds: 3, kwargs: map[string]any{"queue": int64(2)}},
		"queue against state_queue":   {jid: other, option: true, kwargs: map[string]any{"queue": false}, want: conflict},
		"not queue, not state_queue":  {jid: other, option: false, want: conflict},
		"what is no switch counts no": {jid: other, kwargs: map[string]any{"queue": "yes"}, want: conflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			saltutil := &modules.Module{Name: "saltutil", Funcs: []modules.Def{{Name: "is_running", Params: []modules.Param{{Name: "fun"}}, Run: func(_ context.Context, call *modules.Call) (any, error) {
				if n := asked.Add(1); c.jid == "" || c.rounds > 0 && n > c.rounds || call.Str("fun") != "state.*" {
					return []any{}, nil
				}
				return []any{map[string]any{"jid": c.jid, "fun": "state.apply", "pid": int64(42)}}, nil
			}}}}
			config := &modules.Module{Name: "config", Funcs: []modules.Def{{Name: "option", Params: []modules.Param{{Name: "value"}, {Name: "default", Optional: true}},
				Run: func(_ context.Context, call *modules.Call) (any, error) {
					if call.Str("value") == "state_queue" && c.option != nil {
						return c.option, nil
					}
					return call.Value("default"), nil
				}}}}
			kwargs := map[string]any{"name": "x"}
			for k, v := range c.kwargs {
				kwargs[k] = v
			}
			job := &modules.Context{}
			res := modules.NewRegistry(state.Module, saltutil, config).Run(t.Context(), modulestest.Env(t),
				modules.Request{Fun: "state.single", JID: own, Args: []any{"test.nop"}, Kwargs: kwargs, Context: job})
			if c.want != nil {
				if d := cmp.Diff(c.want, res.Return); d != "" || job.Retcode() != 1 {
					t.Errorf("retcode %d, -want +got:\n%s", job.Retcode(), d)
				}
				return
			}
			all, _ := res.Return.(map[string]any)
			rec, _ := all["test_|-x_|-x_|-nop"].(map[string]any)
			if rec["result"] != true || job.Retcode() != 0 || c.rounds > 0 && asked.Load() <= c.rounds {
				t.Errorf("%v, retcode %d, looked %d times", res.Return, job.Retcode(), asked.Load())
			}
		})
	}
}

// TestACancelledRunLeavesTheQueue: those behind it do not wait for it.
func TestACancelledRunLeavesTheQueue(t *testing.T) {
	const own, other = "20250102030405678902", "20250102030304000006"
	ctx, cancel := context.WithCancel(t.Context())
	running := map[string]any{"jid": other, "fun": "state.apply", "pid": int64(42)}
	looks := 0
	env := modulestest.Env(t)
	env.WaitingRuns = new(modules.WaitingRuns)
	saltutil := &modules.Module{Name: "saltutil", Funcs: []modules.Def{{Name: "is_running", Params: []modules.Param{{Name: "fun"}}, Run: func(context.Context, *modules.Call) (any, error) {
		if looks++; looks == 2 {
			cancel()
		}
		return []any{running}, nil
	}}}}
	run := func(ctx context.Context, jid string) modules.Result {
		return modules.NewRegistry(state.Module, saltutil).Run(ctx, env,
			modules.Request{Fun: "state.single", JID: jid, Args: []any{"test.nop"}, Kwargs: map[string]any{"name": "x", "queue": true}})
	}
	if res := run(ctx, own); res.Err == nil {
		t.Fatalf("a cancelled run ended with %v", res.Return)
	}
	// Now the one that gave up is all that runs: it is not in the queue, and not in the way.
	running = map[string]any{"jid": "20250102030405678903", "fun": "state.apply", "pid": int64(42)}
	if left := env.WaitingRuns.All(); len(left) != 0 {
		t.Errorf("%v wait", left)
	}
	if res := run(t.Context(), "20250102030405678903"); res.Err != nil {
		t.Errorf("%v %v", res.Return, res.Err)
	}
}

// TestRunsOfAnotherMinionAreNotInTheWay: a process may hold several minions, and a run that waits in one does not count in another.
func TestRunsOfAnotherMinionAreNotInTheWay(t *testing.T) {
	const first, second = "20250102030405678904", "20250102030405678905"
	both := []any{map[string]any{"jid": first, "fun": "state.apply", "pid": int64(42)},
		map[string]any{"jid": second, "fun": "state.apply", "pid": int64(42)}}
	saltutil := &modules.Module{Name: "saltutil", Funcs: []modules.Def{{Name: "is_running", Params: []modules.Param{{Name: "fun"}},
		Run: func(context.Context, *modules.Call) (any, error) { return both, nil }}}}
	run := func(waiting *modules.WaitingRuns) modules.Result {
		env := modulestest.Env(t)
		env.WaitingRuns = waiting
		return modules.NewRegistry(state.Module, saltutil).Run(t.Context(), env,
			modules.Request{Fun: "state.running", JID: second, Context: &modules.Context{}})
	}
	here, elsewhere := new(modules.WaitingRuns), new(modules.WaitingRuns)
	elsewhere.Join(first)
	for name, c := range map[string]struct {
		waiting *modules.WaitingRuns
		runs    int
	}{"here": {here, 1}, "the minion where it waits": {elsewhere, 0}} {
		res := run(c.waiting)
		if list, ok := res.Return.([]any); !ok || len(list) != c.runs {
			t.Errorf("%s: %v %v, want %d runs in the way", name, res.Return, res.Err, c.runs)
		}
	}
	elsewhere.Leave(first)
	if left := elsewhere.All(); len(left) != 0 {
		t.Errorf("%v wait after the last has left", left)
	}
}
