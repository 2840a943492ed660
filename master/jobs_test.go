package master_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
)

func nowUTC() time.Time { return time.Now().UTC() }

func TestTargets(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Jobs: master.JobOptions{Nodegroups: object{"webs": "web*", "both": "N@webs or db1"}}})
	for i, id := range []string{"web1", "web2", "db1"} {
		m := r.accepted(id, 1)
		if id == "db1" {
			continue // the master does not know db1's grains
		}
		if _, err := m.pillar(object{"grains": object{"os": []string{"Debian", "Alpine"}[i], "ipv4": []any{"10.0.0." + id[3:]}}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		kind string
		tgt  any
		want []string
	}{
		{"glob", "*", []string{"db1", "web1", "web2"}},
		{"", "web?", []string{"web1", "web2"}},
		{"pcre", "web[12]", []string{"web1", "web2"}},
		{"list", "web1,db1,nope", []string{"web1", "db1"}},
		{"list", []string{"db1"}, []string{"db1"}},
		{"", []string{"db1", "web*"}, []string{"db1"}},
		{"", []any{"web1"}, []string{"web1"}},
		{"grain", "os:Debian", []string{"web1"}},
		{"grain_pcre", "os:a.*", []string{"web2"}},
		{"compound", "web* and not G@os:Alpine", []string{"web1"}},
		{"compound", "not G@os:Debian", []string{"db1", "web2"}},
		{"nodegroup", "both", []string{"db1", "web1", "web2"}},
		{"ipcidr", "10.0.0.1", []string{"db1", "web1"}}, // db1's addresses are unknown, so it may match
	} {
		if got, err := r.Match(c.kind, c.tgt); err != nil || !cmp.Equal(got, c.want) {
			t.Errorf("%s %v: %v %v", c.kind, c.tgt, got, err)
		}
	}
	for _, c := range []struct{ kind, tgt string }{{"pcre", "("}, {"compound", "web1 or"}, {"nope", "x"}, {"nodegroup", "nope"}} {
		if got, err := r.Match(c.kind, c.tgt); err == nil {
			t.Errorf("%s %v: %v", c.kind, c.tgt, got)
		}
	}
	var none *master.NoMinionsError
	if _, err := r.Submit(t.Context(), master.Job{Fun: "test.ping", Tgt: "nobody*"}); !errors.As(err, &none) || none.Error() != "Master could not resolve minions for target nobody*" {
		t.Fatal(err)
	}
}

// TestAbsentMinionsAreNotAwaited checks that a run does not wait for minions that are certainly not connected. The
// timeout is longer than the identification of a connection takes.
func TestAbsentMinionsAreNotAwaited(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Jobs: master.JobOptions{Timeout: 3 * time.Second, GatherTimeout: time.Hour}})
	if err := r.Keys().Preseed("away", testKey(t, 2).Public().Text()); err != nil {
		t.Fatal(err)
	}
	r.accepted("here", 1).subscribe()
	for end := time.Now().Add(time.Minute); r.Named() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the connection is not identified")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := r.Run(ctx, master.Job{Fun: "test.ping", Tgt: "*"})
	if err != nil || got["here"].Status != master.Returned || got["away"].Status != master.NoReturn {
		t.Errorf("%v, %v", got, err)
	}
}

// TestLongJobsAreWaitedFor checks that a run waits longer for a minion that reports that the job is still running,
// and for no other minion.
func TestLongJobsAreWaitedFor(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Jobs: master.JobOptions{Timeout: 100 * time.Millisecond,
			GatherTimeout: 300 * time.Millisecond}})
	long, dead, quick := r.accepted("long", 1), r.accepted("dead", 2), r.accepted("quick", 3)
	var asked atomic.Int32
	long.run = func(j protocol.Job) (any, error) {
		if j.Fun[0] == "saltutil.find_job" {
			asked.Add(1)
			return object{"jid": j.Args[0][0], "fun": "test.sleep"}, nil
		}
		long.wg.Go(func() { // a job does not block the minion's other jobs
			for asked.Load() < 3 {
				time.Sleep(5 * time.Millisecond)
			}
			if _, err := long.call(protocol.Return{JID: j.JID, ID: "long", Fun: "test.sleep", Return: "slept", Retcode: 0, Success: true}.Load()); err != nil {
				t.Error(err)
			}
		})
		return nil, errSilent
	}
	dead.run = func(protocol.Job) (any, error) { return nil, errSilent }
	for _, m := range []*minion{long, dead, quick} {
		m.subscribe()
	}
	run, err := r.Submit(t.Context(), master.Job{Fun: "test.sleep", Args: []any{1}, Tgt: "*"})
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for {
		res, err := run.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, res.ID+" "+res.Status.String())
	}
	if d := cmp.Diff([]string{"quick returned", "long returned", "dead no return"}, order); d != "" {
		t.Error(d)
	}
	for _, f := range quick.got()[1:] {
		t.Error("a minion that returned was asked for", f)
	}
	if jobs, err := r.Store().Jobs(t.Context(), store.Filter{}); err != nil || len(jobs) != 1 {
		t.Errorf("find_job is in the store: %v %v", jobs, err)
	}
}

