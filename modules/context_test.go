package modules

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules/pyobj"
)

func TestTheCallsOfAJobShareAContext(t *testing.T) {
	var seen []string
	look := func(_ context.Context, c *Call) (any, error) {
		v, _ := c.Context().Getenv("BRINE_CTX")
		seen = append(seen, v)
		return c.Grain("site"), nil
	}
	m := &Module{Name: "ctx", Funcs: []Def{
		{Name: "set", Run: func(ctx context.Context, c *Call) (any, error) {
			c.Context().Setenv("BRINE_CTX", "1")
			c.Context().Set("k", "v")
			c.Context().SetGrain("site", "lab")
			c.Context().DropGrain("gone")
			c.SetRetcode(3)
			if _, err := c.Exec(ctx, "ctx.ok"); err != nil {
				return nil, err
			}
			return c.Exec(ctx, "ctx.look")
		}},
		{Name: "ok", Run: func(_ context.Context, c *Call) (any, error) { c.SetRetcode(0); return true, nil }},
		{Name: "look", Run: look},
		{Name: "fails", Run: func(_ context.Context, c *Call) (any, error) { c.SetRetcode(7); return nil, Errorf("no") }},
	}}
	r := NewRegistry(m)
	e := &Env{Grains: func() map[string]any { return map[string]any{"gone": 1, "os": "x"} }}
	job := &Context{}
	if res := r.Run(t.Context(), e, Request{Fun: "ctx.set", Context: job}); res.Return != "lab" || res.Retcode != 0 {
		t.Errorf("got %+v", res)
	}
	if res := r.Run(t.Context(), e, Request{Fun: "ctx.look", Context: job}); res.Return != "lab" {
		t.Errorf("the same job: %+v", res)
	}
	if res := r.Run(t.Context(), e, Request{Fun: "ctx.look"}); res.Return != nil {
		t.Errorf("another job: %+v", res)
	}
	if diff := cmp.Diff([]string{"1", "1", ""}, seen); diff != "" {
		t.Error(diff)
	}
	if v, _ := job.Get("k"); v != "v" {
		t.Errorf("value %v", v)
	}
	if _, ok := e.GrainData()["gone"]; !ok {
		t.Error("the program's grains were changed")
	}
	if res := r.Run(t.Context(), e, Request{Fun: "ctx.fails"}); res.Retcode != 1 {
		t.Errorf("a failed function's retcode is %d", res.Retcode)
	}
}

func TestEnviron(t *testing.T) {
	t.Setenv("BRINE_HERE", "yes")
	var x Context
	x.Setenv("B", "2=3")
	x.Setenv("A", "")
	x.Unsetenv("BRINE_HERE")
	if diff := cmp.Diff([]string{"A=", "B=2=3", "BRINE_HERE"}, x.Environ()); diff != "" {
		t.Error(diff)
	}
	if _, ok := x.Getenv("BRINE_HERE"); ok || os.Getenv("BRINE_HERE") != "yes" {
		t.Error("removed from the process, or not from the job")
	}
	if v, ok := x.Getenv("A"); v != "" || !ok {
		t.Error("an empty variable is not set")
	}
}

func TestToInt(t *testing.T) {
	good := map[any]int64{int64(5): 5, true: 1, 1.9: 1, -1.9: -1, " 1_000 ": 1000, "-7": -7, "+7": 7}
	for in, want := range good {
		if got, err := ToInt(in); err != nil || got != want {
			t.Errorf("%v: %d, %v", in, got, err)
		}
	}
	bad := []struct {
		in   any
		text string
	}{
		{"x", "ValueError: invalid literal for int() with base 10: 'x'"}, {"", "ValueError: invalid literal for int() with base 10: ''"},
		{"1__0", "ValueError: invalid literal for int() with base 10: '1__0'"}, {"1.5", "ValueError: invalid literal for int() with base 10: '1.5'"},
		{nil, "int() argument must be a string, a bytes-like object or a real number, not 'NoneType'"},
		{[]any{}, "int() argument must be a string, a bytes-like object or a real number, not 'list'"},
		{"99999999999999999999", "OverflowError: Python int too large to convert to C long"},
	}
	for _, c := range bad {
		if _, err := ToInt(c.in); err == nil || err.Error() != c.text {
			t.Errorf("%v: %v", c.in, err)
		}
	}
}

