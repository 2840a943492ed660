package minion

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

func (r *rig) call(q CallOptions) (modules.Result, error) {
	r.t.Helper()
	r.o.Opts = r.opts
	r.o.Registry = modules.NewRegistry(testModule, utilModule)
	m, err := New(r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	return m.Call(r.t.Context(), q)
}

func TestCallWithMaster(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, nil)
		res, err := r.call(CallOptions{Fun: "test.pillar", Metadata: map[string]any{"a": "b"}})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, any(map[string]any{"color": "blue"}), res.Return)
		got := f.await("return", isReturn("req"))
		delete(got, "ts")
		equal(t, map[string]any{"cmd": "_return", "id": "alpha", "jid": "req", "fun": "test.pillar", "fun_args": []any{},
			"return": map[string]any{"color": "blue"}, "retcode": int64(0), "success": true, "metadata": map[string]any{"a": "b"}}, got)
		if left, _ := os.ReadDir(filepath.Join(r.dir, "cache", "proc")); len(left) != 0 {
			t.Errorf("proc files are left: %v", left)
		}
		if f.srv.Subscribers() != 0 {
			t.Error("salt-call subscribed")
		}
		if _, err := r.call(CallOptions{Fun: "test.echo", Args: []any{int64(1)}, NoReturnEvent: true}); err != nil {
			t.Fatal(err)
		}
		if got := f.count(isReturn("req")); got != 1 {
			t.Errorf("%d return events, want 1", got)
		}
		r.call(CallOptions{Fun: "test.echo", Kwargs: map[string]any{"text": "x"}, FunArgs: []any{"text=x"}})
		if got := f.count(func(m map[string]any) bool {
			args, _ := m["fun_args"].([]any)
			return len(args) == 1 && args[0] == "text=x"
		}); got != 1 {
			t.Error("fun_args are not those that were typed")
		}
	})
}

func TestCallErrors(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, nil)
		f.verdict = true
		_, err := r.call(CallOptions{Fun: "test.ping"})
		wantExit(t, err, ExitNotAccepted, ErrNotAccepted)
		f.set(func() { f.verdict = false })
		_, err = r.call(CallOptions{Fun: "test.ping"})
		wantExit(t, err, ExitRejected, ErrRejected)
		f.set(func() { f.verdict = nil })
		r.opts["master_finger"] = "aa:bb"
		_, err = r.call(CallOptions{Fun: "test.ping"})
		wantExit(t, err, ExitFinger, ErrFinger)
		delete(r.opts, "master_finger")
		f.stop()
		begin := time.Now()
		_, err = r.call(CallOptions{Fun: "test.ping"})
		wantExit(t, err, 1, ErrNotConnected)
		if d := time.Since(begin); d > time.Minute {
			t.Errorf("gave up after %v", d)
		}
		f.start()
		res, err := r.call(CallOptions{Fun: "test.fail"})
		if err != nil || res.Retcode != 1 || res.Return != "ERROR: no disk" {
			t.Errorf("%v %v", res, err)
		}
		res, err = r.call(CallOptions{Fun: "no.such"})
		if err != nil || res.Retcode != 1 || res.Return != "'no.such' is not available." {
			t.Errorf("%v %v", res, err)
		}
	})
}

func TestCallUsesTheNextMaster(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "two:4506")
		r := newRig(t, n, map[string]any{"master": []any{"one:4506", "two:4506"}})
		if res, err := r.call(CallOptions{Fun: "test.ping"}); err != nil || res.Return != true {
			t.Fatalf("%v %v", res, err)
		}
		f.await("return", isReturn("req"))
	})
}

// A signed pillar or none: salt-call does not go on with a forged one, nor with a part of one (CVE-2024-37088).
func TestT25CallWithoutPillar(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		f.pillarer = forgedPillar
		r := newRig(t, n, nil)
		_, err := r.call(CallOptions{Fun: "test.pillar"})
		wantExit(t, err, 1, nil)
		if f.count(isReturn("req")) != 0 {
			t.Error("the function was run")
		}
	})
}

