package minion

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/minion/journal"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// ask publishes a job and gives its return without the fields that are the same for all.
func ask(f *fakeMaster, n int, fun any, arg ...any) map[string]any {
	f.t.Helper()
	if arg == nil {
		arg = []any{}
	}
	f.publish(jobMap(jidAt(n), "", map[string]any{"fun": fun, "arg": arg}))
	got := f.await(fmt.Sprint(fun), isReturn(jidAt(n)))
	for _, k := range []string{"cmd", "id", "jid", "ts", "user", "fun", "fun_args"} {
		delete(got, k)
	}
	return got
}

func TestReturns(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		connectedRig(t, n, f, map[string]any{"disable_modules": []any{"off"}})
		ok := func(v any) map[string]any { return map[string]any{"return": v, "retcode": int64(0), "success": true} }
		bad := func(v any) map[string]any {
			return map[string]any{"return": v, "retcode": int64(1), "success": false, "out": "nested"}
		}
		equal(t, ok(true), ask(f, 1, "test.ping"))
		equal(t, ok(int64(7)), ask(f, 2, "test.echo", int64(7)))
		equal(t, ok("x=y z"), ask(f, 3, "test.echo", map[string]any{"__kwarg__": true, "text": "x=y z"}))
		equal(t, ok([]any{int64(1)}), ask(f, 4, "test.echo", "text=[1]"))
		equal(t, bad("ERROR: no disk"), ask(f, 5, "test.fail"))
		equal(t, bad("'no.such' is not available."), ask(f, 6, "no.such"))
		equal(t, bad("ERROR executing 'test.ping': The following keyword arguments are not valid: a=1"), ask(f, 7, "test.ping", "a=1"))
		got := ask(f, 8, []any{"test.ping", "test.fail", "test.echo"}, []any{}, []any{}, []any{"x"})
		equal(t, map[string]any{
			"return":  map[string]any{"test.ping": true, "test.fail": "ERROR: no disk", "test.echo": "x"},
			"retcode": map[string]any{"test.ping": int64(0), "test.echo": int64(0)},
			"success": map[string]any{"test.ping": true, "test.fail": false, "test.echo": true},
		}, got)
	})
}

func TestCompoundOrdered(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		connectedRig(t, n, f, map[string]any{"multifunc_ordered": true})
		equal(t, map[string]any{"return": []any{"a", "b"}, "retcode": []any{int64(0), int64(0)}, "success": []any{true, true}},
			ask(f, 1, []any{"test.echo", "test.echo"}, []any{"a"}, []any{"b"}))
	})
}

// TestCompoundKeepsOrder: the return of several functions has them in the order in which they ran.
func TestCompoundKeepsOrder(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		r := connectedRig(t, n, newFake(t, n, "one:4506"), nil)
		j := &job{ctx: t.Context(), Job: protocol.Job{JID: protocol.JID(jidAt(1)), Compound: true,
			Fun: []string{"test.ping", "test.echo", "test.fail"}, Args: [][]any{{}, {"x"}, {}}}}
		ret, _ := r.m.executeJob(j)
		equal(t, "{'test.ping': True, 'test.echo': 'x', 'test.fail': 'ERROR: no disk'}", pyobj.Str(ret.Return))
	})
}

func TestDuplicateJobRunsOnce(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		connectedRig(t, n, f, nil)
		for range 5 {
			f.publish(jobMap(jidAt(1), "test.sleep", map[string]any{"arg": []any{int64(1)}}))
		}
		time.Sleep(time.Minute)
		f.publish(jobMap(jidAt(1), "test.ping", nil))
		time.Sleep(time.Minute)
		if got := f.count(isReturn(jidAt(1))); got != 1 {
			t.Errorf("%d returns", got)
		}
	})
}

