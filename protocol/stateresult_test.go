package protocol_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/brine-salt/brine/protocol"
)

func TestStateResults(t *testing.T) {
	changes := map[string]any{"diff": "New file"}
	got := protocol.StateResults(map[string]any{
		"cmd_|-last_|-echo a_|-b_|-run": map[string]any{"result": false, "comment": "failed", "__run_num__": int64(2), "changes": map[string]any{}, "__sls__": "web", "__id__": "last"},
		"file_|-motd_|-/etc/motd_|-managed": map[string]any{"result": nil, "changes": changes, "__run_num__": int64(1), "duration": 1.5,
			"comment": "The file /etc/motd is set to be changed", "__sls__": "web", "__id__": "motd"},
		"test_|-first_|-first_|-nop": map[string]any{"result": true, "__run_num__": int64(0)},
	})
	want := []protocol.StateResult{
		{Tag: "test_|-first_|-first_|-nop", Function: "test.nop", ID: "first", Name: "first", OK: true},
		{Tag: "file_|-motd_|-/etc/motd_|-managed", Function: "file.managed", ID: "motd", Name: "/etc/motd", SLS: "web", Pending: true, Changes: changes,
			Comment: "The file /etc/motd is set to be changed", Duration: 1500 * time.Microsecond},
		{Tag: "cmd_|-last_|-echo a_|-b_|-run", Function: "cmd.run", ID: "last", Name: "echo a_|-b", SLS: "web", Changes: map[string]any{}, Comment: "failed"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(protocol.StateResult{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, ret := range map[string]any{"errors of rendering": []any{"Rendering SLS 'base:web' failed"}, "another dictionary": map[string]any{"eth0": map[string]any{}},
		"half a run": map[string]any{"test_|-a_|-a_|-nop": true}, "nothing": nil} {
		if got := protocol.StateResults(ret); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}
