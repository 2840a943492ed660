package grainsmod

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// minion is an environment with a configuration file, grains and a saltutil that counts.
func minion(t *testing.T) (*modules.Env, *modules.Registry, *int) {
	e := modulestest.Env(t)
	conf := "/etc/salt/minion"
	dir := filepath.Dir(e.Path(conf))
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(e.Path(conf), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	e.Opts = func() map[string]any { return map[string]any{"conf_file": conf} }
	e.Grains = func() map[string]any {
		return map[string]any{"os": "Debian", "list": []any{"a"}, "serialnumber": "12345678"}
	}
	count := new(int)
	saltutil := &modules.Module{Name: "saltutil", Funcs: []modules.Def{{Name: "refresh_grains", Kwargs: "kwargs",
		Run: func(_ context.Context, c *modules.Call) (any, error) { *count++; return true, nil }}}}
	return e, modules.NewRegistry(Module, saltutil), count
}

func TestSetWritesTheFileAndRefreshes(t *testing.T) {
	e, r, refreshed := minion(t)
	job := &modules.Context{}
	call := func(fun string, args ...any) any {
		res := r.Run(t.Context(), e, modules.Request{Fun: "grains." + fun, Args: args, Context: job})
		if res.Err != nil {
			t.Fatal(res.Err)
		}
		return res.Return
	}
	want := map[string]any{"result": true, "comment": "", "changes": map[string]any{"a": map[string]any{"b": int64(1)}}}
	if diff := cmp.Diff(want, call("set", "a:b", int64(1))); diff != "" {
		t.Error(diff)
	}
	call("append", "list", "b")
	text, err := os.ReadFile(e.Path("/etc/salt/grains"))
	if err != nil || string(text) != "a:\n  b: 1\nlist:\n- a\n- b\n" {
		t.Errorf("file %q, %v", text, err)
	}
	if *refreshed != 2 {
		t.Errorf("refreshed %d times", *refreshed)
	}
	if got := call("get", "a:b"); got != int64(1) {
		t.Errorf("the same job sees %v", got)
	}
	if got := r.Run(t.Context(), e, modules.Request{Fun: "grains.get", Args: []any{"a:b"}}).Return; got != "" {
		t.Errorf("a job before the refresh sees %v", got)
	}
	if diff := cmp.Diff([]any{"a"}, e.Grain("list")); diff != "" {
		t.Errorf("the program's grains were changed: %s", diff)
	}
}

func TestALinkedFileStaysLinked(t *testing.T) {
	e, r, _ := minion(t)
	real, link := e.Path("/real"), e.Path("/etc/salt/grains")
	if err := errors.Join(os.WriteFile(real, []byte("x: 1\n"), 0o640), os.Symlink(real, link)); err != nil {
		t.Fatal(err)
	}
	r.Run(t.Context(), e, modules.Request{Fun: "grains.setval", Args: []any{"y", "z"}})
	text, err := os.ReadFile(real)
	info, err2 := os.Lstat(link)
	mode, err3 := os.Stat(real)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	if string(text) != "x: 1\ny: z\n" || info.Mode()&os.ModeSymlink == 0 || mode.Mode().Perm() != 0o640 {
		t.Errorf("%q, %v, %v", text, info.Mode(), mode.Mode())
	}
}

func TestABrokenFileIsLeftAlone(t *testing.T) {
	e, r, _ := minion(t)
	file := e.Path("/etc/salt/grains")
	if err := os.WriteFile(file, []byte("a: ["), 0o644); err != nil {
		t.Fatal(err)
	}
	res := r.Run(t.Context(), e, modules.Request{Fun: "grains.setval", Args: []any{"y", "z"}})
	if text, _ := res.Return.(string); len(text) < 40 || text[:37] != "Unable to read existing grains file: " {
		t.Errorf("got %v", res.Return)
	}
	if text, _ := os.ReadFile(file); string(text) != "a: [" {
		t.Errorf("file %q", text)
	}
}

func TestSanitize(t *testing.T) {
	e, r, _ := minion(t)
	res := r.Run(t.Context(), e, modules.Request{Fun: "grains.item", Args: []any{"serialnumber", "os"}, Kwargs: map[string]any{"sanitize": "True"}})
	if diff := cmp.Diff(map[string]any{"serialnumber": "123456XX", "os": "Debian"}, res.Return); diff != "" {
		t.Error(diff)
	}
}
