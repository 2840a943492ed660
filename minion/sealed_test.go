package minion

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/minion/beacon"
	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/minion/policy"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/configmod"
	"github.com/brine-salt/brine/modules/minemod"
	"github.com/brine-salt/brine/modules/state"
	"github.com/brine-salt/brine/modules/sysmod"
	"github.com/brine-salt/brine/protocol/transport/mem"
	"github.com/brine-salt/brine/states/render"
)

const refusedTag = "brine/minion/alpha/seal/refused"

// testSeal is a seal that names the tests' master.
func testSeal(t *testing.T, text string) *policy.Seal {
	t.Helper()
	finger, err := testKey(t, masterKey).Public().Fingerprint("sha256")
	if err != nil {
		t.Fatal(err)
	}
	return parseSeal(t, text+"\nmasters: ['"+finger+"']\n")
}

func parseSeal(t *testing.T, text string) *policy.Seal {
	t.Helper()
	s, err := policy.ParseSeal([]byte(text), "seal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSealHoldsHoweverDeep: what a seal does not name, or not with these arguments, does not run, whatever a master or salt-call wraps
// around it, and each refusal is an event and a line in the log. TestT3PolicyHoldsHoweverDeep runs the same without a lock.
func TestSealHoldsHoweverDeep(t *testing.T) {
	const others = `[state.*, test.*, inner.*, mine.*, config.*, sys.*, policycanary.*, module.*, loop.*, "beacon.*"`
	for name, text := range map[string]string{
		"not named":              "functions: " + others + "]\nstates: ['*']\n",
		"with other arguments":   "functions: " + others + ", {'cmd.*': {cmd: [never]}}]\nstates: ['*']\n",
		"without arguments":      "functions: " + others + ", {'cmd.*': {'*': []}}]\nstates: ['*']\n",
		"two rules, neither one": "functions: " + others + ", {'cmd.run': {cmd: [never]}}, {'cmd.*': {cmd: [nor this]}}]\nstates: ['*']\n",
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *mem.Network) { policyRun(t, n, nil, testSeal(t, text), true) })
		})
	}
	const states = "functions: [state.*, config.*, test.*]\nstates: ['test.*', "
	for name, c := range map[string]struct {
		seal, fun, state string
		args             map[string]any
		why              string
	}{
		"state":                   {states + "policycanary.act]", "act", "", nil, ""},
		"state, refused":          {states + "policycanary.through]", "act", "", nil, "does not allow state:policycanary.act (seal.yaml does not name it)"},
		"state, name":             {states + "{policycanary.act: {name: '*/state,_name'}}]", "act", "", nil, ""},
		"state, other name":       {states + "{policycanary.act: {name: '/etc/*'}}]", "act", "", nil, "seal.yaml:2: name may not be"},
		"a state's state":         {states + "policycanary.through, {cmd.run: {name: '/etc/*'}}]", "through", "", nil, "seal.yaml:2: name may not be"},
		"a state's state, absent": {states + "policycanary.through]", "through", "", nil, "does not allow state:cmd.run"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *mem.Network) {
				f := newFake(t, n, "one:4506")
				r := newRig(t, n, nil)
				r.mods = []*modules.Module{state.Module, configmod.Module, (&canary{}).module()}
				r.o.Templates, r.o.Seal = render.Render, testSeal(t, c.seal)
				r.start()
				r.until(Connected)
				f.subscribed(1)
				got := ask(f, 1, "state.high", map[string]any{"id": map[string]any{"policycanary": []any{c.fun, map[string]any{"name": t.Name()}}, "__sls__": "web", "__env__": "base"}})
				if ran := stateCanary.count(t.Name()) > 0; ran != (c.why == "") {
					t.Errorf("ran: %v, answer %v", ran, got)
				}
				if text := pytext.Str(got["return"]); !strings.Contains(text, c.why) {
					t.Errorf("%q does not say %q", text, c.why)
				}
				if c.why != "" {
					f.await("an event of the refusal", isEvent(refusedTag))
				}
			})
		})
	}
}