func TestFindAndKillJob(t *testing.T) {
	for _, kill := range []string{"saltutil.kill_job", "saltutil.term_job"} {
		bubble(t, func(t *testing.T, n *mem.Network) {
			f := newFake(t, n, "one:4506")
			r := connectedRig(t, n, f, nil)
			f.publish(jobMap(jidAt(1), "test.sleep", map[string]any{"arg": []any{int64(3600)}}))
			time.Sleep(time.Second)
			proc := filepath.Join(r.dir, "cache", "proc", jidAt(1))
			if noted := readMap(proc); noted["fun"] != "test.sleep" || noted["pid"] != int64(os.Getpid()) {
				t.Errorf("proc file has %v", noted)
			}
			found, _ := payload.Map(ask(f, 2, "saltutil.find_job", jidAt(1))["return"])
			want := jobMap(jidAt(1), "test.sleep", map[string]any{"arg": []any{int64(3600)}, "pid": int64(os.Getpid())})
			equal(t, want, found)
			if list, _ := payload.List(ask(f, 3, "saltutil.running")["return"]); len(list) != 1 {
				t.Errorf("running: %v", list)
			}
			sig := map[string]int{"saltutil.kill_job": 9, "saltutil.term_job": 15}[kill]
			equal(t, any(fmt.Sprintf("Signal %d sent to job %s at pid %d", sig, jidAt(1), os.Getpid())), ask(f, 4, kill, jidAt(1))["return"])
			got := f.await("return of the killed job", isReturn(jidAt(1)))
			if got["return"] != "ERROR: the job was cancelled by a signal" || got["success"] != false {
				t.Errorf("killed job returned %v", got)
			}
			time.Sleep(time.Second) // it counts as running until its return has arrived
			equal(t, any(map[string]any{}), ask(f, 5, "saltutil.find_job", jidAt(1))["return"])
			equal(t, any(""), ask(f, 6, kill, jidAt(1))["return"])
			equal(t, any(""), ask(f, 7, kill, jidAt(7))["return"]) // not itself
			if _, err := os.Stat(proc); err == nil {
				t.Error("the proc file is still there")
			}
		})
	}
}

func TestProcessCountMaxQueues(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := connectedRig(t, n, f, map[string]any{"process_count_max": int64(2)})
		begin := time.Now()
		for i := range 6 {
			f.publish(jobMap(jidAt(i), "test.sleep", map[string]any{"arg": []any{int64(10)}}))
		}
		time.Sleep(time.Second)
		if got := len(r.m.jobs.list()); got != 6 {
			t.Errorf("%d jobs are known", got)
		}
		// A queued job is found, and urgent ones pass the queue.
		equal(t, any(true), ask(f, 50, "test.ping")["return"])
		found, _ := payload.Map(ask(f, 51, "saltutil.find_job", jidAt(5))["return"])
		if found["queued"] != true || found["pid"] != int64(0) || found["queue_type"] != "process" {
			t.Errorf("queued job: %v", found)
		}
		ask(f, 52, "saltutil.kill_job", jidAt(4))
		if got := f.await("return", isReturn(jidAt(4))); got["return"] != "ERROR: the job was cancelled by a signal" {
			t.Errorf("killed in the queue: %v", got["return"])
		}
		for _, i := range []int{0, 1, 2, 3, 5} {
			f.await("return", isReturn(jidAt(i)))
		}
		if d := time.Since(begin); d < 30*time.Second || d > 40*time.Second {
			t.Errorf("five jobs of 10 s, two at a time, took %v", d)
		}
		if !r.log.has("Maximum number of processes reached while executing jid " + jidAt(2)) {
			t.Error("the queue line is missing")
		}
	})
}

func TestProgressComesInOrderBeforeTheReturn(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		connectedRig(t, n, f, nil)
		ask(f, 1, "test.gen")
		f.mu.Lock()
		defer f.mu.Unlock()
		var tags []string
		for _, m := range f.requests {
			if tag, _ := m["tag"].(string); strings.Contains(tag, "/prog/") {
				tags = append(tags, fmt.Sprint(tag, m["data"]))
			} else if m["cmd"] == "_return" {
				tags = append(tags, "return")
			}
		}
		p := "salt/job/" + jidAt(1) + "/prog/alpha/"
		equal(t, []string{p + "0map[return:0]", p + "1map[return:1]", p + "2map[return:2]", "return"}, tags)
	})
}

