package master_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// hostile returns the values that the master must tolerate in any field of a request. The last one stands for a
// missing field.
func hostile(more ...any) []any {
	deep := any("x")
	for range 20 {
		deep = []any{deep}
	}
	return append(more, nil, true, int64(-1), int64(math.MaxInt64), math.NaN(), "", "*", "victim", "../victim", "/etc/passwd", "a\x00b", "{{ 7*7 }}", "(((((", strings.Repeat("A", 1<<17),
		[]byte{0xff, 0xfe}, []any{}, []any{nil, []any{"victim"}}, map[string]any{}, map[string]any{"victim": map[string]any{"": nil}}, deep, leftOut{})
}

type leftOut struct{}

// commands returns the commands that the master answers, encrypted and in the clear. It reads them from the source,
// so that TestHostileRequests also covers commands that are added later.
func commands(t *testing.T) (encrypted, clear []string) {
	t.Helper()
	var decls []ast.Decl
	for _, name := range []string{"requests/dispatch.go", "requests/door/door.go", "requests/door/verified.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		decls = append(decls, file.Decls...)
	}
	for _, d := range decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		add := func(exprs ...ast.Expr) {
			for _, e := range exprs {
				name := ""
				switch e := e.(type) {
				case *ast.BasicLit:
					name, _ = strconv.Unquote(e.Value)
				case *ast.SelectorExpr:
					name = map[string]string{"FetchCmd": protocol.FetchCmd, "ReturnsCmd": protocol.ReturnsCmd}[e.Sel.Name]
				}
				if name == "" {
					continue
				}
				if f.Name.Name == "clearRequest" {
					clear = append(clear, name)
				} else {
					encrypted = append(encrypted, name)
				}
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CaseClause:
				if f.Name.Name == "find" || f.Name.Name == "clearRequest" {
					add(n.List...)
				}
			case *ast.BinaryExpr: // for example v.Cmd() == "_pillar"
				call, ok := n.X.(*ast.CallExpr)
				if !ok || n.Op != token.EQL {
					break
				}
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Cmd" {
					add(n.Y)
				}
			}
			return true
		})
	}
	if len(encrypted) < len(saltFuncs) || len(clear) < 6 {
		t.Fatalf("so few: %v, %v", encrypted, clear)
	}
	return encrypted, clear
}

// TestHostileRequests sends every request that minions and tools can make, in both dialects, and in turn replaces
// each field by malformed values or leaves it out. The master must keep serving, reveal nothing about another minion,
// and change only what belongs to the sender.
func TestHostileRequests(t *testing.T) {
	t.Run("dialect 3", func(t *testing.T) { hostileRequests(t, false) })
	t.Run("dialect 2", func(t *testing.T) { hostileRequests(t, true) })
}