// TestRefusalsAreToldOnce: a refused call is one line in the log and one event, with the job's id, whether its function
// or its arguments are refused.
func TestRefusalsAreToldOnce(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, nil)
		r.mods = []*modules.Module{(&canary{}).module()}
		r.o.Seal = testSeal(t, "functions: [test.*, {cmd.run: {cmd: [never]}}]")
		r.start()
		r.until(Connected)
		f.subscribed(1)
		for i, fun := range []string{"cmd.shell", "cmd.run"} {
			told := func(m map[string]any) bool {
				data, _ := m["data"].(map[string]any)
				return isEvent(refusedTag)(m) && data["fun"] == fun && data["jid"] == jidAt(i+1)
			}
			ask(f, i+1, fun, "id")
			f.await("the event of "+fun, told)
			synctest.Wait()
			if logged, events := r.log.times("The seal refused a call"), f.count(isEvent(refusedTag)); logged != i+1 || events != i+1 || f.count(told) != 1 {
				t.Errorf("after %s there are %d lines and %d events, not %d", fun, logged, events, i+1)
			}
		}
	})
}

// checkRefusals: at least n refused calls are in the log and were told to the master.
func checkRefusals(t *testing.T, f *fakeMaster, r *rig, n int) {
	t.Helper()
	time.Sleep(refusalTimeout)
	if logged, events := r.log.times("The seal refused a call"), f.count(isEvent(refusedTag)); logged < n || events < n {
		t.Errorf("%d lines in the log and %d events of %d or more refused calls", logged, events, n)
	}
}

// bypasses are requests of a master that try to get around a seal: by name, within other functions, and by arguments that look like
// allowed ones.
func bypasses() map[string]func(way string) (fun any, arg []any) {
	all := nestedCalls()
	call := func(fun string, arg ...any) {
		all[fun+" "+pytext.Str(arg)] = func(string) (any, []any) { return fun, arg }
	}
	kw := func(pairs ...any) map[string]any {
		m := map[string]any{"__kwarg__": true}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return m
	}
	call("cmd.shell", "id")
	call("cmd.script", "salt://x.sh")
	call("cmd.exec_code", "python3", "import os")
	call("cmd.run_all", "id", kw("runas", "root"))
	call("cp.get_url", "file:///etc/shadow", "/tmp/x")
	call("cp.get_file", "salt://x", "/etc/cron.d/x")
	call("cp.get_template", "/etc/shadow", "/tmp/x")
	call("cp.push", "/etc/shadow")
	call("saltutil.sync_all")
	call("saltutil.sync_modules")
	call("saltutil.regen_keys")
	call("saltutil.update", "99")
	call("saltutil.runner", "salt.cmd")
	call("agent.update")
	call("file.write", "/etc/cron.d/x", "* * * * * root id")
	call("file.symlink", "/etc", "/srv/app/etc")
	call("file.manage_file", "/srv/app/x")
	call("grains.setval", "role", "{{ salt['cmd.run']('id') }}")
	call("grains.append", "roles", "{{ salt.cmd.run('id') }}")
	call("pkg.install", kw("sources", []any{map[string]any{"x": "/tmp/x.deb"}}))
	call("schedule.add", "x", kw("function", "cmd.run", "seconds", int64(1)))
	call("schedule.run_job", "x")
	call("beacons.add", "sh", []any{})
	call("event.send", "x", map[string]any{})
	call("publish.publish", "*", "cmd.run", "id")
	call("environ.setval", "LD_PRELOAD", "/tmp/x.so")
	call("service.restart", "salt-minion")
	call("system.reboot")
	call("mod_watch")
	call("cmd")
	call("Cmd.run", "id")
	call("cmd.run ", "id")
	call(" cmd.run", "id")
	call("inner.call\x00", "id")
	for _, path := range []any{"/etc/shadow", "/var/log/../../etc/shadow", "/var/log/app/../../../etc/shadow", "//var/log/app/x", "/var/log/app", "/var/log/app/./x",
		"/var/log/app/x\n", "var/log/app/x", "/VAR/log/app/x", nil, "", int64(5), true, []any{"/var/log/app/x", "/etc/shadow"}, []any{},
		map[string]any{"/var/log/app/x": "/etc/shadow"},
		pairs("z", "/var/log/app/x", "a", pairs("z", []any{"/etc/shadow"}, "a", "/var/log/app/x")),
		[]any{"/var/log/app/x", pairs("/var/log/app/x", pairs("z", int64(1), "a", "/etc/shadow"))},
		[]any{[]any{pairs(int64(2), "/etc/shadow", int64(1), "/var/log/app/x")}}, pairs()} {
		for _, fun := range []string{"inner.read", "inner.see"} {
			call(fun, path)
			call(fun, kw("path", path))
			call(fun, pairs("path", "/var/log/app/x", "__kwarg__", true, "path", path))
		}
	}
	call("inner.see", "/var/log/app/x", pairs("z", pairs("y", int64(1)), "a", int64(2)))
	call("inner.see", pairs("path", "/var/log/app/x", "z", pairs("y", int64(1), "b", int64(2)), "__kwarg__", true))
	call("inner.read", "/var/log/app/x", "more")
	call("inner.read", "/var/log/app/x", kw("other", "more"))
	return all
}

