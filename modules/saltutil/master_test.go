package saltutil

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

// host is a master that answers what a test wants.
type host struct {
	asked modules.MasterCall
	fired []any
	err   error
}

func (h *host) Call(_ context.Context, q modules.MasterCall) (map[string]any, error) {
	h.asked = q
	return map[string]any{"return": "value", "success": true}, h.err
}

func (h *host) Fire(_ context.Context, tag string, data map[string]any) error {
	h.fired = append(h.fired, tag, data)
	return nil
}

func TestCallsOfTheMaster(t *testing.T) {
	for name, c := range map[string]struct {
		fun    string
		args   []any
		kwargs map[string]any
		want   any
		asked  modules.MasterCall
		fired  []any
	}{
		"runner": {fun: "saltutil.runner", args: []any{"jobs.list_jobs"}, want: "value",
			asked: modules.MasterCall{Kind: "runner", Fun: "jobs.list_jobs", Args: []any{}, Kwargs: map[string]any{}, Saltenv: "base", User: "UNKNOWN"}},
		"arguments": {fun: "saltutil.runner", args: []any{"test.arg", []any{"1", "x=2"}, map[string]any{"a": "3"}, true, "dev"},
			kwargs: map[string]any{"b": "4", "__pub_user": "ada", "__pub_jid": "1"}, want: map[string]any{"return": "value", "success": true},
			asked: modules.MasterCall{Kind: "runner", Fun: "test.arg", Args: []any{int64(1)}, Kwargs: map[string]any{"x": int64(2), "a": "3", "b": "4"}, Saltenv: "dev", User: "ada"}},
		"orchestration": {fun: "saltutil.runner", args: []any{"state.orch"}, kwargs: map[string]any{"mods": "x", "__orchestration_jid__": "20250102030405678901", "__env__": "dev"},
			want: "value",
			asked: modules.MasterCall{Kind: "runner", Fun: "state.orch", Args: []any{}, Kwargs: map[string]any{"mods": "x", "orchestration_jid": "20250102030405678901"},
				Saltenv: "dev", User: "UNKNOWN"},
			fired: []any{"salt/run/20250102030405678901/args", map[string]any{"type": "runner", "name": "state.orch", "args": []any{},
				"kwargs": map[string]any{"mods": "x", "orchestration_jid": "20250102030405678901"}}}},
		"wheel": {fun: "saltutil.wheel", args: []any{"key.accept", "jerry"}, kwargs: map[string]any{"include_rejected": true}, want: map[string]any{"return": "value", "success": true},
			asked: modules.MasterCall{Kind: "wheel", Fun: "key.accept", Args: []any{"jerry"}, Kwargs: map[string]any{"include_rejected": true}, Saltenv: "base", User: "UNKNOWN"}},
	} {
		h := &host{}
		e := modulestest.Env(t)
		e.MasterHost = h
		if diff := cmp.Diff(c.want, call(t, e, c.fun, c.kwargs, c.args...)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(c.asked, h.asked); diff != "" {
			t.Errorf("%s asked %s", name, diff)
		}
		if diff := cmp.Diff(c.fired, h.fired); diff != "" {
			t.Errorf("%s fired %s", name, diff)
		}
	}
}

func TestErrorsOfTheMaster(t *testing.T) {
	const nobody = "This command can only be executed on a minion that is located on the master."
	broken := errors.New("broken")
	for _, c := range []struct {
		host modules.MasterHost
		want string
	}{
		{nil, nobody},
		{&host{err: modules.ErrNoMasterHere}, nobody},
		{&host{err: &modules.NotAvailableError{Fun: "no.such"}}, "KeyError: 'no.such'"},
		{&host{err: broken}, "broken"},
	} {
		for _, fun := range []string{"saltutil.runner", "saltutil.wheel"} {
			e := modulestest.Env(t)
			e.MasterHost = c.host
			res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: fun, Args: []any{"no.such"}})
			if res.Err == nil || res.Err.Error() != c.want {
				t.Errorf("%s: %v, want %q", fun, res.Err, c.want)
			}
		}
	}
}
