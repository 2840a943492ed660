package minion

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/minion/beacon"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/schedule"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// ofSchedule tells the returns of a job of the schedule.
func ofSchedule(name string) func(map[string]any) bool {
	return func(m map[string]any) bool { return m["cmd"] == "_return" && m["schedule"] == name }
}

func TestScheduledJobs(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, map[string]any{"schedule": map[string]any{
			"often":  map[string]any{"function": "test.echo", "args": []any{"hello"}, "seconds": int64(10), "metadata": map[string]any{"a": "b"}},
			"slow":   map[string]any{"function": "test.sleep", "args": []any{int64(25)}, "seconds": int64(10)},
			"silent": map[string]any{"function": "test.ping", "seconds": int64(10), "return_job": false},
			"bad":    map[string]any{"function": "test.nosuch", "seconds": int64(10), "return_job": "nocache"},
			"failed": map[string]any{"function": "test.fail", "seconds": int64(10)},
			"noname": map[string]any{"seconds": int64(10)},
			"module": map[string]any{"function": "test", "seconds": int64(10)},
			"two":    map[string]any{"function": []any{"test.ping", "test.echo"}, "seconds": int64(10)},
			"letter": map[string]any{"function": "test.echo", "args": "x", "seconds": int64(10)},
			"text":   map[string]any{"function": "test.ping", "kwargs": "x", "seconds": int64(10)},
			"shown":  map[string]any{"function": "test.shown", "seconds": int64(10)},
		}})
		r.start()
		r.until(Connected)
		start := time.Now()
		time.Sleep(62 * time.Second)
		got := f.await("return", ofSchedule("often"))
		if got["jid"] != "req" || got["fun"] != "test.echo" || got["return"] != "hello" || got["success"] != true || got["retcode"] != int64(0) {
			t.Errorf("the return is %v", got)
		}
		if meta, _ := got["metadata"].(map[string]any); meta["a"] != "b" || meta["_TS"] == nil || meta["_TT"] == nil || meta["_TOS"] == nil {
			t.Errorf("the metadata is %v", got["metadata"])
		}
		if n := f.count(ofSchedule("often")); n < 5 || n > 6 {
			t.Errorf("%d runs in %v", n, time.Since(start))
		}
		if n := f.count(ofSchedule("slow")); n != 1 && n != 2 {
			t.Errorf("%d runs of a job that takes longer than its interval", n)
		}
		if n := f.count(ofSchedule("silent")); n != 0 {
			t.Errorf("%d returns of a job that wants none", n)
		}
		if got := f.await("return", ofSchedule("bad")); got["jid"] != "nocache" || got["success"] != false || got["retcode"] != int64(254) ||
			got["return"] != "'test.nosuch' is not available." {
			t.Errorf("a missing function gives %v", got)
		}
		if got := f.await("return", ofSchedule("failed")); got["return"] != "Unhandled exception running test.fail" || got["retcode"] != int64(254) {
			t.Errorf("a failing function gives %v", got)
		}
		if got := f.await("return", ofSchedule("noname")); got["return"] != "Unhandled exception running None" || got["retcode"] != int64(254) || got["fun"] != nil {
			t.Errorf("no function gives %v", got)
		}
		if got := f.await("return", ofSchedule("module")); got["return"] != "'test' is not available." || got["retcode"] != int64(254) {
			t.Errorf("the name of a module gives %v", got)
		}
		if n := f.count(ofSchedule("two")); n != 0 {
			t.Errorf("%d returns of a list of functions", n)
		}
		if got := f.await("return", ofSchedule("letter")); got["return"] != "x" {
			t.Errorf("an argument without a list gives %v", got)
		}
		if got := f.await("return", ofSchedule("text")); got["return"] != "Unhandled exception running test.ping" {
			t.Errorf("a text in place of keywords gives %v", got)
		}
		if got := f.await("return", ofSchedule("shown")); got["out"] != "highstate" || got["return"] != "text" {
			t.Errorf("a function with an outputter gives %v", got)
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestScheduleModule(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, nil)
		r.opts["conf_file"] = filepath.Join(r.dir, "minion")
		r.opts["default_include"] = "minion.d/*.conf"
		r.mods = []*modules.Module{schedule.Module}
		r.start()
		r.until(Connected)
		f.subscribed(1)
		jobs := 0
		call := func(fun string, arg ...any) any {
			t.Helper()
			jobs++
			f.publish(jobMap(jidAt(jobs), fun, map[string]any{"arg": arg}))
			return f.await("return", isReturn(jidAt(jobs)))["return"]
		}
		kw := func(m map[string]any) map[string]any { m["__kwarg__"] = true; return m }
		got := call("schedule.add", "job1", kw(map[string]any{"function": "test.ping", "seconds": int64(30)}))
		want := map[string]any{"comment": "Added job: job1 to schedule.", "result": true, "changes": map[string]any{"job1": "added"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		text, err := os.ReadFile(filepath.Join(r.dir, "minion.d", "_schedule.conf"))
		if want := "schedule:\n  job1: {enabled: true, function: test.ping, jid_include: true, maxrunning: 1, name: job1,\n    seconds: 30}\n"; err != nil || string(text) != want {
			t.Errorf("the file is %q, %v", text, err)
		}
		time.Sleep(31 * time.Second)
		f.await("return", ofSchedule("job1"))
		if got, _ := call("schedule.show_next_fire_time", "job1").(map[string]any); got["result"] != true || got["next_fire_time"] == nil {
			t.Errorf("next fire time: %v", got)
		}
		if got, _ := call("schedule.job_status", "job1").(map[string]any); got["_seconds"] != int64(30) || got["_last_run"] == nil {
			t.Errorf("status: %v", got)
		}
		before := f.count(ofSchedule("job1"))
		if got, _ := call("schedule.run_job", "job1").(map[string]any); got["comment"] != "Scheduling Job job1 on minion." {
			t.Errorf("run_job: %v", got)
		}
		time.Sleep(time.Second)
		if n := f.count(ofSchedule("job1")); n != before+1 {
			t.Errorf("%d runs, want %d", n, before+1)
		}
		call("schedule.disable_job", "job1")
		before = f.count(ofSchedule("job1"))
		time.Sleep(90 * time.Second)
		if n := f.count(ofSchedule("job1")); n != before {
			t.Error("a disabled job ran")
		}
		call("schedule.enable_job", "job1")
		time.Sleep(31 * time.Second)
		if n := f.count(ofSchedule("job1")); n != before+1 {
			t.Errorf("an enabled job ran %d times", n-before)
		}
		if got, _ := call("schedule.list").(string); !strings.Contains(got, "    saved: true\n") {
			t.Errorf("list: %s", got)
		}
		if got, _ := call("schedule.delete", "job1").(map[string]any); got["result"] != true {
			t.Errorf("delete: %v", got)
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestBeaconsReachTheMaster(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, map[string]any{"beacons": map[string]any{
			"watch":  []any{map[string]any{"salt_fun": []any{"test.ping"}}, map[string]any{"beacon_module": "salt_monitor"}, map[string]any{"interval": int64(10)}},
			"broken": []any{map[string]any{"salt_fun": []any{"test.fail"}}, map[string]any{"beacon_module": "salt_monitor"}, map[string]any{"run_once": true}},
			"off":    []any{map[string]any{"salt_fun": []any{"test.ping"}}, map[string]any{"beacon_module": "salt_monitor"}, map[string]any{"enabled": false}},
		}})
		r.o.Beacons = beacon.Kinds()
		var work atomic.Int32
		r.o.OnWork = func() { work.Add(1) }
		r.start()
		r.until(Connected)
		before := work.Load()
		time.Sleep(35 * time.Second)
		if n := work.Load() - before; n < 3 {
			t.Errorf("the program hears of %d runs in 35 seconds", n)
		}
		events := func(tag string) (list []map[string]any) {
			f.count(func(m map[string]any) bool {
				all, _ := m["events"].([]any)
				for _, x := range all {
					if e := x.(map[string]any); e["tag"] == tag {
						list = append(list, e)
					}
				}
				return false
			})
			return list
		}
		got := events("salt/beacon/alpha/watch/")
		if len(got) != 3 {
			t.Fatalf("%d events in 35 seconds", len(got))
		}
		want := map[string]any{"tag": "salt/beacon/alpha/watch/", "beacon_name": "salt_monitor",
			"data": map[string]any{"id": "alpha", "salt_fun": "test.ping", "ret": true}}
		if diff := cmp.Diff(want, got[0]); diff != "" {
			t.Error(diff)
		}
		if got := events("salt/beacon/alpha/broken/"); len(got) != 1 || got[0]["error"] != "no disk" {
			t.Errorf("a broken beacon gives %v", got)
		}
		if got := events("salt/beacon/alpha/off/"); len(got) != 0 {
			t.Errorf("a disabled beacon gives %v", got)
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}
