package master_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
)

type object = map[string]any

func TestFileRequests(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"top.sls": "base: {}\n", "d/f": "0123456789", "d/empty/.": ""} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, ".") {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o640); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Symlink("top.sls", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Files: master.FileOptions{Roots: map[string][]string{"base": {dir}},
			FS: fstest.MapFS{"extra": {Data: []byte("x")}}, BufferSize: 4, HashType: "md5"}})
	m := r.accepted("m", 1)
	hash := object{"hash_type": "md5", "hsum": "781e5e245d69b566979b86e28d23f2c7"}
	for _, c := range []struct {
		load object
		want any
	}{
		{object{"cmd": "_file_envs"}, []any{"base"}},
		{object{"cmd": "_file_list", "saltenv": "base", "prefix": ""}, []any{"d/f", "extra", "link", "top.sls"}},
		{object{"cmd": "_file_list", "saltenv": "base", "prefix": "/d/"}, []any{"d/f"}},
		{object{"cmd": "_file_list", "saltenv": "nope", "prefix": ""}, []any{}},
		{object{"cmd": "_file_list"}, []any{}},
		{object{"cmd": "_dir_list", "saltenv": "base", "prefix": ""}, []any{"d", "d/empty"}},
		{object{"cmd": "_file_list_emptydirs", "saltenv": "base", "prefix": ""}, []any{"d/empty"}},
		{object{"cmd": "_symlink_list", "saltenv": "base", "prefix": ""}, object{"link": "top.sls"}},
		{object{"cmd": "_file_hash", "saltenv": "base", "path": "d/f"}, hash},
		{object{"cmd": "_file_hash", "saltenv": "base", "path": "nope"}, ""},
		{object{"cmd": "_serve_file", "saltenv": "base", "path": "d/f", "loc": 0}, object{"data": "0123", "dest": "d/f"}},
		{object{"cmd": "_serve_file", "saltenv": "base", "path": "d/f", "loc": 8}, object{"data": "89", "dest": "d/f"}},
		{object{"cmd": "_serve_file", "saltenv": "base", "path": "d/f", "loc": 10}, object{"data": "", "dest": "d/f"}},
		{object{"cmd": "_serve_file", "saltenv": "base", "path": "d/f"}, object{"data": "", "dest": ""}},
		{object{"cmd": "_serve_file", "saltenv": "base", "path": "extra", "loc": 0}, object{"data": "x", "dest": "extra"}},
		{object{"cmd": "_file_find", "saltenv": "base", "path": "nope"}, object{"path": "", "rel": ""}},
	} {
		if d := cmp.Diff(c.want, m.must(c.load)); d != "" {
			t.Errorf("%v: %s", c.load, d)
		}
	}
	found := m.must(object{"cmd": "_file_find", "saltenv": "base", "path": "d/f"}).(object)
	if found["rel"] != "d/f" || found["back"] != "roots" || found["path"] != filepath.Join(dir, "d/f") {
		t.Error(found)
	}
	st, _ := found["stat"].([]any)
	both := m.must(object{"cmd": "_file_hash_and_stat", "saltenv": "base", "path": "d/f"})
	if d := cmp.Diff(any([]any{hash, st}), both); d != "" || len(st) != 10 || st[6] != int64(10) || st[0] != int64(0o100640) {
		t.Error(d, st)
	}
	z := m.must(object{"cmd": "_serve_file", "saltenv": "base", "path": "d/f", "loc": 0, "gzip": 5}).(object)
	if b, ok := z["data"].([]byte); z["gzip"] != int64(5) || !ok || string(b[:2]) != "\x1f\x8b" {
		t.Error(z)
	}
}

