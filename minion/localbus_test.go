package minion

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// fireModule fires on the local bus, as event.fire does.
var fireModule = &modules.Module{Name: "event", Funcs: []modules.Def{
	{Name: "fire", Params: []modules.Param{{Name: "data"}, {Name: "tag"}}, Run: func(_ context.Context, c *modules.Call) (any, error) {
		return c.Agent.FireLocal(c.Str("tag"), c.Value("data")), nil
	}},
}}

// busRig is a minion with event sockets. It runs on the real clock, since sockets do.
func busRig(t *testing.T) (*fakeMaster, *rig, ipc.Sockets) {
	t.Helper()
	n := &mem.Network{}
	f := newFake(t, n, "one:4506")
	dir, err := os.MkdirTemp("", "bus") // the path of a unix socket is short; TempDir's may not be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r := newRig(t, n, map[string]any{"sock_dir": dir + "/run", "max_event_size": int64(2000)})
	r.mods = append(r.mods, fireModule)
	r.start()
	r.until(Connected)
	a, err := ipc.Minion(dir+"/run", "alpha", "sha256")
	if err != nil {
		t.Fatal(err)
	}
	return f, r, a
}

func listenTo(t *testing.T, r *rig, a ipc.Sockets) func(tag string) map[string]any {
	t.Helper()
	c, err := ipc.Dial(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	r.m.busServer().Admit()
	return func(tag string) map[string]any {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for {
			e, err := c.Next(ctx)
			if err != nil {
				t.Fatalf("waiting for %s: %v", tag, err)
			}
			if e.Tag == tag {
				return e.Data
			}
		}
	}
}

func TestLocalBus(t *testing.T) {
	f, r, a := busRig(t)
	next := listenTo(t, r, a)

	// A function of a job fires; large values are trimmed.
	long := make([]byte, 3000)
	for i := range long {
		long[i] = 'x'
	}
	f.subscribed(1)
	f.publish(jobMap(jidAt(1), "event.fire", map[string]any{"arg": []any{map[string]any{"a": int64(1), "long": string(long)}, "my/tag"}}))
	if got := f.await("return", isReturn(jidAt(1))); got["return"] != true {
		t.Errorf("event.fire returned %v", got["return"])
	}
	if d := next("my/tag"); d["a"] != int64(1) || d["long"] != "VALUE_TRIMMED" || d["_stamp"] == nil {
		t.Errorf("event %v", d)
	}

	// A program asks the minion to tell its master something.
	fire := func(tag string, data map[string]any) {
		t.Helper()
		if err := ipc.Fire(t.Context(), a, tag, data); err != nil {
			t.Fatal(err)
		}
	}
	fire("fire_master", map[string]any{"tag": "from/host", "data": map[string]any{"n": int64(7)}, "events": nil, "pretag": nil})
	got := f.await("event", isEvent("from/host"))
	if d, _ := payload.Map(got["data"]); d["n"] != int64(7) || got["id"] != "alpha" {
		t.Errorf("the master got %v", got)
	}
	if _, named := got["events"]; named { // a stock master takes what is there for a list
		t.Errorf("the master got events that nobody fired: %v", got)
	}
	next("fire_master")
	for tag, none := range map[string]any{"without/data": []any{}, "without/any": map[string]any{}} {
		fire("fire_master", map[string]any{"tag": tag, "data": nil, "events": none, "pretag": "pre"})
		got = f.await("event", isEvent(tag))
		if d, ok := payload.Map(got["data"]); !ok || len(d) != 0 || got["pretag"] != "pre" || got["events"] != nil {
			t.Errorf("the master got %v", got)
		}
	}
	fire("fire_master", map[string]any{"tag": nil, "data": nil, "events": []any{map[string]any{"tag": "one/of/many", "data": map[string]any{}}}, "pretag": nil})
	got = f.await("events", func(m map[string]any) bool { list, _ := m["events"].([]any); return len(list) == 1 })
	if _, named := got["tag"]; named {
		t.Errorf("the master got %v", got)
	}

	// Pillar is read again, and the listeners are told.
	pillars := f.count(func(m map[string]any) bool { return m["cmd"] == "_pillar" })
	fire("pillar_refresh", map[string]any{})
	if d := next(pillarRefreshed); d["complete"] != true {
		t.Errorf("event %v", d)
	}
	if n := f.count(func(m map[string]any) bool { return m["cmd"] == "_pillar" }); n <= pillars {
		t.Error("pillar was not fetched")
	}
	fire("module_refresh", map[string]any{"notify": true})
	next(modulesRefreshed)

	// A request in the name of a program.
	f.mu.Lock()
	f.answer = nil
	f.mu.Unlock()
	fire("__master_req_channel_payload/abc/one:4506", map[string]any{"cmd": "_return", "id": "alpha", "jid": jidAt(9), "return": "x"})
	if d := next("__master_req_channel_return/abc"); d["error"] != nil {
		t.Errorf("answer %v", d)
	}
	f.await("return", isReturn(jidAt(9)))

	// A salt-call fires on the daemon's bus, not on one of its own.
	call, err := New(r.o)
	if err != nil {
		t.Fatal(err)
	}
	res, err := call.Call(t.Context(), CallOptions{Fun: "event.fire", Args: []any{map[string]any{"from": "call"}, "call/tag"}, Local: true})
	if err != nil || res.Return != true {
		t.Fatalf("salt-call: %v %v", res.Return, err)
	}
	if d := next("call/tag"); d["from"] != "call" {
		t.Errorf("event %v", d)
	}

	// The end: files are gone, and a salt-call finds nobody.
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{a.Pub, a.Pull} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is left behind", path)
		}
	}
	res, err = call.Call(t.Context(), CallOptions{Fun: "event.fire", Args: []any{map[string]any{}, "call/tag"}, Local: true})
	if err != nil || res.Return != false {
		t.Errorf("salt-call without daemon: %v %v", res.Return, err)
	}
}