func hostileRequests(t *testing.T, old bool) {
	var log testlog.Buffer
	base := t.TempDir()
	minimum := 3
	if old {
		minimum = 2
	}
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Security: master.SecurityOptions{AuthRate: -1, MinimumVersion: minimum},
		Network:  master.NetworkOptions{Listen: zeromq.Listen},
		CacheDir: filepath.Join(base, "cache"), PKIDir: filepath.Join(base, "pki"),
		Files: master.FileOptions{Recv: true, FS: fstest.MapFS{"all/f": {Data: []byte("x")},
			"victim/f": {Data: []byte("canary-file")}},
			Access: func(f master.FileRequest) bool { return f.ID == "victim" || !strings.HasPrefix(f.Path, "victim") }}, Minions: master.MinionOptions{NoKeyRevoke: true, MineGet: map[string][]string{"victim": {".*"}}, Peer: map[string][]any{"asker": {"test\\..*"}}, PeerRun: map[string][]string{"asker": {"ours\\..*"}},
			Runner: func(_ context.Context, id, fun string, args []any, kw map[string]any) (any, error) {
				return []any{id, fun, args, kw}, nil
			}},
		Pillar: master.PillarOptions{Func: func(_ context.Context,
			q pillar.Request) (map[string]any, error) {
			return map[string]any{"secret": map[string]string{"victim": "canary-pillar"}[q.ID]}, nil
		}},
		Local: &master.Local{SockDir: shortDir(t)}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	victim, asker := r.accepted("victim", 1), r.accepted("asker", 2)
	victim.run = func(protocol.Job) (any, error) { return "canary-return", nil }
	victim.subscribe()
	if old {
		asker.old()
	}
	victim.must(object{"cmd": "_mine", "data": object{"f": "canary-mine"}})
	victim.must(object{"cmd": "_minion_event", "tag": "salt/minion/victim/start", "data": "started", "grains": object{"serial": "canary-grain"}})
	if _, err := r.Run(t.Context(), master.Job{JID: "20260101000000000000", Fun: "test.ping", Tgt: "victim"}); err != nil {
		t.Fatal(err)
	}
	const jid = "20260101000000000000"
	file := object{"path": "all/f", "saltenv": "base", "loc": int64(0), "gzip": int64(1), "prefix": "", "hash_type": "md5"}
	pub := object{"fun": "test.ping", "arg": []any{}, "tgt": "nobody", "tgt_type": "list", "ret": "", "tmo": int64(1), "form": "full", "no_parse": []any{}, "delimiter": ":", "id_": "victim"}
	tool := object{"fun": "test.ping", "arg": []any{}, "tgt": "*", "tgt_type": "glob", "ret": "", "jid": "", "key": "x", "user": "root", "kwargs": object{}, "token": "x", "eauth": "auto",
		"username": "root", "password": "x", "kwarg": object{}}
	loads := map[string]object{
		"_return":       {"jid": "20260101000000000001", "return": true, "retcode": int64(0), "success": true, "fun": "test.ping", "fun_args": []any{}, "out": "nested", "load": object{}, "user": "root"},
		"_minion_event": {"tag": "custom", "pretag": nil, "data": object{"a": int64(1)}, "events": []any{object{"tag": "custom", "data": object{}}}, "grains": object{}, "id_": "victim"},
		"_pillar": {"grains": object{"id": "victim"}, "saltenv": "base", "pillarenv": "base", "ver": "2", "ext": object{}, "pillar_override": object{}, "extra_minion_data": object{},
			"clean_cache": true},
		"_mine": {"data": object{"f": int64(1)}, "clear": false}, "_mine_get": {"tgt": "*", "fun": "f", "tgt_type": "glob", "expr_form": "glob", "regexp": false},
		"_mine_delete": {"fun": "f"}, "_mine_flush": {}, "_file_hash": file, "_file_hash_and_stat": file, "_file_find": file, "_serve_file": file, "_file_list": file,
		"_file_list_emptydirs": file, "_dir_list": file, "_symlink_list": file, "_file_envs": {}, "_master_opts": {"env_only": true}, "_master_tops": {"grains": object{}, "opts": object{}},
		"_file_recv": {"path": []any{"a"}, "loc": int64(0), "data": "x", "size": int64(1)}, "minion_pub": pub, "minion_publish": pub,
		"minion_runner": {"fun": "ours.do", "arg": []any{"x"}, "kwarg": object{}}, "pub_ret": {"jid": jid}, "revoke_auth": {}, "verify_minion": {"token": "x", "id_": "victim"},
		"_syndic_return":      {"load": []any{object{"jid": jid, "return": object{"victim": int64(1)}}}, "jid": jid, "return": object{"victim": int64(1)}, "fun": "f"},
		"_register_resources": {"resources": object{"victim": object{}}}, protocol.FetchCmd: {"jid": jid},
	}
	inClear := map[string]object{"publish": tool, "runner": tool, "wheel": tool, "mk_token": tool, "get_token": tool, protocol.ReturnsCmd: {"jid": jid, "ids": []any{"victim"}}, "ping": tool, "_send_pub": tool, "__init__": tool,
		"_auth": {"nonce": protocol.NewNonce(), "pub": asker.key.Public().Text(), "enc_algo": crypt.OAEPSHA1, "sig_algo": crypt.PKCS1v15SHA1, "token": make([]byte, 256),
			"autosign_grains": object{"a": int64(1)}, "fun": "test.ping", "tgt": "*"}}
	sealed, open := commands(t)
	for _, cmd := range append(sealed, saltFuncs...) {
		if loads[cmd] == nil {
			t.Errorf("%s is not tried", cmd)
		}
	}
	for _, cmd := range open {
		if inClear[cmd] == nil {
			t.Errorf("%s in clear is not tried", cmd)
		}
	}
	before := r.state(t, base)
	requests, pillars := 0, 0
	check := func(what string, v any, err error) {
		t.Helper()
		requests++
		if err != nil && !errors.Is(err, transport.ErrNoReply) && !strings.Contains(err.Error(), "reply") && !errors.Is(err, protocol.ErrReauth) {
			t.Errorf("%s: %v", what, err)
		}
		if text := fmt.Sprintf("%s", v); strings.Contains(text, "canary") {
			t.Errorf("%s answers with another minion's: %.300s", what, text)
		}
	}
	for _, cmd := range slices.Sorted(maps.Keys(loads)) {
		fields := append(slices.Sorted(maps.Keys(loads[cmd])), "nonce")
		for _, field := range fields {
			for i, x := range hostile(jid, []any{"victim"}) {
				if (cmd == "minion_publish" || cmd == "minion_pub") && field == "tgt" && slices.Contains([]string{"*", "victim", "[victim]"}, fmt.Sprint(x)) {
					continue // allowed: the answers are for asker
				}
				load := maps.Clone(loads[cmd])
				load["cmd"], load[field] = cmd, x
				if _, out := x.(leftOut); out {
					delete(load, field)
				}
				what := fmt.Sprintf("%s with %s number %d", cmd, field, i)
				if field == "nonce" { // the nonce is a field of every encrypted load
					if _, out := x.(leftOut); out {
						continue
					}
					v, err := asker.sendValue(forge(t, asker, "asker", "both", load))
					check(what, v, err)
					continue
				}
				if cmd == "_pillar" {
					p, err := asker.pillar(load)
					if pillars++; err != nil {
						pillars--
						err = fmt.Errorf("no reply: %w", err) // a refusal is not a pillar
					}
					check(what, p, err)
					continue
				}
				v, err := asker.call(load)
				check(what, v, err)
			}
		}
	}
	for cmd, fields := range inClear {
		for field := range fields {
			for i, x := range hostile() {
				load := maps.Clone(fields)
				load["cmd"], load[field] = cmd, x
				if cmd == "_auth" {
					load["id"] = "asker" // TestT1HostileIDs covers other ids
				}
				if _, out := x.(leftOut); out {
					delete(load, field)
				}
				v, err := asker.sendValue(object{"enc": "clear", "load": load, "version": int64(3)})
				what := fmt.Sprintf("%s in clear with %s number %d", cmd, field, i)
				check(what, v, err)
				if m, _ := v.(map[string]any); cmd != "ping" && cmd != "_auth" && m["load"] != nil {
					t.Errorf("%s did it: %v", what, v)
				}
			}
		}
	}
	if d := cmp.Diff(before, r.state(t, base)); d != "" {
		t.Errorf("what is not the asker's has changed:\n%s", d)
	}
	if text := log.String(); strings.Contains(text, "panic") || strings.Contains(text, "canary") {
		t.Errorf("the log:\n%.5000s", text)
	}
	asker.must(object{"cmd": "_file_envs"})
	if res, err := r.Run(t.Context(), master.Job{Fun: "test.ping", Tgt: "victim"}); err != nil || res["victim"].Return != "canary-return" {
		t.Error(res, err)
	}
	if pillars < 50 {
		t.Errorf("only %d pillars were read", pillars)
	}
	t.Logf("%d requests", requests)
}