func TestMine(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}, CacheDir: t.TempDir()})
	a, b := r.accepted("a", 1), r.accepted("b", 2)
	if _, err := a.pillar(object{"grains": object{"os": "Debian"}}); err != nil {
		t.Fatal(err)
	}
	set := func(m *minion, data object, clear bool) {
		t.Helper()
		if v := m.must(object{"cmd": "_mine", "data": data, "clear": clear}); v != true {
			t.Fatal(v)
		}
	}
	get := func(m *minion, tgt any, fun any, kind string) any {
		t.Helper()
		return m.must(object{"cmd": "_mine_get", "tgt": tgt, "fun": fun, "tgt_type": kind})
	}
	set(a, object{"net": []any{"10.0.0.1"}, "x": int64(1)}, false)
	set(a, object{"y": int64(2)}, false)
	set(b, object{"net": []any{"10.0.0.2"}, "private": object{"__saltmine_acl__": 1, "__data__": "s", "allow_tgt": "a"},
		"debian": object{"__saltmine_acl__": 1, "__data__": "d", "allow_tgt": "os:Debian", "allow_tgt_type": "grain"},
		"open":   object{"__saltmine_acl__": 1, "__data__": "o"}}, false)
	for _, c := range []struct {
		name string
		got  any
		want any
	}{
		{"glob", get(a, "*", "net", "glob"), object{"a": []any{"10.0.0.1"}, "b": []any{"10.0.0.2"}}},
		{"default type", a.must(object{"cmd": "_mine_get", "tgt": "b", "fun": "net"}), object{"b": []any{"10.0.0.2"}}},
		{"list", get(a, []any{"b", "nobody"}, "net", "list"), object{"b": []any{"10.0.0.2"}}},
		{"several", get(a, "a", "x,y", "glob"), object{"x": object{"a": int64(1)}, "y": object{"a": int64(2)}}},
		{"array", get(a, "a", []any{"x"}, "glob"), object{"x": object{"a": int64(1)}}},
		{"compound", get(b, "G@os:Debian", "x", "compound"), object{"a": int64(1)}},
		{"unknown function", get(a, "*", "nope", "glob"), object{}},
		{"bad target", get(a, "(", "x", "pcre"), object{}},
		{"allowed", get(a, "b", "private", "glob"), object{"b": "s"}},
		{"not allowed", get(b, "b", "private", "glob"), object{}},
		{"allowed by grain", get(a, "b", "debian", "glob"), object{"b": "d"}},
		{"not allowed by grain", get(b, "b", "debian", "glob"), object{}},
		{"wrapped for all", get(b, "b", "open", "glob"), object{"b": "o"}},
		{"delete", a.must(object{"cmd": "_mine_delete", "fun": "x"}), true},
		{"deleted", get(b, "a", "x", "glob"), object{}},
	} {
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	set(a, object{"only": int64(3)}, true)
	if got := get(b, "a", "y,only", "glob"); !cmp.Equal(got, any(object{"only": object{"a": int64(3)}})) {
		t.Error("cleared:", got)
	}
	if v := a.must(object{"cmd": "_mine_flush"}); v != true {
		t.Error(v)
	}
	if got := get(b, "*", "only", "glob"); !cmp.Equal(got, any(object{})) {
		t.Error("flushed:", got)
	}
}

func TestMineTargetsMatchPillarExactly(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Pillar: master.PillarOptions{Func: pillar.Static(object{"secret": "abc"})}})
	a, b := r.accepted("a", 1), r.accepted("b", 2)
	if _, err := a.pillar(nil); err != nil {
		t.Fatal(err)
	}
	a.must(object{"cmd": "_mine", "data": object{"x": int64(1)}})
	for _, c := range []struct {
		tgt, kind string
		want      int
	}{{"secret:a*", "pillar", 0}, {"secret:abc", "pillar", 1}, {"secret:a.*", "pillar_pcre", 0}, {"I@secret:a*", "compound", 0}, {"J@secret:a.*", "compound", 0}, {"I@secret:abc", "compound", 1}} {
		got := b.must(object{"cmd": "_mine_get", "tgt": c.tgt, "fun": "x", "tgt_type": c.kind}).(object)
		if len(got) != c.want {
			t.Errorf("%s %s: %v", c.kind, c.tgt, got)
		}
	}
}