func TestBlackout(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		f.pillar = map[string]any{"minion_blackout": true, "minion_blackout_whitelist": []any{"test.echo"}}
		connectedRig(t, n, f, nil)
		text, _ := ask(f, 1, "test.ping")["return"].(string)
		if !strings.HasPrefix(text, "ERROR executing 'test.ping': Minion in blackout mode.") {
			t.Errorf("got %q", text)
		}
		equal(t, any("x"), ask(f, 2, "test.echo", "x")["return"])
		f.set(func() { f.pillar = map[string]any{} })
		equal(t, any(true), ask(f, 3, "saltutil.refresh_pillar")["return"])
		equal(t, any(true), ask(f, 4, "test.ping")["return"])
	})
}

// CVE-2013-4435: policy counts for each function of a compound job.
func TestT3LocalPolicy(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		connectedRig(t, n, f, map[string]any{"minion_allow_functions": []any{"test.*", "saltutil.find_job"}, "minion_deny_functions": []any{"test.fail"}})
		got := ask(f, 1, []any{"test.ping", "test.fail", "saltutil.running"}, []any{}, []any{}, []any{})
		ret, _ := payload.Map(got["return"])
		equal(t, map[string]any{"test.ping": true,
			"test.fail":        "ERROR executing 'test.fail': the policy of this minion does not allow test.fail (minion_deny_functions)",
			"saltutil.running": "ERROR executing 'saltutil.running': the policy of this minion does not allow saltutil.running (minion_allow_functions does not name it)"}, ret)
	})
}

func TestDisabledAndUnlistedModules(t *testing.T) {
	inner := &modules.Module{Name: "inner", Funcs: []modules.Def{{Name: "call", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return c.Exec(ctx, "test.ping")
	}}}}
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, map[string]any{"disable_modules": []any{"test"}})
		r.mods = append(r.mods, inner)
		r.start()
		r.until(Connected)
		f.subscribed(1)
		equal(t, any("'test.ping' is not available."), ask(f, 1, "test.ping")["return"])
		equal(t, any("'test.ping' is not available."), ask(f, 2, "inner.call")["return"])
		r.stop()
		delete(r.opts, "disable_modules")
		r.opts["whitelist_modules"] = []any{"inner"}
		r.start()
		r.until(Connected)
		f.subscribed(1)
		equal(t, any("'test.ping' is not available."), ask(f, 3, "test.ping")["return"])
		equal(t, any("'test.ping' is not available."), ask(f, 4, "inner.call")["return"])
	})
}

func TestExecutors(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		connectedRig(t, n, f, nil)
		for i, c := range []struct{ v, want any }{
			{[]any{"direct_call"}, true}, {"direct_call", true}, {[]any{"direct_call", "nope"}, true},
			{[]any{"nope", "direct_call"}, "ERROR executing 'test.ping': Executor 'nope' is not available"},
			{[]any{"sudo"}, "ERROR executing 'test.ping': Executor 'sudo' is not available"},
			{[]any{}, "ERROR executing 'test.ping': Wrong executors specification: []. String or non-empty list expected"},
		} {
			f.publish(jobMap(jidAt(i), "test.ping", map[string]any{"module_executors": c.v}))
			equal(t, c.want, f.await("return", isReturn(jidAt(i)))["return"])
		}
	})
}

func TestReturnersAreSaidToBeAbsent(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := connectedRig(t, n, f, nil)
		f.publish(jobMap(jidAt(1), "test.ping", map[string]any{"ret": "mysql,slack"}))
		f.await("return", isReturn(jidAt(1)))
		for _, name := range []string{"mysql", "slack"} {
			if !r.log.has("Returner " + name + ".returner could not be loaded") {
				t.Errorf("nothing is said about returner %s", name)
			}
		}
	})
}

// A master that is away when the return is due gets it when it is back, also after a restart of the minion.
func TestReturnWaitsForTheMaster(t *testing.T) {
	for _, restart := range []bool{false, true} {
		bubble(t, func(t *testing.T, n *mem.Network) {
			f := newFake(t, n, "one:4506")
			r := connectedRig(t, n, f, nil)
			f.publish(jobMap(jidAt(1), "test.sleep", map[string]any{"arg": []any{int64(10)}}))
			time.Sleep(time.Second)
			f.stop()
			time.Sleep(time.Hour)
			if got := r.m.spool.Pending(); len(got) != 1 {
				t.Fatalf("%d returns wait", len(got))
			}
			if restart {
				r.stop()
				r.start()
				time.Sleep(time.Minute)
			}
			f.restart()
			got := f.await("return", isReturn(jidAt(1)))
			equal(t, any(true), got["return"])
			time.Sleep(time.Minute)
			if got := r.m.spool.Pending(); len(got) != 0 {
				t.Errorf("%d returns still wait", len(got))
			}
			if got := f.count(isReturn(jidAt(1))); got != 1 {
				t.Errorf("%d returns", got)
			}
			if files, _ := os.ReadDir(filepath.Join(r.dir, "cache", "return_spool")); len(files) != 0 {
				t.Errorf("files are left: %v", files)
			}
		})
	}
}

