package output

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules/pyobj"
)

// TestCompressKeepsOrderedChanges: the changes of combined states are collected by name, whether they are plain or
// ordered.
func TestCompressKeepsOrderedChanges(t *testing.T) {
	record := func(name string, number int64, changes any) map[string]any {
		return map[string]any{"name": name, "__id__": "id", "__sls__": "t", "__run_num__": number, "result": true, "changes": changes,
			"duration": 1.5, "start_time": "10:00:00"}
	}
	first, second := pyobj.NewDict("old", "a", "new", "b"), map[string]any{"new": "c"}
	got := compressIDs(map[string]any{
		"file_|-id_|-one_|-managed": record("one", 0, first),
		"file_|-id_|-two_|-managed": record("two", 1, second),
	}).(map[string]any)["file_|-id (2)_|-state_compressed_t_id_True_|-managed"].(map[string]any)
	inner := got["changes"].(map[string]any)["compressed changes"].(map[string]any)
	if inner["one"] != any(first) || cmp.Diff(any(second), inner["two"]) != "" || len(inner) != 2 || got["duration"] != 3.0 {
		t.Errorf("%v", got)
	}
}