func TestMineGetRules(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Minions: master.MinionOptions{MineGet: map[string][]string{"a": {"net.*"}}}})
	a, b := r.accepted("a", 1), r.accepted("b", 2)
	a.must(object{"cmd": "_mine", "data": object{"network": int64(1), "x": int64(2)}})
	for _, c := range []struct {
		m    *minion
		fun  string
		want object
	}{{a, "network", object{"a": int64(1)}}, {a, "x", object{}}, {a, "network,x", object{"network": object{"a": int64(1)}}}, {b, "network", object{}}} {
		if got := c.m.must(object{"cmd": "_mine_get", "tgt": "*", "fun": c.fun, "tgt_type": "glob"}); !cmp.Equal(got, any(c.want)) {
			t.Errorf("%s %s: %v", c.m.id, c.fun, got)
		}
	}
}

func TestPillar(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "top.sls"), []byte("base:\n  'G@os:Debian':\n    - deb\n"), 0o644)
	os.WriteFile(filepath.Join(dir, "deb.sls"), []byte("n:\n  a: 1\n"), 0o644)
	var asked pillar.Request
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Pillar: master.PillarOptions{Roots: map[string][]string{"base": {dir}},
			Func: func(_ context.Context, q pillar.Request) (map[string]any, error) {
				asked = q
				switch q.ID {
				case "fails":
					return nil, errors.New("secret reason")
				case "panics":
					panic("oops")
				}
				return object{"n": object{"b": int64(2)}, "id": q.ID}, nil
			}}})
	a := r.accepted("a", 1)
	got, err := a.pillar(object{"grains": object{"os": "Debian", "id": "forged"}, "pillar_override": object{"n": object{"a": int64(9)}}, "pillarenv": "base", "extra_minion_data": object{"k": "v"}})
	if d := cmp.Diff(object{"n": object{"a": int64(9), "b": int64(2)}, "id": "a"}, got); d != "" || err != nil {
		t.Fatal(d, err)
	}
	if asked.Grains["id"] != "a" || asked.Pillarenv != "base" || asked.Extra["k"] != "v" {
		t.Fatalf("%+v", asked)
	}
	if d, ok := r.Minion("a"); !ok || d.Grains["os"] != "Debian" || d.Pillar["id"] != "a" {
		t.Fatal(d, ok)
	}
	for _, id := range []string{"fails", "panics"} {
		m := r.accepted(id, 2)
		got, err := m.pillar(nil)
		if list, _ := got["_errors"].([]any); err != nil || len(list) != 1 || len(got) != 1 || strings.Contains(fmt.Sprint(list), "secret") {
			t.Errorf("%s: %v %v", id, got, err)
		}
	}
	if got, err := a.pillar(object{"grains": nil}); err != nil || len(got) != 0 {
		t.Fatal("pillar without grains:", got, err)
	}
}

// TestKeptPillar checks that with PillarOptions.CacheTTL a minion gets the cached pillar until its key is deleted.
func TestKeptPillar(t *testing.T) {
	made := int64(0)
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Pillar: master.PillarOptions{CacheTTL: time.Hour,
			Func: func(context.Context, pillar.Request) (map[string]any, error) {
				made++
				return object{"n": made}, nil
			}}})
	a := r.accepted("a", 1)
	for range 2 {
		if got, err := a.pillar(object{"pillarenv": "dev"}); err != nil || !cmp.Equal(got, object{"n": int64(1)}) {
			t.Error(got, err)
		}
	}
	if p, ok := r.KeptPillars().Shown("a", "dev"); !ok || !cmp.Equal(p, any(object{"n": int64(1)})) {
		t.Error(p, ok)
	}
	if err := r.Keys().Delete("a"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is kept for who is called so next", func() bool { _, ok := r.KeptPillars().Shown("a", "dev"); return !ok })
}

func TestMasterOptsAndTops(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Files: master.FileOptions{FS: fstest.MapFS{"f": {}}},
		Minions: master.MinionOptions{Opts: object{"failhard": true, "file_roots": "x"},
			Tops: func(_ context.Context, id string, opts map[string]any) (map[string]any, error) {
				return object{"base": []any{id, opts["k"]}}, nil
			}}, Jobs: master.JobOptions{Nodegroups: object{"g": "a*"}}})
	m := r.accepted("m", 1)
	got := m.must(object{"cmd": "_master_opts"}).(object)
	for key, want := range map[string]any{"failhard": true, "file_roots": object{"base": []any{}}, "nodegroups": object{"g": "a*"}} {
		if d := cmp.Diff(want, got[key]); d != "" {
			t.Errorf("%s: %s", key, d)
		}
	}
	if got := m.must(object{"cmd": "_master_tops", "opts": object{"k": "v"}}); !cmp.Equal(got, any(object{"base": []any{"m", "v"}})) {
		t.Error(got)
	}
}

