package heat

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

// TestSaltHandle: the handle of OS::Salt::WaitConditionHandle is signalled with an event, and an event that the
// master did not accept is an error.
func TestSaltHandle(t *testing.T) {
	var tag, data any
	answer := true
	event := &modules.Module{Name: "event", Funcs: []modules.Def{{Name: "send", Params: []modules.Param{{Name: "tag"}, {Name: "data"}},
		Run: func(_ context.Context, c *modules.Call) (any, error) {
			tag, data = c.Value("tag"), c.Value("data")
			return answer, nil
		}}}}
	r := modules.NewRegistry(Module, event)
	run := func() any {
		t.Helper()
		res := r.Run(t.Context(), &modules.Env{ID: "guest", Agent: &modulestest.Agent{}}, modules.Request{Fun: "heat.signal", Args: []any{`{"signal_transport": "SALT_SIGNAL", "tag": "heat/signal/x"}`},
			Kwargs: map[string]any{"data": `{"a": 1}`, "id": "b", "attempts": int64(1)}})
		if res.Err != nil {
			t.Fatal(res.Err)
		}
		return res.Return
	}
	if d := cmp.Diff(map[string]any{"result": true, "transport": "salt", "attempts": int64(1), "comment": ""}, run()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]any{"status": "SUCCESS", "id": "b", "data": map[string]any{"a": int64(1)}}, data); d != "" || tag != "heat/signal/x" {
		t.Error(tag, d)
	}
	answer = false
	if d := cmp.Diff(map[string]any{"result": false, "transport": "salt", "attempts": int64(1), "comment": "the master did not take the event"}, run()); d != "" {
		t.Error(d)
	}
	if _, err := ParseHandle(map[string]any{"signal_transport": "SALT_SIGNAL"}); err == nil {
		t.Error("a handle without a tag")
	}
}
