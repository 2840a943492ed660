package environ

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func TestClearAll(t *testing.T) {
	t.Setenv("BRINE_KEEP", "old")
	t.Setenv("BRINE_GONE", "x")
	job, r, e := &modules.Context{}, modules.NewRegistry(Module), modulestest.Env(t)
	call := func(fun string, kwargs map[string]any, args ...any) any {
		t.Helper()
		res := r.Run(t.Context(), e, modules.Request{Fun: fun, Args: args, Kwargs: kwargs, Context: job})
		if res.Err != nil {
			t.Fatal(res.Err)
		}
		return res.Return
	}
	ret := call("environ.setenv", map[string]any{"clear_all": true, "false_unsets": true}, map[string]any{"BRINE_KEEP": "new"}).(map[string]any)
	if gone, ok := ret["BRINE_GONE"]; !ok || gone != nil || ret["BRINE_KEEP"] != "new" {
		t.Errorf("answer %v", ret)
	}
	if diff := cmp.Diff(map[string]any{"BRINE_KEEP": "new"}, call("environ.items", nil)); diff != "" {
		t.Error(diff)
	}
	job = &modules.Context{}
	if got := call("environ.get", nil, "BRINE_GONE"); got != "x" {
		t.Errorf("the next job finds %v", got)
	}
}