// The master takes the return and dies before it answers.
func TestReturnIsRepeatedUntilAcknowledged(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		connectedRig(t, n, f, nil)
		dead := 5
		f.set(func() {
			f.answer = func(v protocol.Verified) (any, bool) {
				f.mu.Lock()
				defer f.mu.Unlock()
				if v.Cmd() == "_return" && dead > 0 {
					dead--
					return errDeaf, true
				}
				return nil, true
			}
		})
		f.publish(jobMap(jidAt(1), "test.ping", nil))
		f.await("return", isReturn(jidAt(1)))
		f.set(func() {
			if dead != 0 {
				t.Errorf("%d attempts are missing", dead)
			}
		})
	})
}

// Python's ws servers close the connection on more than 4 MiB. The master gets to know at least that.
func TestReturnTooLargeForTheTransport(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, nil)
		r.mods = append(r.mods, &modules.Module{Name: "large", Funcs: []modules.Def{{Name: "one", Run: func(context.Context, *modules.Call) (any, error) {
			return strings.Repeat("x", 5<<20), nil
		}}}})
		r.start()
		r.until(Connected)
		f.subscribed(1)
		f.set(func() {
			f.answer = func(v protocol.Verified) (any, bool) {
				if text, _ := v.Load()["return"].(string); len(text) > 4<<20 {
					return errDeaf, true
				}
				return nil, true
			}
		})
		f.publish(jobMap(jidAt(1), "large.one", nil))
		got := f.await("return", isReturn(jidAt(1)))
		if text, _ := got["return"].(string); !strings.HasPrefix(text, "ERROR: the return of 5243") || got["success"] != false {
			t.Errorf("got %.100v", got["return"])
		}
		kept, _ := r.m.cachedJob(jidAt(1))["return"].(string)
		if len(kept) != 5<<20 {
			t.Errorf("%d bytes are kept", len(kept))
		}
		time.Sleep(time.Minute)
		if len(r.m.spool.Pending()) != 0 {
			t.Error("the return is still sent")
		}
	})
}

// A return that the master's function fails on is given up, lest it is sent for a week.
func TestMasterFailsOnAReturn(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := connectedRig(t, n, f, nil)
		f.set(func() {
			f.answer = func(v protocol.Verified) (any, bool) {
				if v.Cmd() == "_return" && v.Load()["jid"] == jidAt(1) {
					return "", true
				}
				return nil, true
			}
		})
		f.publish(jobMap(jidAt(1), "test.ping", nil))
		time.Sleep(time.Hour)
		if got := f.count(isReturn(jidAt(1))); got != maxRefused {
			t.Errorf("sent %d times, want %d", got, maxRefused)
		}
		if len(r.m.spool.Pending()) != 0 {
			t.Error("it is still kept")
		}
	})
}

func TestExpiredReturnIsKeptLocally(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := connectedRig(t, n, f, nil)
		f.publish(jobMap(jidAt(1), "test.sleep", map[string]any{"arg": []any{int64(1)}}))
		time.Sleep(500 * time.Millisecond)
		f.stop()
		time.Sleep(6 * 24 * time.Hour)
		if len(r.m.spool.Pending()) != 1 {
			t.Fatal("the return is gone too soon")
		}
		time.Sleep(26 * time.Hour)
		if len(r.m.spool.Pending()) != 0 {
			t.Fatal("the return is still there")
		}
		if got := r.m.cachedJob(jidAt(1)); got["return"] != true {
			t.Errorf("local job cache has %v", got)
		}
	})
}