// TestLocalBusIsTakenOver: a minion that is started beside one that still ends has the event sockets when that one is gone.
func TestLocalBusIsTakenOver(t *testing.T) {
	n := &mem.Network{}
	newFake(t, n, "one:4506")
	dir, err := os.MkdirTemp("", "bus")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	a, err := ipc.Minion(dir+"/run", "alpha", "sha256")
	if err != nil {
		t.Fatal(err)
	}
	other := events.New(time.Now)
	defer other.Close()
	ending, err := ipc.Listen(other, ipc.Options{Sockets: a, DirMode: 0o755, PubMode: 0o600})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, n, map[string]any{"sock_dir": dir + "/run"})
	r.mods = append(r.mods, fireModule)
	r.start()
	r.until(Connected)
	if r.m.busServer() != nil || !r.log.has("The minion has no event sockets") {
		t.Fatal("the minion has sockets that another process serves")
	}
	if err := ending.Close(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); r.m.busServer() == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the minion does not take the sockets over")
		}
	}
	next := listenTo(t, r, a)
	call, err := New(r.o)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := call.Call(t.Context(), CallOptions{Fun: "event.fire", Args: []any{map[string]any{"n": int64(1)}, "call/tag"}, Local: true}); err != nil || res.Return != true {
		t.Fatalf("event.fire: %v %v", res.Return, err)
	}
	if d := next("call/tag"); d["n"] != int64(1) {
		t.Errorf("event %v", d)
	}
}

func TestLocalBusModes(t *testing.T) {
	_, _, a := busRig(t)
	for _, path := range []string{a.Pub, a.Pull} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", path, info, err)
		}
	}
}

// Ports in place of files, and an events socket that somebody else holds: the minion works without.
func TestLocalBusOnPorts(t *testing.T) {
	n := &mem.Network{}
	newFake(t, n, "one:4506")
	pub, pull := freeport.Port(t), freeport.Port(t)
	opts := map[string]any{"ipc_mode": "tcp", "tcp_pub_port": int64(pub), "tcp_pull_port": int64(pull)}
	r := newRig(t, n, opts)
	r.start()
	r.until(Connected)
	a := ipc.Ports(false, pub, pull)
	next := listenTo(t, r, a)
	if err := ipc.Fire(t.Context(), a, "over/tcp", map[string]any{"x": true}); err != nil {
		t.Fatal(err)
	}
	if d := next("over/tcp"); d["x"] != true {
		t.Errorf("event %v", d)
	}
	second := newRig(t, n, opts)
	second.start()
	second.until(Connected)
	if !second.log.has("The minion has no event sockets") {
		t.Error("nothing was said about the sockets")
	}
}