func TestOSError(t *testing.T) {
	_, err := os.Open("/brine/no/such")
	cases := []struct {
		err  error
		want string
	}{
		{err, "FileNotFoundError: [Errno 2] No such file or directory: '/brine/no/such'"},
		{&fs.PathError{Op: "open", Path: "it's", Err: syscall.EACCES}, `PermissionError: [Errno 13] Permission denied: "it's"`},
		{&os.LinkError{Op: "rename", Old: "a", New: "b", Err: syscall.EISDIR}, "IsADirectoryError: [Errno 21] Is a directory: 'a' -> 'b'"},
		{errors.New("plain"), "plain"},
	}
	if runtime.GOOS == "windows" {
		t.Skip("the numbers are Unix's")
	}
	for _, c := range cases {
		if got := OSError(c.err); got.Error() != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
	if OSError(nil) != nil {
		t.Error("no error became one")
	}
}

func TestWhich(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("programs are found by their extension there")
	}
	e := &Env{Root: t.TempDir()}
	for name, mode := range map[string]os.FileMode{"opt/a": 0o755, "usr/bin/a": 0o755, "usr/bin/b": 0o755, "opt/b": 0o644, "usr/bin/d/x": 0o755} {
		file := filepath.Join(e.Root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, mode)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", "/opt")
	for name, want := range map[string]string{"a": "/opt/a", "b": "/usr/bin/b", "c": "", "d": "", "": "", "/usr/bin/a": "/usr/bin/a", "/opt/b": "", "a\x00": ""} {
		if got := e.Which(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}

func TestAModuleMayAskTheRegistryWhetherItIsAvailable(t *testing.T) {
	var r *Registry
	asked := 0
	r = NewRegistry(
		&Module{Name: "aptpkg", Virtual: "pkg", Available: func(*Env) (bool, string) { return false, "no apt" }, Funcs: []Def{{Name: "x", Run: probe}}},
		&Module{Name: "rpmpkg", Virtual: "pkg", Available: func(e *Env) (bool, string) {
			asked++
			_, err := r.Lookup("probe.none", e)
			return err == nil, "no probe"
		}, Funcs: []Def{{Name: "x", Run: func(context.Context, *Call) (any, error) { return "rpm", nil }}}}, probeModule)
	for range 3 {
		if res := r.Run(t.Context(), &Env{}, Request{Fun: "pkg.x"}); res.Return != "rpm" {
			t.Errorf("got %+v", res)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	r.Reset()
	r.Run(t.Context(), &Env{}, Request{Fun: "pkg.x"})
	if asked != 2 {
		t.Errorf("asked %d times after a reset", asked)
	}
}

// What is wrong is taken out of the cache; a file of the user is not.
func TestUncache(t *testing.T) {
	dir := t.TempDir()
	e := &Env{Opts: func() map[string]any { return map[string]any{"cachedir": "/cache"} }, Root: dir}
	c := &Call{Env: e}
	for _, f := range []string{"cache/files/a", "cache2/b", "own"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/" + f, "/cache/../" + f} {
			c.Uncache(path)
		}
		if _, err := os.Stat(filepath.Join(dir, f)); (err == nil) != (f != "cache/files/a") {
			t.Errorf("%s: %v", f, err)
		}
	}
	c.Uncache("")
}

// TestExecIsPlain: a caller of another function gets no ordered value, however deep, unless it asks for the result as given.
func TestExecIsPlain(t *testing.T) {
	given := map[string]any{"state": map[string]any{"changes": pyobj.NewDict("old", "a", "new", "b")}}
	plain := map[string]any{"state": map[string]any{"changes": map[string]any{"old": "a", "new": "b"}}}
	r := NewRegistry(&Module{Name: "order", Funcs: []Def{
		{Name: "given", Run: func(context.Context, *Call) (any, error) { return given, nil }},
		{Name: "calls", Run: func(ctx context.Context, c *Call) (any, error) {
			v, err := c.Exec(ctx, "order.given")
			if d := cmp.Diff(any(plain), v); d != "" || err != nil {
				t.Error(d, err)
			}
			return c.ExecAsGiven(ctx, "order.given", nil, nil)
		}},
	}})
	res := r.Run(t.Context(), &Env{}, Request{Fun: "order.calls"})
	if d := cmp.Diff(any(plain), res.Return); d != "" {
		t.Error(d)
	}
	got := res.AsGiven().(map[string]any)["state"].(map[string]any)["changes"]
	if d, ok := got.(*pyobj.Dict); !ok || pyobj.Repr(d) != "{'old': 'a', 'new': 'b'}" {
		t.Errorf("%T %v", got, got)
	}
}
