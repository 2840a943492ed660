package pyobj

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSettled: ordered values become plain wherever they are, and plain data is not copied.
func TestSettled(t *testing.T) {
	inside := map[string]any{"a": []any{int64(1), NewDict("z", []any{NewDict("y", int64(2))}, "b", map[string]any{"c": NewDict("d", nil)})}, "e": "x"}
	want := map[string]any{"a": []any{int64(1), map[string]any{"z": []any{map[string]any{"y": int64(2)}},
		"b": map[string]any{"c": map[string]any{"d": nil}}}}, "e": "x"}
	got, had := Settled(inside)
	if diff := cmp.Diff(any(want), got); diff != "" || !had {
		t.Error(had, diff)
	}
	if _, kept := inside["a"].([]any)[1].(*Dict); !kept {
		t.Error("the value itself was changed")
	}
	again, had := Settled(want)
	again.(map[string]any)["new"] = true
	if had || want["new"] != true {
		t.Error("plain data was copied", had)
	}
}
