package saltutil

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func call(t *testing.T, e *modules.Env, fun string, kwargs map[string]any, args ...any) any {
	t.Helper()
	res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: fun, Args: args, Kwargs: kwargs})
	if res.Err != nil {
		t.Fatalf("%s: %v", fun, res.Err)
	}
	return res.Return
}

func TestJobs(t *testing.T) {
	e := modulestest.Env(t)
	sleep := map[string]any{"jid": "20250102030405678901", "fun": "test.sleep", "pid": int64(1)}
	ping := map[string]any{"jid": "20250102030405678902", "fun": "test.ping", "pid": int64(1)}
	a := &modulestest.Agent{Jobs: []map[string]any{sleep, ping}, Kept: map[string]map[string]any{"20250102030405678900": {"return": "x"}}}
	e.Agent = a
	cases := []struct {
		fun  string
		args []any
		want any
	}{
		{"saltutil.running", nil, []any{sleep, ping}},
		{"saltutil.is_running", []any{"test.s*"}, []any{sleep}},
		{"saltutil.is_running", []any{"state.*"}, []any{}},
		{"saltutil.find_job", []any{"20250102030405678902"}, ping},
		{"saltutil.find_job", []any{"1"}, map[string]any{}},
		{"saltutil.find_cached_job", []any{"20250102030405678900"}, map[string]any{"return": "x"}},
		{"saltutil.signal_job", []any{"20250102030405678901", int64(1)}, "Signal sent to job 20250102030405678901"},
		{"saltutil.kill_job", []any{"20250102030405678901"}, "Signal sent to job 20250102030405678901"},
		{"saltutil.term_job", []any{"20250102030405678901"}, "Signal sent to job 20250102030405678901"},
		{"saltutil.kill_job", []any{"1"}, ""},
		{"saltutil.term_all_jobs", nil, []any{"Signal sent to job 20250102030405678901", "Signal sent to job 20250102030405678902"}},
		{"saltutil.kill_all_jobs", nil, []any{"Signal sent to job 20250102030405678901", "Signal sent to job 20250102030405678902"}},
	}
	for _, c := range cases {
		if diff := cmp.Diff(c.want, call(t, e, c.fun, nil, c.args...)); diff != "" {
			t.Errorf("%s %v: %s", c.fun, c.args, diff)
		}
	}
	want := []string{"signal 1 20250102030405678901", "signal 9 20250102030405678901", "signal 5 20250102030405678901",
		"signal 5 20250102030405678901", "signal 5 20250102030405678902", "signal 9 20250102030405678901", "signal 9 20250102030405678902"}
	if diff := cmp.Diff(want, a.Done); diff != "" { // the fake shows a signal's last digit
		t.Error(diff)
	}
	res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: "saltutil.signal_job", Args: []any{"20250102030405678901", "KILL"}})
	if res.Err == nil {
		t.Errorf("a signal that is no number: %v", res.Return)
	}
}