// state returns hashes of the files that requests of the minion asker must not change, and the return of the minion
// victim.
func (r *rig) state(t *testing.T, base string) map[string]string {
	t.Helper()
	out := tree(t, base)
	maps.DeleteFunc(out, func(p, sum string) bool {
		return sum == "" || strings.Contains(p, "asker") || strings.Contains(p, "/cache/jobs/") || strings.Contains(p, "sessions") || strings.HasSuffix(p, ".lock")
	})
	res, err := r.Store().Returns(t.Context(), "20260101000000000000")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range res {
		if x.ID == "victim" {
			out["return of victim"] = fmt.Sprint(x.Load["return"])
		}
	}
	return out
}

// TestCVE_2025_22241_NoVirtKeys checks that a request cannot choose an external pillar or its arguments: stock's virtkey
// accepts a key under any name. Only the operator's external pillars are called, with the operator's arguments. No file
// of the PKI directory, or beside it, changes.
func TestCVE_2025_22241_NoVirtKeys(t *testing.T) {
	base := t.TempDir()
	pki := filepath.Join(base, "pki")
	var called []string
	ext := func(name string) pillar.ExtFunc {
		return func(_ context.Context, q pillar.ExtRequest) (any, error) {
			called = append(called, fmt.Sprintf("%s%v%v", name, q.Args, q.Kwargs))
			return object{name: "made"}, nil
		}
	}
	roots := pillar.NewRoots(pillar.RootsOptions{Roots: map[string][]string{},
		Opts: map[string]any{"ext_pillar": []any{object{"operators": "given"}}},
		Ext:  map[string]pillar.ExtFunc{"operators": ext("operators"), "virtkey": ext("virtkey")}})
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: false}, PKIDir: pki,
		CacheDir: filepath.Join(base, "cache"), Pillar: master.PillarOptions{Files: roots}})
	if err := r.Keys().Preseed("m", testKey(t, 1).Public().Text()); err != nil {
		t.Fatal(err)
	}
	m := r.accepted("m", 1)
	if _, err := m.pillar(object{"grains": object{"os": "Debian"}}); err != nil { // the master stores the minion's data now, not in the loop
		t.Fatal(err)
	}
	called = nil
	before := tree(t, base)
	requests := 0
	for _, name := range []string{"other", "../minions/other", "../../../pki/minions/other", "/etc/passwd", "", "a\x00b"} {
		key := testKey(t, 2).Public().Text()
		for _, ext := range []any{object{"virtkey": object{"name": name, "key": key}}, object{"virtkey": []any{name, key}},
			object{"virtkey": object{"hyper": name, "id_": name, "pub": "x"}}, []any{object{"virtkey": []any{name, key}}},
			object{"operators": name}} {
			for _, where := range []object{{"ext": ext}, {"ext_pillar": ext}, {"extra_minion_data": object{"ext": ext, "ext_pillar": ext}},
				{"pillar_override": object{"ext_pillar": ext, "master": object{"ext_pillar": ext}}}} {
				requests++
				where["grains"] = object{"id": name, "os": "Debian", "virtkey": name, "ext_pillar": ext}
				p, err := m.pillar(where)
				if err != nil || p["operators"] != "made" || p["virtkey"] != nil || p["_errors"] != nil {
					t.Errorf("%v: %v %v", where, p, err)
				}
			}
		}
	}
	if want := slices.Repeat([]string{"operators[given]map[]"}, requests); !slices.Equal(called, want) {
		t.Errorf("external pillars were called as %q", called)
	}
	after := tree(t, base)
	for _, files := range []map[string]string{before, after} { // but the data of the minion itself
		maps.DeleteFunc(files, func(p, _ string) bool {
			return slices.Contains([]string{"cache/grains/m.p", "cache/pillar/m.p", "cache/minions/m/data.p"}, strings.TrimPrefix(p, base+"/"))
		})
	}
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("files changed:\n%s", d)
	}
}