func TestReturns(t *testing.T) {
	st := store.NewMemory()
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}, Store: st})
	m := r.accepted("m", 1)
	ev := r.Events().Subscribe(events.SubscribeOptions{Prefix: "salt/job/"})
	defer ev.Close()
	// The minion ran this job by itself, so the master creates the job id.
	if v := m.must(object{"cmd": "_return", "jid": "req", "fun": "state.sls", "fun_args": []any{"x"}, "return": object{"s": object{"result": false, "comment": "no"}, "t": object{"result": true}}, "retcode": 2, "success": false, "user": "root"}); v != nil {
		t.Fatal(v)
	}
	e, err := ev.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	jid := e.Text("jid")
	if !protocol.ValidJID(jid) || e.Tag != "salt/job/"+jid+"/ret/m" || e.Data["retcode"] != int64(2) {
		t.Fatal(e)
	}
	if e, err := ev.Next(t.Context()); err != nil || e.Tag != "salt/job/"+jid+"/sub/m/error/state.sls" || e.Data["comment"] != "no" {
		t.Fatal(e, err)
	}
	job, err := st.Job(t.Context(), jid)
	if err != nil || job.Fun != "state.sls" || job.Tgt != "m" || !cmp.Equal(job.Arg, []any{"x"}) || !cmp.Equal(job.Minions, []string{"m"}) || job.Load["return"] != nil {
		t.Fatal(job, err)
	}
	// A return for an unknown job of another time is not stored. A return that is sent twice is stored once.
	for range 2 {
		m.must(object{"cmd": "_return", "jid": "20260101000000000000", "fun": "f", "fun_args": []any{}, "return": "old"})
	}
	if got, _ := st.Returns(t.Context(), "20260101000000000000"); len(got) != 0 {
		t.Fatal("a return for a job of another time was stored:", got)
	}
	now := string(protocol.NewJID(nowUTC()))
	for i := range 2 {
		m.must(object{"cmd": "_return", "jid": now, "fun": "f", "fun_args": []any{}, "return": i})
	}
	if got, _ := st.Returns(t.Context(), now); len(got) != 1 || got[0].Load["return"] != int64(0) {
		t.Fatal(got)
	}
	// A return with the job id nocache fires an event, but is not stored.
	m.must(object{"cmd": "_return", "jid": "nocache", "fun": "f", "fun_args": []any{}, "return": "x"})
	for _, want := range []string{"salt/job/" + now + "/ret/m", "salt/job/nocache/ret/m"} {
		if e, err := ev.Next(t.Context()); err != nil || e.Tag != want {
			t.Fatal(e, err)
		}
	}
	// A request that is not a return is ignored.
	for _, load := range []map[string]any{{}, {"jid": now}, {"jid": "x", "return": 1, "fun": "f"}, {"return": 1}} {
		load["cmd"] = "_return"
		if v, err := m.call(load); err != nil {
			t.Fatal(load, v, err)
		}
	}
}

// failingStore is a store that cannot store returns.
type failingStore struct{ store.Store }

func (failingStore) SaveReturn(context.Context, store.Return) (bool, error) {
	return false, errors.New("disk full")
}

// TestReturnsAreAcknowledgedWhenStored checks that a return that could not be stored is not acknowledged, so that the
// minion sends it again.
func TestReturnsAreAcknowledgedWhenStored(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Store: failingStore{store.NewMemory()}})
	m := r.accepted("m", 1)
	if v, err := m.call(object{"cmd": "_return", "jid": string(protocol.NewJID(nowUTC())), "fun": "f", "fun_args": []any{}, "return": 1}); err == nil {
		t.Fatal("acknowledged:", v)
	}
	m.must(object{"cmd": "_file_envs"})
}

// fullStore is a store that cannot store jobs.
type fullStore struct{ store.Store }