func TestStopInterruptsAndReports(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := connectedRig(t, n, f, nil)
		f.publish(jobMap(jidAt(1), "test.sleep", map[string]any{"arg": []any{int64(3600)}}))
		time.Sleep(time.Second)
		begin := time.Now()
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("stopping took %v", d)
		}
		r.start()
		got := f.await("return", isReturn(jidAt(1)))
		if got["return"] != "ERROR: the minion was stopped while this job ran" || got["retcode"] != int64(1) || got["success"] != false {
			t.Errorf("got %v", got)
		}
	})
}

func TestCrashedJobIsReportedNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, nil)
		if err := os.MkdirAll(filepath.Join(r.dir, "cache", "proc"), 0o750); err != nil {
			t.Fatal(err)
		}
		j, err := journal.Open(journal.Options{Path: filepath.Join(r.dir, "cache", "job_journal")})
		if err != nil {
			t.Fatal(err)
		}
		for i, fun := range []any{"state.apply", []any{"test.ping", "test.echo"}, "saltutil.find_job"} {
			e := journal.Entry{JID: jidAt(i), Master: "one:4506", At: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
				Job: map[string]any{"fun": fun, "arg": []any{"web"}, "user": "root", "metadata": map[string]any{"k": "v"}}}
			if first, err := j.Begin(e, true); !first || err != nil {
				t.Fatal(first, err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		r.start()
		got := f.await("report", isReturn(jidAt(0)))
		text := "ERROR: the job was interrupted: the minion stopped or crashed after it had begun at 2026-01-02T00:00:00Z. " +
			"It was not run again; what it did until then is unknown."
		delete(got, "ts")
		equal(t, map[string]any{"cmd": "_return", "id": "alpha", "jid": jidAt(0), "fun": "state.apply", "fun_args": []any{"web"}, "return": text,
			"retcode": int64(1), "success": false, "out": "nested", "user": "root", "metadata": map[string]any{"k": "v"}}, got)
		got = f.await("report", isReturn(jidAt(1)))
		equal(t, any(map[string]any{"test.ping": text, "test.echo": text}), got["return"])
		f.subscribed(1)
		wantNoRun(t, f, jidAt(9), jidAt(2))
		f.publish(jobMap(jidAt(0), "test.ping", nil))
		time.Sleep(time.Minute)
		if got := f.count(isReturn(jidAt(0))); got != 1 {
			t.Errorf("%d returns of the crashed job", got)
		}
	})
}

func TestSecondInstanceIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		newFake(t, n, "one:4506")
		r := newRig(t, n, nil)
		r.start()
		r.until(Connected)
		o := r.o
		o.OnState = nil
		m, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		wantExit(t, m.Run(t.Context()), 1, ErrRunning)
	})
}

func TestCacheJobs(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := connectedRig(t, n, f, map[string]any{"cache_jobs": true})
		ask(f, 1, "test.ping")
		got := r.m.cachedJob(jidAt(1))
		if got["return"] != true || got["fun"] != "test.ping" || got["jid"] != jidAt(1) {
			t.Errorf("cached: %v", got)
		}
		for _, jid := range []string{"../x", "/etc/passwd", "", "req"} {
			if got := r.m.cachedJob(jid); got != nil {
				t.Errorf("%q: %v", jid, got)
			}
		}
	})
}

func TestOnJobs(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, nil)
		var counts []int // the calls are in order, and the last before the end of the sleep
		r.o.OnJobs = func(n int) { counts = append(counts, n) }
		r.start()
		r.until(Connected)
		f.subscribed(1)
		for i := range 5 {
			ask(f, i, "test.ping")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		up, before := 0, 0
		for _, n := range counts {
			if n != before-1 && n != before+1 {
				t.Errorf("the numbers are %v", counts)
			}
			up += max(n-before, 0)
			before = n
		}
		if up != 5 || before != 0 {
			t.Errorf("the numbers are %v after five jobs", counts)
		}
	})
}

func TestPubRetOff(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := connectedRig(t, n, f, map[string]any{"pub_ret": false})
		f.publish(jobMap(jidAt(1), "test.ping", nil))
		time.Sleep(time.Minute)
		if f.count(isReturn(jidAt(1))) != 0 || len(r.m.spool.Pending()) != 0 {
			t.Error("a return was sent")
		}
	})
}