// TestSealBypasses: each of the requests is refused, with a line in the log and an event of its own, and nothing runs.
func TestSealBypasses(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, nil)
		c := &canary{}
		read := &modules.Module{Name: "inner", Funcs: []modules.Def{
			{Name: "call", Params: []modules.Param{{Name: "cmd"}}, Run: func(ctx context.Context, call *modules.Call) (any, error) {
				return call.Exec(ctx, "cmd.run", call.Str("cmd"))
			}},
			{Name: "read", Params: []modules.Param{{Name: "path"}}, Args: "more", Kwargs: "kwargs",
				Run: func(_ context.Context, call *modules.Call) (any, error) {
					c.note("read " + call.Str("path"))
					return "read", nil
				}},
			{Name: "see", Params: []modules.Param{{Name: "path"}}, Args: "more", Kwargs: "kwargs", Ordered: true,
				Run: func(_ context.Context, call *modules.Call) (any, error) {
					c.note("see " + call.Str("path"))
					return "read", nil
				}}}}
		r.mods = []*modules.Module{c.module(), state.Module, sysmod.Module, configmod.Module, minemod.Module, read}
		roots := t.TempDir()
		if err := os.WriteFile(filepath.Join(roots, "web.sls"), []byte("x:\n  cmd.run:\n    - name: state.apply\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r.o.Files = func(opts map[string]any, _ FileRequest) modules.Files {
			return fileclient.New(fileclient.Options{Roots: map[string][]string{"base": {roots}}, CacheDir: filepath.Join(r.dir, "cache")})
		}
		r.opts["grains"] = map[string]any{"os": "Debian", "shell": "/bin/sh"}
		r.o.Templates = render.Render
		r.o.Seal = testSeal(t, "functions: [state.*, test.*, inner.call, mine.*, config.*, sys.*, "+
			"{inner.see: {path: '/var/log/app/*', '*': []}}, {inner.read: {path: '/var/log/app/*', '*': []}}]\nstates: ['*']\n")
		r.start()
		r.until(Connected)
		f.subscribed(1)
		if got := ask(f, 1, "inner.read", "/var/log/app/x"); got["return"] != "read" {
			t.Fatalf("what is allowed: %v", got)
		}
		all := bypasses()
		for i, name := range slices.Sorted(maps.Keys(all)) {
			fun, arg := all[name](name)
			logged, events := r.log.times("The seal refused a call"), f.count(isEvent(refusedTag))
			got := ask(f, i+2, fun, arg...)
			synctest.Wait()
			if r.log.times("The seal refused a call") == logged || f.count(isEvent(refusedTag)) == events {
				t.Errorf("%q: %d lines and %d events more: %v", name, r.log.times("The seal refused a call")-logged, f.count(isEvent(refusedTag))-events, got["return"])
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.seen) != 1 || c.seen["read /var/log/app/x"] != 1 {
			t.Errorf("these ran: %v", c.seen)
		}
		if len(all) < 50 {
			t.Errorf("%d requests", len(all))
		}
		t.Logf("%d requests were refused, with %d events", len(all), f.count(isEvent(refusedTag)))
	})
}

