package cpmod

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// sender is a file server that has one file and takes files.
type sender struct {
	modulestest.NoFiles
	dir  string
	sent map[string]string
	full bool
	web  int
}

func (s *sender) Cache(_ context.Context, url, _ string) (string, error) {
	if url != "salt://web" && url != "https://example.com/web" {
		return "", nil
	}
	s.web++
	return filepath.Join(s.dir, "web"), nil
}

func (s *sender) CacheWeb(ctx context.Context, url, saltenv string, _ modules.WebFile) (string, error) {
	return s.Cache(ctx, url, saltenv)
}

func (s *sender) CachePath(string, string) string { return filepath.Join(s.dir, "web") }

func (s *sender) Send(_ context.Context, path, name string) (bool, error) {
	b, err := os.ReadFile(path)
	s.sent[name] = string(b)
	return err == nil && !s.full, err
}

func env(t *testing.T) (*modules.Env, *sender) {
	t.Helper()
	s := &sender{dir: t.TempDir(), sent: map[string]string{}}
	for name, text := range map[string]string{"web": "from the web", "d/a.conf": "a", "d/b": "b", "d/sub/c.conf": "c"} {
		full := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e := modulestest.Env(t)
	e.Root, e.Files = "", s
	return e, s
}

func run(t *testing.T, e *modules.Env, fun string, kwargs map[string]any, args ...any) any {
	t.Helper()
	res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: fun, Args: args, Kwargs: kwargs})
	if res.Err != nil {
		t.Fatalf("%s: %v", fun, res.Err)
	}
	return res.Return
}

func TestPush(t *testing.T) {
	e, s := env(t)
	dir, err := filepath.EvalSymlinks(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, e, "cp.push", map[string]any{"upload_path": "/up/x"}, dir+"/d/b"); got != true {
		t.Errorf("push: %v", got)
	}
	if got := run(t, e, "cp.push_dir", map[string]any{"glob": "*.conf", "upload_path": "/top/"}, dir+"/d"); got != true {
		t.Errorf("push_dir: %v", got)
	}
	if got := run(t, e, "cp.push", map[string]any{"remove_source": true}, dir+"/d/sub/c.conf"); got != true {
		t.Errorf("push and remove: %v", got)
	}
	if _, err := os.Stat(dir + "/d/sub/c.conf"); err == nil {
		t.Error("the source is still there")
	}
	want := map[string]string{"up/x": "b", "top/a.conf": "a", "top/sub/c.conf": "c", dir[1:] + "/d/sub/c.conf": "c"}
	if diff := cmp.Diff(want, s.sent); diff != "" {
		t.Error(diff)
	}
	s.full = true
	if got := run(t, e, "cp.push", nil, dir+"/d/b"); got != false {
		t.Errorf("push to a master that takes nothing: %v", got)
	}
}

func TestWeb(t *testing.T) {
	e, s := env(t)
	job := &modules.Context{}
	r := modules.NewRegistry(Module)
	for range 2 {
		res := r.Run(t.Context(), e, modules.Request{Fun: "cp.cache_file", Args: []any{"https://example.com/web"}, Context: job})
		if res.Return != filepath.Join(s.dir, "web") {
			t.Fatalf("cache_file: %v, %v", res.Return, res.Err)
		}
	}
	if s.web != 1 {
		t.Errorf("one job fetched the file %d times", s.web)
	}
	const sum = "md5=9c3da8db33e8c5d6de0ac1f3ff4d1e20"
	if got := run(t, e, "cp.cache_file", map[string]any{"source_hash": sum}, "https://example.com/web"); got != filepath.Join(s.dir, "web") || s.web != 2 {
		t.Errorf("with another hash: %v, fetched %d times", got, s.web)
	}
	if got := run(t, e, "cp.get_url", nil, "https://example.com/web", nil); got != "from the web" {
		t.Errorf("get_url: %v", got)
	}
	dest := filepath.Join(s.dir, "new", "x")
	if got := run(t, e, "cp.get_url", nil, "https://example.com/web", dest); got != "" {
		t.Errorf("get_url without the directory: %v", got)
	}
	if got := run(t, e, "cp.get_url", map[string]any{"makedirs": true}, "https://example.com/web", dest); got != dest {
		t.Errorf("get_url: %v", got)
	}
	if b, _ := os.ReadFile(dest); string(b) != "from the web" {
		t.Errorf("the file is %q", b)
	}
}

func TestTemplates(t *testing.T) {
	e, s := env(t)
	e.Templates = func(_ context.Context, _ *modules.Call, t modules.Template) (any, error) {
		engine, text, vars := t.Pipe, t.Text, t.Vars
		if engine != "jinja" {
			return nil, modules.ErrEngine
		}
		who, _ := vars["who"].(string)
		return "<" + text + who + ">", nil
	}
	dest := filepath.Join(s.dir, "t")
	if got := run(t, e, "cp.get_template", map[string]any{"who": "!"}, "salt://web", dest); got != dest {
		t.Errorf("get_template: %v", got)
	}
	info, err := os.Stat(dest)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if b, _ := os.ReadFile(dest); string(b) != "<from the web!>" {
		t.Errorf("the file is %q", b)
	}
	r := modules.NewRegistry(Module)
	if res := r.Run(t.Context(), e, modules.Request{Fun: "cp.get_template", Args: []any{"salt://web", dest, "mako"}}); res.Err == nil {
		t.Error("an engine that is not there renders")
	}
	if res := r.Run(t.Context(), e, modules.Request{Fun: "cp.get_file", Args: []any{"salt://web", dest}, Kwargs: map[string]any{"template": "jinja"}}); res.Err == nil {
		t.Errorf("the path <salt://web> is found: %v", res.Return)
	}
}