func (fullStore) SaveJob(context.Context, store.Job) error {
	return errors.New("database or disk is full")
}

// TestPublishWithoutRoom checks that a job that cannot be stored is refused with the cause, and not as a target that
// matches no minion.
func TestPublishWithoutRoom(t *testing.T) {
	cache := t.TempDir()
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}, CacheDir: cache,
		Store: fullStore{store.NewMemory()},
		Local: &master.Local{SockDir: shortDir(t)}})
	m := r.accepted("m", 1)
	got, err := m.sendValue(object{"enc": "clear", "version": 3, "load": object{"cmd": "publish", "fun": "test.ping",
		"arg": []any{}, "tgt": "*", "tgt_type": "glob", "ret": "", "jid": "", "user": "root", "key": r.LocalKey("root"),
		"kwargs": object{}}})
	if err != nil {
		t.Fatal(err)
	}
	o, _ := got.(object)
	e, _ := o["error"].(object)
	text, _ := e["message"].(string)
	if o["load"] != nil || !strings.Contains(text, "database or disk is full") {
		t.Errorf("got %v", got)
	}
}

func TestPeerPublish(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Minions: master.MinionOptions{Peer: map[string][]any{"a": {".*"}},
			PeerRun: map[string][]string{"a": {"ours.*"}},
			Runner: func(_ context.Context, id, fun string, args []any, kw map[string]any) (any, error) {
				return []any{id, fun, args, kw}, nil
			}}})
	a, b := r.accepted("a", 1), r.accepted("b", 2).subscribe()
	b.run = func(j protocol.Job) (any, error) { return j.ArgValue(), nil }
	load := object{"cmd": "minion_publish", "fun": "test.arg", "arg": []any{"1", "k=2", "text"}, "tgt": "b", "tgt_type": "glob", "ret": "", "tmo": 5}
	if got := a.must(load); !cmp.Equal(got, any(object{"b": []any{int64(1), "text", object{"__kwarg__": true, "k": int64(2)}}})) {
		t.Error(got)
	}
	load["form"], load["no_parse"] = "full", []any{"*"}
	got, _ := a.must(load).(object)
	if full, _ := got["b"].(object); !cmp.Equal(full["ret"], any([]any{"1", "text", object{"__kwarg__": true, "k": "2"}})) {
		t.Error(got)
	}
	if got := b.must(load); !cmp.Equal(got, any(object{})) {
		t.Error("a minion without a rule publishes:", got)
	}
	load["tgt"] = "nobody"
	if got := a.must(load); !cmp.Equal(got, any(object{})) {
		t.Error(got)
	}
	run := object{"cmd": "minion_runner", "fun": "ours.do", "arg": []any{"x", "k=1"}}
	if got := a.must(run); !cmp.Equal(got, any([]any{"a", "ours.do", []any{"x"}, object{"k": int64(1)}})) {
		t.Error(got)
	}
	if got := b.must(run); !cmp.Equal(got, any(object{})) {
		t.Error(got)
	}
	run["fun"] = "other.do"
	if got := a.must(run); !cmp.Equal(got, any(object{})) {
		t.Error(got)
	}
}

func TestRevokeAuth(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	m := r.accepted("m", 1)
	if v := m.must(object{"cmd": "revoke_auth"}); v != true {
		t.Fatal(v)
	}
	if _, err := m.call(object{"cmd": "_file_envs"}); !errors.Is(err, protocol.ErrReauth) {
		t.Fatal(err)
	}
	refusing := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Minions: master.MinionOptions{NoKeyRevoke: true}})
	n := refusing.accepted("m", 1)
	if v := n.must(object{"cmd": "revoke_auth"}); v != false {
		t.Fatal(v)
	}
	n.must(object{"cmd": "_file_envs"})
}

func TestStartEventsBringGrains(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	m := r.accepted("m", 1)
	m.must(object{"cmd": "_minion_event", "tag": "salt/minion/m/start", "data": "Minion m started at …", "pretag": nil, "grains": object{"os": "Debian"}})
	if ids, err := r.Match("grain", "os:Debian"); err != nil || !cmp.Equal(ids, []string{"m"}) {
		t.Fatal(ids, err)
	}
}
