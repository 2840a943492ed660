package beacon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
)

func TestInotify(t *testing.T) {
	dir := t.TempDir()
	h := &Host{Env: &modules.Env{ID: "m"}, Memory: map[string]any{}}
	config := []any{map[string]any{"files": map[string]any{dir: map[string]any{"mask": []any{"create", "modify", "delete", "delete_self"}, "recurse": true,
		"auto_add": true, "exclude": []any{dir + "/no"}}}}, map[string]any{"_beacon_name": "inotify"}}
	look := func() []map[string]any {
		t.Helper()
		found, err := lookInotify(t.Context(), h, config)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	event := func(at, name, change string) map[string]any {
		return map[string]any{"tag": filepath.Join(dir, at), "path": filepath.Join(dir, name), "change": change}
	}
	if found := look(); found != nil {
		t.Errorf("the first look finds %v", found)
	}
	write("a")
	write("no")
	if err := os.MkdirAll(filepath.Join(dir, "sub/deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{event("", "a", "IN_CREATE"), event("", "a", "IN_MODIFY"), event("", "sub", "IN_CREATE|IN_ISDIR"), event("sub", "sub/deep", "IN_CREATE|IN_ISDIR")}
	if diff := cmp.Diff(want, look()); diff != "" {
		t.Error(diff)
	}
	write("sub/deep/inner")
	if diff := cmp.Diff([]map[string]any{event("sub/deep", "sub/deep/inner", "IN_CREATE"), event("sub/deep", "sub/deep/inner", "IN_MODIFY")}, look()); diff != "" {
		t.Error(diff)
	}
	if err := os.RemoveAll(filepath.Join(dir, "sub")); err != nil {
		t.Fatal(err)
	}
	gone := map[string]bool{}
	for _, e := range look() {
		gone[e["path"].(string)+" "+e["change"].(string)] = true
	}
	for _, text := range []string{"/sub/deep/inner IN_DELETE", "/sub/deep IN_DELETE_SELF", "/sub/deep IN_IGNORED", "/sub IN_DELETE|IN_ISDIR"} {
		if !gone[dir+text] {
			t.Errorf("%s is missing in %v", text, gone)
		}
	}
	closeInotify(h, config)
	if len(h.Memory) != 0 {
		t.Error("the notifier is still there")
	}
}