// TestCVE_2025_22240_NamesOfEnvironments checks that the name of an environment in a request does not create or
// remove a directory, and does not read files above the roots.
func TestCVE_2025_22240_NamesOfEnvironments(t *testing.T) {
	base, above := t.TempDir(), t.TempDir()
	dir := filepath.Join(above, "roots")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(above, "f"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		CacheDir: filepath.Join(base, "cache"), PKIDir: filepath.Join(base, "pki"),
		Files: master.FileOptions{Roots: map[string][]string{"base": {dir},
			"__env__": {dir + "/__env__"}}}})
	m := r.accepted("m", 1)
	if _, err := m.pillar(nil); err != nil { // the master stores the minion's grains now, not in the loop
		t.Fatal(err)
	}
	before := tree(t, base, dir)
	for _, env := range []string{"../../x", "..", "/tmp", "x/../../y", "a\x00b", "refs/heads/../../x", strings.Repeat("x", 5000), ".git", "-x"} {
		for _, cmd := range []string{"_file_find", "_file_hash", "_file_hash_and_stat", "_serve_file", "_file_list", "_dir_list", "_symlink_list", "_file_list_emptydirs"} {
			if v := m.must(object{"cmd": cmd, "saltenv": env, "path": "f", "loc": int64(0), "prefix": ""}); strings.Contains(fmt.Sprintf("%s", v), "secret") {
				t.Errorf("%s of the environment %q reads above the roots: %v", cmd, env, v)
			}
		}
		if _, err := m.pillar(object{"saltenv": env, "pillarenv": env}); err != nil {
			t.Error(env, err)
		}
	}
	if d := cmp.Diff(before, tree(t, base, dir)); d != "" {
		t.Errorf("files changed:\n%s", d)
	}
}