// A cache that cannot be written leaves the minion degraded, not deaf.
func TestUnwritableCacheStillAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := connectedRig(t, n, f, nil)
		// The directories vanish under the running minion: every write below them fails, also for root.
		for _, dir := range []string{"proc", "return_spool"} {
			path := filepath.Join(r.dir, "cache", dir)
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 5 {
			if got := ask(f, i, "test.pillar"); got["success"] != true || got["degraded"] == nil {
				t.Errorf("got %v", got)
			}
			// A ping needs no disk.
			if got := ask(f, 100+i, "test.ping"); got["return"] != true {
				t.Errorf("got %v", got)
			}
		}
		time.Sleep(time.Second)
		if len(r.m.spool.Pending()) != 0 {
			t.Error("acknowledged returns are kept")
		}
	})
}

// TestLogNamesAJobOnce: no line has the job id both in its text and beside it.
func TestLogNamesAJobOnce(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := connectedRig(t, n, f, nil)
		ask(f, 1, "test.ping")
		r.log.mu.Lock()
		defer r.log.mu.Unlock()
		lines := 0
		for _, line := range r.log.lines {
			switch strings.Count(line, jidAt(1)) {
			case 0:
			case 1:
				lines++
			default:
				t.Error(line)
			}
		}
		if lines < 3 {
			t.Errorf("%d lines name the job", lines)
		}
	})
}

// runner answers every command alike and remembers the last one.
type runner struct {
	last modules.Command
	out  modules.CommandResult
}

func (r *runner) Run(_ context.Context, c modules.Command) (modules.CommandResult, error) {
	r.last = c
	return r.out, nil
}

func TestSudoUser(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, map[string]any{"sudo_user": "dev", "config_dir": "/etc/salt"})
		run := &runner{out: modules.CommandResult{Stdout: []byte(`{"local": {"return": {"n": 1, "f": 1.5}, "retcode": 3, "out": "nested"}}`)}}
		r.o.Runner = run
		r.start()
		r.until(Connected)
		f.subscribed(1)
		got := ask(f, 1, "test.echo", "a b;$(c)", map[string]any{"__kwarg__": true, "k": []any{int64(1), "x"}},
			pairs("z", []any{pairs("y", "b c", "b", nil)}, "a", true))
		equal(t, map[string]any{"return": map[string]any{"n": int64(1), "f": 1.5}, "retcode": int64(3), "success": false, "out": "nested"}, got)
		equal(t, []string{"sudo", "-n", "-u", "dev", "--", "salt-call", "--out", "json", "--metadata", "--no-return-event", "-c", "/etc/salt", "--",
			"test.echo", "a b;$(c)", `{"z":[{"y":"b c","b":null}],"a":true}`, `k=[1,"x"]`}, run.last.Args)
		run.out = modules.CommandResult{ExitCode: 1, Stderr: []byte("sudo: no\n")}
		equal(t, map[string]any{"return": "sudo: no", "retcode": int64(1), "success": false}, ask(f, 2, "test.ping"))
	})
}

func TestMineIsSentAtStartAndByInterval(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, map[string]any{"mine_enabled": true, "mine_interval": int64(2), "mine_return_job": true, "startup_states": "sls", "sls_list": []any{"web"}})
		r.mods = append(r.mods, &modules.Module{Name: "mine", Funcs: []modules.Def{{Name: "update", Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return c.Master.Request(ctx, map[string]any{"cmd": "_mine", "data": map[string]any{"p": c.PillarData()["color"]}})
		}}}})
		r.start()
		r.until(Connected)
		mine := f.await("mine", func(m map[string]any) bool { return m["cmd"] == "_mine" })
		equal(t, any(map[string]any{"p": "blue"}), mine["data"])
		states := f.await("startup states", func(m map[string]any) bool { return m["fun"] == "state.sls" })
		if states["jid"] != "req" || states["return"] != "'state.sls' is not available." {
			t.Errorf("startup states: %v", states)
		}
		event := f.await("the event of the failure", func(m map[string]any) bool { return m["tag"] == "salt/startup/failed/"+r.m.ID() })
		failed, _ := event["data"].(map[string]any)
		if failed["fun"] != "state.sls" || failed["comment"] != "'state.sls' is not available." || failed["jid"] == "" {
			t.Errorf("the event tells %v", event)
		}
		if !r.log.has("The startup states failed") {
			t.Error("nothing in the log")
		}
		time.Sleep(9 * time.Minute)
		if got := f.count(func(m map[string]any) bool { return m["cmd"] == "_mine" }); got != 5 {
			t.Errorf("%d mine updates in nine minutes", got)
		}
		if got := f.count(func(m map[string]any) bool { return m["cmd"] == "_return" && m["fun"] == "mine.update" }); got != 5 {
			t.Errorf("%d mine returns in nine minutes", got)
		}
	})
}