func TestCallLocal(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, "srv", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("top.sls", "base:\n  '*':\n    - common\n    - missing\n  'os:Debian':\n    - match: grain\n    - web\n  'G@os:Red*':\n    - never\n")
	write("common.sls", "include:\n  - sub.one\na:\n  b: 1\n  c: 2\n")
	write("sub/one.sls", "include:\n  - .two\na:\n  c: 3\n  d: 4\n")
	write("sub/two/init.sls", "two: yes\n")
	write("web.sls", "{{ template }}: x\n")
	write("never.sls", "never: 1\n")
	gathered := 0
	opts := map[string]any{"id": "alpha", "pki_dir": filepath.Join(dir, "pki"), "cachedir": filepath.Join(dir, "cache"),
		"pillar_roots": map[string]any{"base": []any{filepath.Join(dir, "srv")}}}
	log := &testLog{}
	m, err := New(Options{Opts: opts, Registry: modules.NewRegistry(testModule), Log: slog.New(slog.NewTextHandler(log, nil)),
		Grains: func(context.Context, map[string]any) map[string]any {
			gathered++
			return map[string]any{"os": "Debian"}
		}})
	if err != nil {
		t.Fatal(err)
	}
	call := func(fun string, args ...any) any {
		t.Helper()
		res, err := m.Call(t.Context(), CallOptions{Fun: fun, Args: args, Local: true})
		if err != nil {
			t.Fatal(err)
		}
		return res.Return
	}
	equal(t, any(true), call("test.ping"))
	if gathered != 0 {
		t.Error("grains were gathered for test.ping")
	}
	got, _ := call("test.pillar").(map[string]any)
	errs, _ := got["_errors"].([]any)
	got = maps.Clone(got)
	delete(got, "_errors")
	equal(t, map[string]any{"a": map[string]any{"b": int64(1), "c": int64(2), "d": int64(4)}, "two": true}, got)
	if len(errs) != 2 || errs[0] != "Specified SLS 'missing' in environment 'base' is not available on the salt master" {
		t.Errorf("errors: %v", errs)
	}
	equal(t, any("Debian"), call("test.grain", "os"))
	if gathered != 1 {
		t.Errorf("grains were gathered %d times", gathered)
	}
	if _, err := os.Stat(filepath.Join(dir, "pki")); err == nil {
		t.Error("a local call made keys")
	}
	m, _ = New(Options{Opts: opts, Registry: modules.NewRegistry(testModule), Grains: func(context.Context, map[string]any) map[string]any {
		t.Error("grains were gathered")
		return nil
	}})
	res, err := m.Call(t.Context(), CallOptions{Fun: "test.grain", Args: []any{"id"}, Local: true, SkipGrains: true})
	if err != nil || res.Return != nil { // not even the id, as in stock
		t.Errorf("with --skip-grains: %v %v", res.Return, err)
	}
}

// CVE-2014-... style traversal by names in a top file: a pillar file is below its roots.
func TestLocalPillarStaysInItsRoots(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "srv")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(dir, "secret.sls"), []byte("secret: 1\n"), 0o600)
	os.WriteFile(filepath.Join(root, "top.sls"), []byte("base:\n  '*':\n    - '../secret'\n    - '..secret'\n    - '/etc/passwd'\n    - ''\n"), 0o600)
	m, err := New(Options{Opts: map[string]any{"id": "a", "cachedir": filepath.Join(dir, "cache"), "pki_dir": filepath.Join(dir, "pki"),
		"pillar_roots": map[string]any{"base": []any{root}}}, Registry: modules.NewRegistry(testModule)})
	if err != nil {
		t.Fatal(err)
	}
	res, err := m.Call(t.Context(), CallOptions{Fun: "test.pillar", Local: true})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := res.Return.(map[string]any)
	if got["secret"] != nil {
		t.Errorf("read outside of the roots: %v", got)
	}
}
