//go:build unix

package file

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

// tree is a host with files, and a call of a function on it.
func tree(t *testing.T, files map[string]string) (root string, run func(fun string, args []any, kwargs map[string]any) modules.Result) {
	t.Helper()
	e := modulestest.Env(t)
	for name, content := range files {
		full := filepath.Join(e.Root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	r := modules.NewRegistry(Module)
	return e.Root, func(fun string, args []any, kwargs map[string]any) modules.Result {
		t.Helper()
		return r.Run(t.Context(), e, modules.Request{Fun: fun, Args: args, Kwargs: kwargs})
	}
}

// testMode is tree with the option test.
func testMode(t *testing.T, files map[string]string) (root string, run func(fun string, args []any, kwargs map[string]any) modules.Result) {
	t.Helper()
	root, _ = tree(t, files)
	e := modulestest.Env(t)
	e.Root = root
	opts := e.Opts()
	opts["test"] = true
	r := modules.NewRegistry(Module)
	return root, func(fun string, args []any, kwargs map[string]any) modules.Result {
		t.Helper()
		return r.Run(t.Context(), e, modules.Request{Fun: fun, Args: args, Kwargs: kwargs})
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTestModeChangesNothing(t *testing.T) {
	root, run := testMode(t, map[string]string{"f": "a\nb\n"})
	res := run("file.check_perms", []any{"/f", nil, nil, nil, "0600"}, nil)
	want := []any{
		map[string]any{"name": "/f", "changes": map[string]any{"mode": "0600"}, "comment": "", "result": nil},
		map[string]any{"luser": res.Return.([]any)[1].(map[string]any)["luser"], "lgroup": res.Return.([]any)[1].(map[string]any)["lgroup"], "lmode": "0644"},
	}
	if diff := cmp.Diff(want, res.Return); diff != "" {
		t.Error(diff)
	}
	res = run("file.line", []any{"/f", "c", "b", "replace"}, nil)
	if want := "--- \n+++ \n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"; res.Return != want {
		t.Errorf("line: %v", res.Return)
	}
	res = run("file.manage_file", []any{"/new", nil, nil, nil, nil, nil, nil, nil, nil, "base", nil}, nil)
	if _, err := os.Stat(filepath.Join(root, "new")); err == nil || res.Success {
		t.Errorf("manage_file: %v; the file is there: %v", res.Return, err)
	}
	if got := content(t, filepath.Join(root, "f")); got != "a\nb\n" {
		t.Errorf("the file has %q", got)
	}
	if info, _ := os.Stat(filepath.Join(root, "f")); info.Mode().Perm() != 0o644 {
		t.Errorf("the file's mode is %v", info.Mode())
	}
}

func TestManagedContent(t *testing.T) {
	root, run := tree(t, map[string]string{"f": "old\n"})
	res := run("file.manage_file", []any{"/f", nil, nil, nil, nil, nil, nil, "0640", nil, "base", "minion"}, map[string]any{"contents": "new\n"})
	want := map[string]any{
		"name": "/f", "result": true, "comment": "File /f updated",
		"changes": map[string]any{"diff": "--- \n+++ \n@@ -1 +1 @@\n-old\n+new\n", "mode": "0640"},
	}
	if diff := cmp.Diff(want, res.Return); diff != "" {
		t.Error(diff)
	}
	if got := content(t, filepath.Join(root, "f")); got != "new\n" {
		t.Errorf("the file has %q", got)
	}
	left, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if e.Name() != "f" && !e.IsDir() {
			t.Errorf("left over: %s", e.Name())
		}
	}
}

// TestBackup finds the copy of the old file where the module lists it.
func TestBackup(t *testing.T) {
	e := modulestest.Env(t)
	cache := e.Opts()["cachedir"].(string)
	e.Opts()["cachedir"] = "/cache"
	defer func() { e.Opts()["cachedir"] = cache }()
	if err := os.WriteFile(filepath.Join(e.Root, "f"), []byte("old\n"), 0o604); err != nil {
		t.Fatal(err)
	}
	r := modules.NewRegistry(Module)
	r.Run(t.Context(), e, modules.Request{
		Fun: "file.manage_file", Args: []any{"/f", nil, nil, nil, nil, nil, nil, nil, nil, "base", "minion"}, Kwargs: map[string]any{"contents": "new\n"},
	})
	kept, err := filepath.Glob(filepath.Join(e.Root, "cache", "file_backup", "f_*_*_*_*_*_*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("backups %q, %v", kept, err)
	}
	if _, ok := backupTime(filepath.Base(kept[0]), "f"); !ok {
		t.Errorf("the name %s tells no time", kept[0])
	}
	if got := content(t, kept[0]); got != "old\n" {
		t.Errorf("the backup has %q", got)
	}
}

// TestReplaceLeavesTheFileAlone looks at files that cannot be edited.
func TestReplaceLeavesTheFileAlone(t *testing.T) {
	root, run := tree(t, map[string]string{"f": "aa\n"})
	for _, args := range [][]any{{"/f", "(", "x"}, {"/f", "a", `\2`}, {"/f", "a", "x", "many"}} {
		if res := run("file.replace", args, nil); res.Err == nil {
			t.Errorf("%v: %v", args, res.Return)
		}
	}
	if left, _ := os.ReadDir(root); len(left) != 1 || content(t, filepath.Join(root, "f")) != "aa\n" {
		t.Errorf("left over: %v", left)
	}
}

func FuzzExtractHash(f *testing.F) {
	f.Add("401b30e3b8b5d629635a5c613cdb7919  a.tgz\n", "a.tgz")
	f.Fuzz(func(t *testing.T, text, name string) {
		if len(text) > 2000 {
			return
		}
		if m, err := hashIn(text, "", name, nil, nil); err == nil && m != nil && hashOfLength(len(m["hsum"].(string))) != m["hash_type"] {
			t.Errorf("%q: %v", text, m)
		}
	})
}