// D20: a thousand jobs at once all finish, within the places there are.
func TestThousandJobsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, nil)
		var mu sync.Mutex
		now, most := 0, 0
		r.mods = append(r.mods, &modules.Module{Name: "many", Funcs: []modules.Def{{Name: "one", Run: func(context.Context, *modules.Call) (any, error) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			return true, nil
		}}}})
		r.start()
		r.until(Connected)
		f.subscribed(1)
		const jobs = 1000
		for i := range jobs {
			f.publish(jobMap(jidAt(i), "many.one", nil))
			if i%100 == 99 {
				time.Sleep(time.Millisecond) // the minion takes them; a subscriber has a limited queue
			}
		}
		for i := range jobs {
			f.await("return", isReturn(jidAt(i)))
		}
		mu.Lock()
		defer mu.Unlock()
		if most != defaultRunning {
			t.Errorf("%d ran at once, want %d", most, defaultRunning)
		}
	})
}

// CVE-2015-6918, CVE-2021-25284 and D25: what jobs and pillars carry is in no log, at any level.
func TestT7SecretsAreNotLogged(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		const canary = "c4n4ry-5ecret"
		f := newFake(t, n, "one:4506")
		f.pillar = map[string]any{"password": canary}
		r := connectedRig(t, n, f, map[string]any{"api_token": canary})
		ask(f, 1, "test.echo", canary)
		ask(f, 2, "test.echo", map[string]any{"__kwarg__": true, "text": canary})
		ask(f, 3, "test.pillar")
		ask(f, 4, []any{"test.echo", "test.fail"}, []any{canary}, []any{})
		f.stop()
		time.Sleep(time.Minute)
		f.restart()
		f.subscribed(1)
		ask(f, 5, "test.echo", canary)
		if r.log.has(canary) {
			t.Error("a secret is in the log")
		}
		filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
			info, ierr := d.Info()
			if err == nil && ierr == nil && !d.IsDir() && info.Mode().Perm()&0o077 != 0 && !strings.HasSuffix(path, ".pub") {
				t.Errorf("%s can be read by others (%v)", path, info.Mode())
			}
			return nil
		})
	})
}

func TestOldProcFilesAreRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		newFake(t, n, "one:4506")
		r := newRig(t, n, nil)
		dir := filepath.Join(r.dir, "cache", "proc")
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string]map[string]any{
			jidAt(1): {"pid": os.Getpid(), "fun": "a.b"}, jidAt(2): {"pid": 1 << 30, "fun": "a.b"},
			jidAt(3): {"pid": os.Getppid(), "fun": "a.b", "tgt": "salt-call"}, jidAt(4): {"pid": 1 << 30, "fun": "a.b", "tgt": "salt-call"},
		} {
			if err := os.WriteFile(filepath.Join(dir, name), pack(data), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r.start()
		r.until(Connected)
		left, _ := os.ReadDir(dir)
		if len(left) != 1 || left[0].Name() != jidAt(3) {
			t.Errorf("left: %v", left)
		}
	})
}

// TestSlowPillar: a pillar that comes after all of the time for its requests fails in stock's words, with the time that it took.
func TestSlowPillar(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := connectedRig(t, n, f, map[string]any{"request_channel_timeout": int64(2), "request_channel_tries": int64(3)})
		f.set(func() {
			f.answer = func(v protocol.Verified) (any, bool) {
				if v.Cmd() == "_pillar" {
					time.Sleep(time.Hour)
				}
				return nil, false
			}
		})
		_, err := r.m.eachLink()[0].freshPillar(t.Context(), "", "", nil)
		if err == nil || err.Error() != "Pillar timed out after 6 seconds" {
			t.Errorf("got %v", err)
		}
	})
}
