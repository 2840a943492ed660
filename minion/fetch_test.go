package minion

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// pairs is a map whose keys have an order.
func pairs(kv ...any) payload.OrderedMap {
	m := payload.OrderedMap{}
	for i := 0; i < len(kv); i += 2 {
		m = append(m, payload.Pair{Key: kv[i], Value: kv[i+1]})
	}
	return m
}

// TestAnnouncedJobs: a job that is only announced is fetched and then is as any other: it runs once, the minion's own policy counts, and
// what cannot be fetched has not been.
func TestAnnouncedJobs(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		inOrder := pairs("z", int64(1), "a", []any{pairs("y", nil, "b", int64(2))})
		returned := make(chan any, 4)
		jobs := map[string]any{
			jidAt(1): jobMap(jidAt(1), "test.echo", map[string]any{"arg": []any{"hunter2"}, "metadata": map[string]any{"k": "v"}}),
			jidAt(2): jobMap(jidAt(2), "test.fail", nil),
			jidAt(3): map[string]any{},
			jidAt(4): jobMap(jidAt(1), "test.ping", nil), // another job
			jidAt(5): jobMap(jidAt(5), protocol.FetchFun, nil),
			jidAt(6): "rubbish",
			jidAt(7): jobMap(jidAt(7), "test.ping", nil),
			jidAt(9): jobMap(jidAt(9), "test.echo", map[string]any{"arg": []any{inOrder}}),
		}
		f.identity.PromptReturns = true
		f.answer = func(v protocol.Verified) (any, bool) {
			if v.Load()["jid"] == jidAt(9) && v.Cmd() == "_return" {
				returned <- v.Load()["return"]
			}
			if v.Cmd() != protocol.FetchCmd {
				return nil, false
			}
			return jobs[v.Load()["jid"].(string)], true
		}
		r := connectedRig(t, n, f, map[string]any{"minion_deny_functions": []any{"test.fail"}})
		announce := func(jid, tgt string) {
			f.publish(protocol.Announce(jobMap(jid, "test.nothing", map[string]any{"tgt": tgt}), nil))
		}
		announce(jidAt(1), "*")
		ret := f.await("return", isReturn(jidAt(1)))
		if d := cmp.Diff([]any{"hunter2", "test.echo", map[string]any{"k": "v"}}, []any{ret["return"], ret["fun"], ret["metadata"]}); d != "" {
			t.Error(d)
		}
		announce(jidAt(9), "*")
		if d := cmp.Diff(any(inOrder), <-returned); d != "" {
			t.Error("dictionaries of a fetched job lost their order:", d)
		}
		announce(jidAt(2), "alpha")
		if ret := f.await("return", isReturn(jidAt(2))); ret["return"] != "ERROR executing 'test.fail': the policy of this minion does not allow test.fail (minion_deny_functions)" || ret["retcode"] != int64(1) {
			t.Error(ret)
		}
		for _, jid := range []string{jidAt(1), jidAt(3), jidAt(4), jidAt(5), jidAt(6)} {
			announce(jid, "*")
		}
		announce(jidAt(7), "beta") // is for another one
		wantNoRun(t, f, jidAt(8), jidAt(3), jidAt(4), jidAt(5), jidAt(6), jidAt(7))
		isFetch := func(jid string) func(map[string]any) bool {
			return func(m map[string]any) bool { return m["cmd"] == protocol.FetchCmd && m["jid"] == jid }
		}
		if f.count(isReturn(jidAt(1))) != 1 || f.count(isFetch(jidAt(1))) != 1 || f.count(isFetch(jidAt(7))) != 0 {
			t.Error("fetched or ran twice, or another's job")
		}
		if n := r.log.times("Cannot fetch a job"); n != 4 {
			t.Errorf("%d failures in the log, want 4", n)
		}
		// The start event said that this minion fetches: the master is one of ours.
		if e := f.await("start event", isEvent("salt/minion/alpha/start")); e["fetch"] != true || e["journal"] != true || e["journal_id"] == nil || e["journal_id"] == "" {
			t.Error(e)
		}
	})
}

// TestAnnouncedJobsWait: while a job is being fetched the minion says that it waits, whichever way it is asked; one that is told to end
// meanwhile answers and does not run, and one that cannot be had is not known any more.
func TestAnnouncedJobsWait(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		f.identity.PromptReturns = true
		const jobs = 4 // runs, is killed, is none, is terminated
		asked, gates := make(chan string, jobs), make(map[string]chan any)
		for i := range jobs {
			gates[jidAt(i+1)] = make(chan any)
		}
		f.answer = func(v protocol.Verified) (any, bool) {
			if v.Cmd() != protocol.FetchCmd {
				return nil, false
			}
			jid := v.Load()["jid"].(string)
			asked <- jid
			return <-gates[jid], true
		}
		connectedRig(t, n, f, nil)
		for i := range jobs {
			f.publish(protocol.Announce(jobMap(jidAt(i+1), "test.nothing", nil), nil))
			if jid := <-asked; jid != jidAt(i+1) {
				t.Fatal(jid)
			}
		}
		waits := func(jid string) map[string]any {
			return map[string]any{"jid": jid, "tgt": "*", "tgt_type": "glob", "fun": protocol.FetchFun, "arg": []any{}, "ret": "",
				"pid": int64(0), "queued": true, "queue_type": "process"}
		}
		none := map[string]any{}
		find := func(probe int, jid string, want any) {
			t.Helper()
			if d := cmp.Diff(want, ask(f, probe, "saltutil.find_job", jid)["return"]); d != "" {
				t.Error(d)
			}
		}
		find(11, jidAt(1), waits(jidAt(1)))
		find(12, jidAt(5), none)
		if d := cmp.Diff([]any{waits(jidAt(1)), waits(jidAt(2)), waits(jidAt(3)), waits(jidAt(4))}, ask(f, 13, "saltutil.running")["return"]); d != "" {
			t.Error(d)
		}
		for jid, fun := range map[string]string{jidAt(2): "saltutil.kill_job", jidAt(4): "saltutil.term_job"} {
			probe, sig := 14, 9
			if fun == "saltutil.term_job" {
				probe, sig = 15, 15
			}
			want := fmt.Sprintf("Signal %d sent to job %s at pid %d", sig, jid, os.Getpid())
			if got := ask(f, probe, fun, jid)["return"]; got != want {
				t.Error(got)
			}
		}
		for i, fun := range []string{"test.echo", "test.echo", "", "test.echo"} {
			jid := jidAt(i + 1)
			if fun == "" {
				gates[jid] <- map[string]any{}
				continue
			}
			gates[jid] <- jobMap(jid, fun, map[string]any{"arg": []any{"it ran"}})
		}
		for jid, want := range map[string]any{jidAt(1): "it ran", jidAt(2): "ERROR: the job was cancelled by a signal", jidAt(4): "ERROR: the job was cancelled by a signal"} {
			if got := f.await("return", isReturn(jid))["return"]; got != want {
				t.Error(jid, got)
			}
		}
		wantNoRun(t, f, jidAt(20), jidAt(3))
		for i := range jobs {
			find(30+i, jidAt(i+1), none)
		}
		if d := cmp.Diff([]any{}, ask(f, 40, "saltutil.running")["return"]); d != "" {
			t.Error(d)
		}
		f.publish(protocol.Announce(jobMap(jidAt(1), "test.nothing", nil), nil)) // ran before
		find(41, jidAt(1), none)
	})
}