// TestSealedBeacons: a beacon, which a master may configure in the pillar, needs to be named.
func TestSealedBeacons(t *testing.T) {
	for text, want := range map[string]bool{"functions: [cmd.*]": false, "functions: [cmd.*, beacon.load]": false, "functions: [cmd.*, beacon.salt_monitor]": true} {
		bubble(t, func(t *testing.T, n *mem.Network) {
			f := newFake(t, n, "one:4506")
			r := newRig(t, n, map[string]any{"beacons": map[string]any{"salt_monitor": []any{map[string]any{"salt_fun": []any{
				map[string]any{"cmd.run": map[string]any{"args": []any{"beacon"}}}}}}}})
			c := &canary{}
			r.mods = []*modules.Module{c.module()}
			r.o.Seal, r.o.Beacons = testSeal(t, text), beacon.Kinds()
			r.start()
			r.until(Connected)
			f.subscribed(1)
			time.Sleep(time.Minute)
			if got := c.count("beacon") > 0; got != want {
				t.Errorf("%s: the beacon looked: %v", text, got)
			}
		})
	}
}

// TestSealedMasters: a master is taken by the fingerprints of the seal alone, and its key is not written.
func TestSealedMasters(t *testing.T) {
	finger, err := testKey(t, masterKey).Public().Fingerprint("sha256")
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Repeat("ab:", 31) + "ab"
	for name, c := range map[string]struct {
		masters, why string
	}{
		"named":          {"masters: ['" + strings.ToUpper(finger) + "']", ""},
		"one of several": {"masters: ['" + other + "', '" + finger + "']", ""},
		"another":        {"masters: ['" + other + "']", "seal.yaml does not list its key " + finger},
		"no masters":     {"", "cannot trust a new master"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *mem.Network) {
				newFake(t, n, "one:4506")
				r := newRig(t, n, map[string]any{"open_mode": true})
				r.o.Seal = parseSeal(t, "functions: [test.*]\n"+c.masters)
				r.start()
				if c.why == "" {
					r.until(Connected)
					if key, err := r.m.store.Master(); key != nil || err != nil {
						t.Errorf("a key was written: %v, %v", key, err)
					}
					return
				}
				time.Sleep(time.Minute)
				if !r.log.has(c.why) {
					t.Errorf("the log does not say %q", c.why)
				}
				r.mu.Lock()
				defer r.mu.Unlock()
				for _, s := range r.states {
					if s.State == Connected {
						t.Error("it is connected")
					}
				}
			})
		})
	}
}

// TestSealOutlivesReload: a reload changes options, not the seal, and takes no directories of code.
func TestSealOutlivesReload(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, nil)
		r.o.Seal = testSeal(t, "functions: [test.ping, sys.list_functions]")
		r.o.Load = func() (map[string]any, error) {
			r.opts["module_dirs"], r.opts["sudo_user"] = []any{"/srv/code"}, "root"
			return r.opts, nil
		}
		r.start()
		r.until(Connected)
		f.subscribed(1)
		if err := r.m.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := r.m.settings().options
		if dirs, _ := s["module_dirs"].([]any); len(dirs) > 0 || s["sudo_user"] != "" {
			t.Errorf("after the reload: %v %v", s["module_dirs"], s["sudo_user"])
		}
		if got := ask(f, 1, "test.echo", "x"); !strings.Contains(pytext.Str(got["return"]), "does not allow test.echo") {
			t.Errorf("test.echo: %v", got)
		}
		if got := ask(f, 2, "test.ping"); got["return"] != true {
			t.Errorf("test.ping: %v", got)
		}
	})
}

// TestRestrictFails: a minion and a salt-call whose program cannot restrict itself end before they run anything, with the
// exit code of the error. systemd starts a minion again that ends with 1, but not with ExitFinger.
func TestRestrictFails(t *testing.T) {
	plain := errors.New("no Landlock")
	for _, c := range []struct {
		err  error
		code int
	}{{plain, 1}, {&ExitError{Code: ExitFinger, Err: plain}, ExitFinger}} {
		bubble(t, func(t *testing.T, n *mem.Network) {
			r := newRig(t, n, nil)
			r.o.Restrict = func() error { return c.err }
			r.start()
			var exit *ExitError
			if err := r.wait(); !errors.As(err, &exit) || exit.Code != c.code || !errors.Is(err, plain) {
				t.Errorf("%#v: the minion ended with %#v", c.err, err)
			}
			m, err := New(r.o)
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.Call(t.Context(), CallOptions{Fun: "test.ping", Local: true})
			if exit = nil; !errors.As(err, &exit) || exit.Code != c.code || !errors.Is(err, plain) {
				t.Errorf("%#v: salt-call --local ended with %#v", c.err, err)
			}
		})
	}
}
