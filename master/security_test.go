package master_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// saltFuncs are all functions that stock masters expose to minions.
var saltFuncs = []string{"verify_minion", "_master_tops", "_master_opts", "_mine_get", "_mine", "_mine_delete", "_mine_flush",
	"_register_resources", "_file_recv", "_pillar", "_minion_event", "_return", "_syndic_return", "minion_runner", "pub_ret", "minion_pub",
	"minion_publish", "revoke_auth", "_serve_file", "_file_find", "_file_hash", "_file_hash_and_stat", "_file_list",
	"_file_list_emptydirs", "_dir_list", "_symlink_list", "_file_envs"}

// tree maps every path below dirs to a hash of its content.
func tree(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
			out[p] = ""
			if err == nil && e.Type().IsRegular() {
				b, _ := os.ReadFile(p)
				out[p] = fmt.Sprintf("%x", sha256.Sum256(b))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func hostileIDs() []any {
	ids := []any{"../x", "a/b", `a\b`, "a\x00b", "", ".", "..", strings.Repeat("a", 64<<10), []byte("\xff\xfe"), "~/../x", "/etc/passwd",
		"minions/../../x", "a\nb", "a\n", "\x7f", "a\u202eb", ".hidden", " a", "a ", int64(5), []any{"a"}, map[string]any{"a": 1}, nil, true, 1.5}
	parts := []string{"..", ".", "/", `\`, "\x00", "a", "~", "%2e%2e", "\r", "\t", "＼", "\u2028"}
	r := rand.New(rand.NewPCG(1, 2))
	for len(ids) < 500 {
		var b strings.Builder
		for range 2 + r.IntN(6) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		if id := b.String(); protocol.ValidID(id) != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// TestT1HostileIDs checks that an invalid id is refused everywhere and leaves no trace in the file system
// (CVE-2017-12791, CVE-2017-14695, CVE-2024-22231, CVE-2025-22238, and the unnumbered flaw of 2013).
func TestT1HostileIDs(t *testing.T) {
	base := t.TempDir()
	o := master.Options{Keys: master.KeyOptions{AutoAccept: true},
		PKIDir: filepath.Join(base, "pki"), CacheDir: filepath.Join(base, "cache"),
		Files: master.FileOptions{Recv: true}, Security: master.SecurityOptions{AuthRate: -1}}
	r := serve(t, o)
	m := r.accepted("good", 1)
	before := tree(t, base)
	for _, id := range hostileIDs() {
		load := map[string]any{"cmd": "_auth", "id": id, "nonce": protocol.NewNonce(), "pub": testKey(t, 2).Public().Text()}
		v, err := m.sendValue(map[string]any{"enc": "clear", "load": load, "version": 3})
		if err != nil {
			t.Fatalf("%.60q: %v", fmt.Sprint(id), err)
		}
		if reply, ok := v.(map[string]any); ok {
			inner, err := payload.UnmarshalRaw(asBytes(reply["load"]), payload.Limits{})
			if in, _ := payload.Map(inner); err != nil || in["ret"] != false {
				t.Fatalf("%.60q was answered with %v", fmt.Sprint(id), inner)
			}
		} else if s, _ := v.(string); !strings.HasPrefix(s, "bad load") {
			t.Fatalf("%.60q was answered with %v", fmt.Sprint(id), v)
		}
		// The same id is refused inside an encrypted load, outside it, and in both places.
		for _, where := range []string{"inside", "outside", "both"} {
			v, err := m.sendValue(forge(t, m, id, where, map[string]any{"cmd": "_file_envs"}))
			if s, _ := v.(string); err != nil || !strings.HasPrefix(s, "bad load") {
				t.Fatalf("%s %.60q: %v %v", where, fmt.Sprint(id), v, err)
			}
		}
	}
	if d := cmp.Diff(before, tree(t, base)); d != "" {
		t.Fatalf("files changed:\n%s", d)
	}
	m.must(map[string]any{"cmd": "_file_envs"})
}

func asBytes(v any) []byte {
	b, _ := payload.Bytes(v)
	return b
}

// forge packs a request whose id is not the minion's. where says whether the id is inside the encrypted load,
// outside it, or both.
func forge(t *testing.T, m *minion, id any, where string, load map[string]any) map[string]any {
	t.Helper()
	inner := map[string]any{"id": m.id, "nonce": protocol.NewNonce(), "ts": time.Now().Unix(), "tok": m.requester.Token}
	for k, v := range load {
		inner[k] = v
	}
	outer := map[string]any{"enc": "aes", "version": 3, "id": m.id}
	old := m.requester.Version == 2 // dialect 2 has no id outside
	if old {
		outer = map[string]any{"enc": "aes", "version": 2}
	}
	if where != "outside" {
		inner["id"] = id
	}
	if where != "inside" && !old {
		outer["id"] = id
	}
	b, err := payload.Marshal(inner)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := m.requester.Session.Seal(b, "")
	if err != nil {
		t.Fatal(err)
	}
	outer["load"] = sealed
	return outer
}

// TestT2WeakKeys checks that the master refuses a minion's key that is too short, too long or not a key
// (CVE-2013-2228).
func TestT2WeakKeys(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	m := r.newMinion("m", 1)
	const weak1024 = `-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCqGKukO1De7zhZj6+H0qtjTkVxwTCpvKe4eCZ0
FPqri0cb2JZfXJ/DgYSF6vUpwmJG8wVQZKjeGcjDOL5UlsuusFncCzWBQ7RKNUSesmQRMSGkVb1/
3j+skZ6UtW+5u09lHNsj6tQ51s1SPrCBkedbNf0Tp0GbMJDyR4e9T04ZZwIDAQAB
-----END PUBLIC KEY-----`
	for _, pub := range []string{weak1024, "", "garbage", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", strings.Repeat("A", 17<<10)} {
		v, err := m.sendValue(map[string]any{"enc": "clear", "version": 3, "load": map[string]any{"cmd": "_auth", "id": "m", "nonce": protocol.NewNonce(), "pub": pub}})
		reply, _ := v.(map[string]any)
		inner, _ := payload.Unmarshal(asBytes(reply["load"]))
		if in, _ := payload.Map(inner); err != nil || in["ret"] != false {
			t.Fatalf("%.40q: %v %v", pub, v, err)
		}
	}
	if st := r.Keys().State("m"); st != keys.Unknown {
		t.Fatal(st)
	}
}

// TestT3CompoundAndWrappedCalls checks that a peer rule is applied to every function of a compound job, and that no
// rule allows the functions that publish jobs themselves (CVE-2013-4435).
func TestT3CompoundAndWrappedCalls(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Minions: master.MinionOptions{Peer: map[string][]any{"web.*": {"test.ping", `test\.echo`},
			"db": {".*"}}}})
	web, db := r.accepted("web1", 1).subscribe(), r.accepted("db", 2)
	pub := func(m *minion, fun string, arg ...any) map[string]any {
		v, _ := m.must(map[string]any{"cmd": "minion_pub", "fun": fun, "arg": arg, "tgt": "*", "tgt_type": "glob", "ret": ""}).(map[string]any)
		return v
	}
	for _, fun := range []string{"cmd.run", "test.ping,cmd.run", "cmd.run,test.ping", "test.pingx", "xtest.ping", "test.ping,", ",", "", "test.ping\n",
		"test.echo,publish.publish", "publish.publish"} {
		if got := pub(web, fun, ""); len(got) != 0 {
			t.Errorf("%q: %v", fun, got)
		}
	}
	for _, fun := range []string{"publish.publish", "publish.full_data", "test.ping,publish.runner"} {
		if got := pub(db, fun, ""); len(got) != 0 {
			t.Errorf("%q of a minion that may everything: %v", fun, got)
		}
	}
	if t.Failed() {
		return // jobs that should have been refused are being delivered
	}
	got := pub(web, "test.ping,test.echo", "", "hi")
	if jid, _ := got["jid"].(string); !protocol.ValidJID(jid) || !cmp.Equal(got["minions"], any([]any{"db", "web1"})) {
		t.Fatal(got)
	}
	eventually(t, "the job", func() bool { return len(web.got()) == 1 })
	if fun := web.got()[0]; fun != "test.ping,test.echo" {
		t.Fatal(fun)
	}
}

// TestT5ForeignNames checks that a minion cannot act under another minion's id (CVE-2013-4439, CVE-2024-38822).
func TestT5ForeignNames(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}, CacheDir: t.TempDir(),
		Files: master.FileOptions{Recv: true}})
	a, b := r.accepted("a", 1), r.accepted("b", 2)
	b.must(map[string]any{"cmd": "_mine", "data": map[string]any{"f": "b's"}})
	for _, cmd := range saltFuncs {
		for _, where := range []string{"inside", "outside", "both"} {
			v, err := a.sendValue(forge(t, a, "b", where, map[string]any{"cmd": cmd, "data": map[string]any{"f": "a's"}, "fun": "f", "path": "x", "saltenv": "base",
				"jid": "20260101000000000000", "return": true, "tag": "t"}))
			if err != nil || v != "bad load" {
				t.Fatalf("%s %s: %v %v", cmd, where, v, err)
			}
		}
	}
	if got := a.must(map[string]any{"cmd": "_mine_get", "tgt": "*", "fun": "f"}); !cmp.Equal(got, any(map[string]any{"b": "b's"})) {
		t.Fatal(got)
	}
	// The sender's session determines whose return it is, not the fields of the load.
	ev := r.Events().Subscribe(events.SubscribeOptions{Prefix: "salt/job/"})
	defer ev.Close()
	jid := string(protocol.NewJID(time.Now()))
	a.must(map[string]any{"cmd": "_return", "jid": jid, "return": "x", "fun": "f", "fun_args": []any{}, "minion": "b"})
	if e, err := ev.Next(t.Context()); err != nil || e.Tag != "salt/job/"+jid+"/ret/a" {
		t.Fatal(e, err)
	}
}

// TestT11MalformedSignIns checks that a malformed request does not stop the master, delay other minions for long, or
// leave a goroutine behind (CVE-2017-14696, CVE-2023-20897).
func TestT11MalformedSignIns(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Security: master.SecurityOptions{AuthRate: -1},
		Network:  master.NetworkOptions{Listen: zeromq.Listen}})
	good := r.accepted("good", 1)
	bad := r.newMinion("bad", 2)
	values := []any{nil, true, int64(-1), int64(math.MaxInt64), 1.5, "", "x", strings.Repeat("x", 1<<16), []byte{0xff, 0}, []any{}, []any{[]any{[]any{}}},
		map[string]any{}, map[string]any{"a": map[string]any{}}, map[any]any{int64(1): 2}}
	base := map[string]any{"cmd": "_auth", "id": "bad", "nonce": protocol.NewNonce(), "pub": testKey(t, 2).Public().Text(), "enc_algo": "OAEP-SHA1",
		"sig_algo": "PKCS1v15-SHA1", "token": make([]byte, 256), "autosign_grains": map[string]any{"a": 1}}
	before := runtime.NumGoroutine()
	n := 0
	try := func(v any) {
		n++
		if _, err := bad.sendValue(v); err != nil && !strings.Contains(err.Error(), "no reply") {
			t.Fatalf("%.200v: %v", v, err)
		}
	}
	for key := range base {
		for _, v := range append(values, "missing") {
			load := map[string]any{}
			for k, x := range base {
				load[k] = x
			}
			load[key] = v
			if v == "missing" {
				delete(load, key)
			}
			try(map[string]any{"enc": "clear", "load": load, "version": 3})
		}
	}
	for _, key := range []string{"enc", "load", "version", "id", "sig", "enc_algo"} {
		for _, v := range values {
			try(map[string]any{"enc": "clear", "load": base, "version": 3, key: v})
			try(map[string]any{"enc": "aes", "load": make([]byte, 96), "version": 3, "id": "good", key: v})
		}
	}
	for _, v := range values {
		try(v)
	}
	for _, raw := range [][]byte{nil, {0xc1}, {0xdd, 0xff, 0xff, 0xff, 0xff}, []byte(strings.Repeat("\x81\xa1a", 5000)), []byte("\x82\xa3enc\xa5clear")} {
		n++
		if v, err := bad.send(raw); err == nil && !cmp.Equal(v, any(map[string]any{"msg": "bad load"})) {
			t.Fatalf("%q: %v", raw, v)
		}
	}
	start := time.Now()
	good.must(map[string]any{"cmd": "_file_envs"})
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("a good minion waits %v after %d bad requests", d, n)
	}
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before+8 })
}

// TestCVE_2020_11651_NothingInTheClear covers T13: without encryption only _auth and ping are answered, whatever the
// name of the function.
func TestCVE_2020_11651_NothingInTheClear(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	m := r.accepted("m", 1)
	names := append([]string{"publish", "get_token", "mk_token", "wheel", "runner", "_prep_auth_info", "_send_pub", "_prep_pub", "connect", "destroy",
		"__init__", "__class__", "__dict__", "expose_methods", "run_func", "_auth_", "Ping", "PING", "ping ", "_AUTH", "reqReturn", "Rotate", "Submit", "publish\x00"}, saltFuncs...)
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		b := make([]byte, 1+rnd.IntN(16))
		for i := range b {
			b[i] = "abcdefghijklmnopqrstuvwxyz_"[rnd.IntN(27)]
		}
		if s := string(b); s != "ping" && s != "_auth" {
			names = append(names, s)
		}
	}
	for _, name := range names {
		load := map[string]any{"cmd": name, "id": "m", "fun": "cmd.run", "arg": []any{"id"}, "tgt": "*", "tgt_type": "glob", "ret": "", "jid": "",
			"tok": m.requester.Token, "nonce": protocol.NewNonce(), "ts": time.Now().Unix(), "key": "x", "user": "root"}
		v, err := m.sendValue(map[string]any{"enc": "clear", "load": load, "version": 3, "id": "m"})
		if d := cmp.Diff(any(map[string]any{}), v); d != "" || err != nil {
			t.Fatalf("%q: %s %v", name, d, err)
		}
	}
	v, err := m.sendValue(map[string]any{"enc": "clear", "load": map[string]any{"cmd": "ping", "x": "y"}, "version": 3})
	if d := cmp.Diff(any(map[string]any{"cmd": "ping", "x": "y"}), v); d != "" || err != nil {
		t.Fatal(d, err)
	}
	// A request whose enc is neither clear nor aes is refused.
	for _, enc := range []any{"", "Clear", "clear ", "pub", "aes\x00", nil, int64(1)} {
		if v, err := m.sendValue(map[string]any{"enc": enc, "load": map[string]any{"cmd": "ping"}, "version": 3, "id": "m"}); err != nil || v != "bad load" {
			t.Errorf("enc %v: %v %v", enc, v, err)
		}
	}
	// An encrypted request cannot call the clear functions either.
	for _, name := range []string{"publish", "ping", "_auth", "wheel", "runner", "", "x", "__class__"} {
		v, err := m.call(map[string]any{"cmd": name})
		if name == "" {
			continue
		}
		if d := cmp.Diff(any(map[string]any{}), v); d != "" || err != nil {
			t.Errorf("%q: %s %v", name, d, err)
		}
	}
}

// TestCVE_2020_11652_FileTraversal covers T14 for the requests of a minion, and also CVE-2024-22232 and
// CVE-2021-25282. Package fileserver tests 2,000 spellings of such paths.
func TestCVE_2020_11652_FileTraversal(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(base, "secret"), []byte("SECRET"), 0o600)
	os.WriteFile(filepath.Join(root, "f"), []byte("public"), 0o600)
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Files: master.FileOptions{Roots: map[string][]string{"base": {root},
			"__env__": {base + "/__env__"}}}})
	m := r.accepted("m", 1)
	for _, p := range []any{"../secret", "/../secret", "x/../../secret", filepath.Join(base, "secret"), "|../secret", "f?saltenv=../", "..", []byte("../secret\xff"), int64(1), nil, []any{"secret"}} {
		for _, env := range []any{"base", "..", "../..", "", nil, int64(3)} {
			for cmd, want := range map[string]any{
				"_serve_file": map[string]any{"data": "", "dest": ""}, "_file_find": map[string]any{"path": "", "rel": ""},
				"_file_hash": "", "_file_hash_and_stat": []any{"", nil},
			} {
				got := m.must(map[string]any{"cmd": cmd, "path": p, "saltenv": env, "loc": 0})
				if d := cmp.Diff(want, got); d != "" {
					t.Fatalf("%s %v %v: %s", cmd, p, env, d)
				}
			}
		}
	}
}

// TestCVE_2024_38824_PushTraversal covers T14 for cp.push. It is off by default. When it is on, it writes only below
// the minion's directory, up to a limit for each file and a quota.
func TestCVE_2024_38824_PushTraversal(t *testing.T) {
	off := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		CacheDir: t.TempDir()})
	push := func(m *minion, loc int, data string, path ...any) any {
		return m.must(map[string]any{"cmd": "_file_recv", "path": path, "loc": loc, "data": data, "size": len(data)})
	}
	if v := push(off.accepted("m", 1), 0, "x", "f"); v != false {
		t.Fatal("pushing is on by default")
	}
	base := t.TempDir()
	cache := filepath.Join(base, "cache")
	on := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}, CacheDir: cache,
		Files: master.FileOptions{Recv: true, RecvMaxSize: 20 << 10, RecvQuota: 30 << 10}})
	m := on.accepted("m", 1)
	files := filepath.Join(cache, "minions", "m", "files")
	if v := push(m, 0, "hello ", "etc", "motd"); v != true {
		t.Fatal(v)
	}
	if v := push(m, 6, "world", "etc", "motd"); v != true {
		t.Fatal(v)
	}
	if b, err := os.ReadFile(filepath.Join(files, "etc/motd")); string(b) != "hello world" {
		t.Fatalf("%q %v", b, err)
	}
	if err := os.Symlink(base, filepath.Join(files, "out")); err != nil {
		t.Fatal(err)
	}
	before := tree(t, base)
	for _, p := range [][]any{{"..", "x"}, {"a", "..", "..", "..", "x"}, {"../x"}, {"a/../../../x"}, {".."}, {""}, {}, {"a\x00b"}, {`..\x`}, {int64(1)}, {"out", "x"}, {nil}, {"out"},
		{strings.Repeat("a/", 3000)}} {
		if v := push(m, 0, "x", p...); v != false {
			t.Errorf("%.60v was taken", p)
		}
	}
	for what, v := range map[string]any{
		"too large":      push(m, 0, strings.Repeat("x", 20<<10+1), "big"),
		"far offset":     m.must(map[string]any{"cmd": "_file_recv", "path": []any{"etc", "motd"}, "loc": int64(math.MaxInt64), "data": "x"}),
		"behind the end": push(m, 50, "x", "etc", "motd"),
		"negative":       m.must(map[string]any{"cmd": "_file_recv", "path": []any{"etc", "motd"}, "loc": -1, "data": "x"}),
		"no list":        m.must(map[string]any{"cmd": "_file_recv", "path": "f", "loc": 0, "data": "x"}),
	} {
		if v != false {
			t.Errorf("%s was taken", what)
		}
	}
	if d := cmp.Diff(before, tree(t, base)); d != "" {
		t.Errorf("files changed:\n%s", d)
	}
	// etc and etc/motd count as 4 KiB each.
	if v := push(m, 0, strings.Repeat("x", 20<<10), "a"); v != true {
		t.Fatal("within the quota:", v)
	}
	if v := push(m, 0, strings.Repeat("x", 6<<10), "b"); v != false {
		t.Fatal("over the quota:", v)
	}
	if v := push(m, 0, strings.Repeat("x", 10<<10), "a"); v != true {
		t.Fatal("a smaller file in the place of a larger one:", v)
	}
	if v := push(m, 0, strings.Repeat("x", 6<<10), "b"); v != true {
		t.Fatal("within the quota again:", v)
	}
}

// TestT12NothingElseListens checks that an embedded master opens only its two ports. The flaws of salt-api
// (CVE-2020-16846, CVE-2020-25592 and others) therefore do not apply to it.
func TestT12NothingElseListens(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("counts sockets in /proc")
	}
	count := func() int {
		n := 0
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if l, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.HasPrefix(l, "socket:") {
				n++
			}
		}
		return n
	}
	before := count()
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}, CacheDir: t.TempDir(),
		Network: master.NetworkOptions{Listen: zeromq.Listen}})
	if n := count() - before; n != 2 {
		t.Fatalf("%d sockets are open", n)
	}
	if r.PublishAddr().String() == r.RequestAddr().String() {
		t.Fatal("one port for both")
	}
}