func TestRefresh(t *testing.T) {
	e := modulestest.Env(t)
	cases := []struct {
		fun    string
		kwargs map[string]any
		want   any
		done   []string
	}{
		{"saltutil.refresh_pillar", nil, true, []string{"grains", "pillar clean", "tell pillar_refresh"}},
		{"saltutil.refresh_pillar", map[string]any{"clean_cache": false}, true, []string{"grains", "pillar", "tell pillar_refresh"}},
		{"saltutil.pillar_refresh", map[string]any{"wait": true, "timeout": int64(5)}, true, []string{"grains", "pillar clean",
			"tell pillar_refresh and await /salt/minion/minion_pillar_refresh_complete"}},
		{"saltutil.refresh_grains", nil, true, []string{"grains", "pillar", "tell pillar_refresh"}},
		{"saltutil.refresh_grains", map[string]any{"clean_pillar_cache": true}, true, []string{"grains", "pillar clean", "tell pillar_refresh"}},
		{"saltutil.refresh_grains", map[string]any{"refresh_pillar": false}, true, []string{"grains", "tell module_refresh"}},
		{"saltutil.refresh_modules", map[string]any{"async": false}, true, []string{"grains",
			"tell module_refresh and await /salt/minion/minion_mod_refresh_complete"}},
		{"saltutil.refresh_matchers", nil, true, []string{"fire matchers_refresh"}},
		{"saltutil.refresh_beacons", nil, true, []string{"fire beacons_refresh"}},
		{"saltutil.sync_modules", nil, []any{}, []string{"grains", "tell module_refresh"}},
		{"saltutil.sync_modules", map[string]any{"refresh": false}, []any{}, nil},
		{"saltutil.sync_grains", nil, []any{}, []string{"grains", "pillar", "tell pillar_refresh"}},
		{"saltutil.sync_grains", map[string]any{"clean_pillar_cache": true}, []any{}, []string{"grains", "pillar clean", "tell pillar_refresh"}},
		{"saltutil.sync_sdb", nil, []any{}, nil},
	}
	for _, c := range cases {
		a := &modulestest.Agent{}
		e.Agent = a
		if diff := cmp.Diff(c.want, call(t, e, c.fun, c.kwargs)); diff != "" {
			t.Errorf("%s: %s", c.fun, diff)
		}
		if diff := cmp.Diff(c.done, a.Done); diff != "" {
			t.Errorf("%s: %s", c.fun, diff)
		}
	}
	e.Agent = &modulestest.Agent{Err: errors.New("away")}
	for _, fun := range []string{"saltutil.refresh_pillar", "saltutil.refresh_grains", "saltutil.refresh_modules"} {
		if got := call(t, e, fun, nil); got != false {
			t.Errorf("%s that failed: %v", fun, got)
		}
	}
	all := call(t, e, "saltutil.sync_all", map[string]any{"refresh": false}).(map[string]any)
	if len(all) != 17 || cmp.Diff([]any{}, all["modules"]) != "" {
		t.Errorf("sync_all: %v", all)
	}
}

func TestCaches(t *testing.T) {
	e := modulestest.Env(t)
	dir := t.TempDir()
	e.Root = ""
	opts := map[string]any{"cachedir": dir, "cache_jobs": true, "pki_dir": filepath.Join(dir, "pki")}
	e.Opts = func() map[string]any { return opts }
	for _, name := range []string{"files/base/x", "return_spool/1", "job_journal", "proc/1", "minion_jobs/old/return.p",
		"minion_jobs/new/return.p", "extmods/modules/a.py", "extmods/modules/a.pyc", "extmods/states/b.py", "pki/minion.pem", "pki/minion.pub"} {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	yesterday := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "minion_jobs/old"), yesterday, yesterday); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"modules": []any{"a"}, "states": []any{"b"}}, call(t, e, "saltutil.list_extmods", nil)); diff != "" {
		t.Error(diff)
	}
	if got := call(t, e, "saltutil.clear_job_cache", nil); got != true || left(dir, "minion_jobs/old") || !left(dir, "minion_jobs/new") {
		t.Errorf("clear_job_cache: %v", got)
	}
	if got := call(t, e, "saltutil.find_cached_job", nil, "none"); got != "Local jobs cache directory "+dir+"/minion_jobs/none not found" {
		t.Errorf("find_cached_job: %v", got)
	}
	a := &modulestest.Agent{}
	e.Agent = a
	if got := call(t, e, "saltutil.regen_keys", nil); got != nil || left(dir, "pki/minion.pem") || cmp.Diff([]string{"restart"}, a.Done) != "" {
		t.Errorf("regen_keys: %v, %v", got, a.Done)
	}
	if got := call(t, e, "saltutil.clear_cache", nil); got != true || left(dir, "files/base/x") {
		t.Errorf("clear_cache: %v", got)
	}
	for _, name := range []string{"return_spool/1", "job_journal", "proc/1"} {
		if !left(dir, name) {
			t.Errorf("clear_cache removed %s, which the minion needs", name)
		}
	}
}

func left(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

func TestRevoke(t *testing.T) {
	e := modulestest.Env(t)
	var asked map[string]any
	e.Master = modulestest.Master(func(_ context.Context, load map[string]any) (any, error) { asked = load; return true, nil })
	if got := call(t, e, "saltutil.revoke_auth", map[string]any{"preserve_minion_cache": true}); got != true {
		t.Errorf("answer %v", got)
	}
	if diff := cmp.Diff(map[string]any{"cmd": "revoke_auth", "id": "minion", "preserve_minion_cache": true}, asked); diff != "" {
		t.Error(diff)
	}
	e.Master = modulestest.Master(nil)
	if got := call(t, e, "saltutil.revoke_auth", nil); got != false {
		t.Errorf("without answer: %v", got)
	}
}