func TestACompoundJob(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	m := r.accepted("m", 1)
	m.run = func(j protocol.Job) (any, error) { return object{"a.b": j.Args[0], "c.d": j.Args[1]}, nil }
	m.subscribe()
	res, err := r.Run(t.Context(), master.Job{Steps: []master.Step{{Fun: "a.b", Args: []any{1}}, {Fun: "c.d", Kwargs: object{"k": "v"}}}, Tgt: "m", User: "me", Metadata: object{"x": "y"}})
	if d := cmp.Diff(any(object{"a.b": []any{int64(1)}, "c.d": []any{object{"__kwarg__": true, "k": "v"}}}), res["m"].Return); d != "" || err != nil {
		t.Fatal(d, err)
	}
	if j := m.jobs[0]; j.User != "me" || !cmp.Equal(j.Metadata, any(object{"x": "y"})) || !j.HasSerial {
		t.Fatalf("%+v", j)
	}
}

func TestRunEndsWithItsContextAndWithTheMaster(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	m := r.accepted("m", 1)
	m.run = func(protocol.Job) (any, error) { return nil, errSilent }
	m.subscribe()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if res, err := r.Run(ctx, master.Job{Fun: "f", Tgt: "*"}); !errors.Is(err, context.DeadlineExceeded) || len(res) != 0 {
		t.Fatal(res, err)
	}
	run, err := r.Submit(t.Context(), master.Job{Fun: "f", Tgt: "*"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := run.Next(context.Background())
		done <- err
	}()
	r.stop()
	select {
	case err := <-done:
		if !errors.Is(err, master.ErrNotServing) {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("Next waits for a master that is gone")
	}
}

func TestAChosenJobID(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	r.accepted("m", 1)
	jid := "20260101000000000001"
	if p, err := r.Publish(t.Context(), master.Job{Fun: "f", Tgt: "m", JID: jid}); err != nil || p.JID != jid {
		t.Fatal(p, err)
	}
	if _, err := r.Publish(t.Context(), master.Job{Fun: "f", Tgt: "m", JID: jid}); !errors.Is(err, store.ErrExists) {
		t.Fatal(err)
	}
	for _, bad := range []string{"x", "../x", "2026"} {
		if _, err := r.Publish(t.Context(), master.Job{Fun: "f", Tgt: "m", JID: bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if _, err := r.Publish(t.Context(), master.Job{Tgt: "m"}); err == nil {
		t.Error("a job without function was published")
	}
}

func TestJobEvents(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	r.accepted("m", 1).subscribe()
	ev := r.Events().Subscribe(events.SubscribeOptions{Prefix: "salt/job/"})
	defer ev.Close()
	if _, err := r.Run(t.Context(), master.Job{Fun: "test.ping", Tgt: []string{"m", "gone"}, TgtType: "list"}); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for range 3 {
		e, err := ev.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, strings.Split(e.Tag, "/")[3])
		if kinds[0] == "new" && len(kinds) == 1 && (!cmp.Equal(e.Data["minions"], any([]any{"m"})) || !cmp.Equal(e.Data["missing"], any([]any{"gone"}))) {
			t.Error(e)
		}
	}
	if d := cmp.Diff([]string{"new", "publish", "ret"}, kinds); d != "" {
		t.Error(d)
	}
}

func TestPresence(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Events: master.EventOptions{Presence: true}, LoopInterval: 20 * time.Millisecond})
	ev := r.Events().Subscribe(events.SubscribeOptions{Prefix: "salt/presence/change"})
	defer ev.Close()
	r.accepted("m", 1)
	if e, err := ev.Next(t.Context()); err != nil || !cmp.Equal(e.Data["new"], any([]any{"m"})) {
		t.Fatal(e, err)
	}
	if got := r.Present(); !cmp.Equal(got, []string{"m"}) {
		t.Fatal(got)
	}
	if err := r.Keys().Delete("m"); err != nil {
		t.Fatal(err)
	}
	if e, err := ev.Next(t.Context()); err != nil || !cmp.Equal(e.Data["lost"], any([]any{"m"})) {
		t.Fatal(e, err)
	}
}

func TestPublishFromTheCommandLine(t *testing.T) {
	cache := t.TempDir()
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}, CacheDir: cache,
		Local: &master.Local{SockDir: shortDir(t), ACL: map[string][]any{"fred": {"test.*"}}}})
	m := r.accepted("m", 1).subscribe()
	key := func(user string) string {
		b, err := os.ReadFile(filepath.Join(cache, "."+user+"_key"))
		if err != nil || len(b) != 76 {
			t.Fatal(len(b), err)
		}
		return string(b)
	}
	publish := func(user, key, fun any, extra object) any {
		t.Helper()
		load := object{"cmd": "publish", "fun": fun, "arg": []any{}, "tgt": "*", "tgt_type": "glob", "ret": "", "jid": "", "key": key, "user": user, "kwargs": object{"show_timeout": true}}
		for k, v := range extra {
			load[k] = v
		}
		v, err := m.sendValue(object{"enc": "clear", "load": load, "version": 3})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	ok := func(v any) bool {
		o, _ := v.(object)
		load, _ := o["load"].(object)
		jid, _ := load["jid"].(string)
		return protocol.ValidJID(jid) && cmp.Equal(load["minions"], any([]any{"m"}))
	}
	authentication := object{"error": object{"name": "AuthenticationError", "message": "Authentication error occurred."}}
	authorization := object{"error": object{"name": "AuthorizationError", "message": "Authorization error occurred."}}
	for name, v := range map[string]any{
		"root": publish("root", key("root"), "cmd.run", nil), "sudo": publish("sudo_fred", key("root"), "cmd.run", nil), "fred": publish("fred", key("fred"), "test.ping", nil),
		"fred asks for a job": publish("fred", key("fred"), "saltutil.find_job", nil), "another with root's key": publish("wilma", key("root"), "cmd.run", nil),
		"compound": publish("root", key("root"), []any{"test.ping", "test.version"}, object{"arg": []any{[]any{}, []any{}}}),
	} {
		if !ok(v) {
			t.Errorf("%s: %v", name, v)
		}
	}
	for name, v := range map[string]any{
		"no key": publish("root", "", "test.ping", nil), "wrong key": publish("root", strings.Repeat("A", 76), "test.ping", nil), "nil key": publish("root", nil, "test.ping", nil),
		"fred as root": publish("root", key("fred"), "test.ping", nil), "fred as sudo": publish("sudo_fred", key("fred"), "test.ping", nil),
		"fred as wilma": publish("wilma", key("fred"), "test.ping", nil), "token": publish("root", key("root"), "test.ping", object{"kwargs": object{"token": "x"}}),
		"eauth": publish("root", key("root"), "test.ping", object{"kwargs": object{"eauth": "pam", "username": "root", "password": "x"}}),
	} {
		if d := cmp.Diff(any(authentication), v); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	for name, v := range map[string]any{
		"fred runs a command": publish("fred", key("fred"), "cmd.run", nil), "fred smuggles": publish("fred", key("fred"), []any{"test.ping", "cmd.run"}, object{"arg": []any{[]any{}, []any{}}}),
		"fred sends odd things": publish("fred", key("fred"), []any{int64(1)}, nil), "fred sends nothing": publish("fred", key("fred"), []any{}, nil),
	} {
		if d := cmp.Diff(any(authorization), v); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	none, _ := publish("root", key("root"), "test.ping", object{"tgt": "nobody"}).(object)
	if load, _ := none["load"].(object); load["error"] != "Master could not resolve minions for target nobody" || load["jid"] != nil {
		t.Error(none)
	}
	// An invalid target results in the same error as a target that matches no minion.
	for kind, tgt := range map[string]string{"compound": "m or", "pcre": "(", "list_hosts": "m"} {
		bad, _ := publish("root", key("root"), "test.ping", object{"tgt": tgt, "tgt_type": kind}).(object)
		if load, _ := bad["load"].(object); load["error"] != "Master could not resolve minions for target "+tgt || load["jid"] != nil {
			t.Errorf("%s %s: %v", kind, tgt, bad)
		}
	}
	// The job is in Salt's job cache when the reply arrives, without the user's key.
	v, _ := publish("root", key("root"), "test.ping", object{"jid": "20260101000000000009"}).(object)
	dir := filepath.Join(cache, "jobs", protocol.JobDir("20260101000000000009", "sha256"))
	b, err := os.ReadFile(filepath.Join(dir, ".load.p"))
	if err != nil || strings.Contains(string(b), key("root")) || !strings.Contains(string(b), "show_timeout") {
		t.Fatalf("%v %q %v", v, b, err)
	}
	eventually(t, "the return in the job cache", func() bool {
		_, err := os.Stat(filepath.Join(dir, "m", "return.p"))
		return err == nil
	})
	// salt --batch publishes the same job id several times.
	if v := publish("root", key("root"), "test.ping", object{"jid": "20260101000000000009"}); !ok(v) {
		t.Error(v)
	}
}
