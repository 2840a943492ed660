package master_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
)

// TestT23MatchedIsPublished checks that a job expects exactly the minions that Match returns for its target, because
// rules and limits are checked against these (CVE-2022-22941).
func TestT23MatchedIsPublished(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Security: master.SecurityOptions{AuthRate: -1}})
	var ids []string
	for i := range 12 {
		id := fmt.Sprintf("%c%d", 'a'+i%3, i)
		ids = append(ids, id)
		if err := r.Keys().Preseed(id, testKey(t, 1).Public().Text()); err != nil {
			t.Fatal(err)
		}
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		tgt, kind := ids[rnd.IntN(len(ids))], []string{"glob", "pcre", "list", "compound"}[rnd.IntN(4)]
		if rnd.IntN(2) == 0 {
			tgt = tgt[:1] + "*"
		}
		if kind == "list" && rnd.IntN(2) == 0 {
			tgt += "," + ids[rnd.IntN(len(ids))] + ",nobody"
		}
		matched, err := r.Match(kind, tgt)
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.Publish(t.Context(), master.Job{Fun: "test.ping", Tgt: tgt, TgtType: kind})
		var none *master.NoMinionsError
		if errors.As(err, &none) && len(matched) == 0 {
			continue
		}
		if d := cmp.Diff(matched, p.Minions); d != "" || err != nil {
			t.Fatalf("%s %s: %s %v", kind, tgt, d, err)
		}
	}
}

// TestCVE_2024_38822_TokenIsAlwaysChecked covers T26: the master refuses every request without the minion's own
// token, whatever its function.
func TestCVE_2024_38822_TokenIsAlwaysChecked(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	a, b := r.accepted("a", 1), r.accepted("b", 2)
	for _, cmd := range saltFuncs {
		for what, tok := range map[string]any{"absent": nil, "another's": b.requester.Token, "empty": []byte{}, "text": "salt", "number": 5, "zeros": make([]byte, 256), "long": make([]byte, 5000)} {
			load := map[string]any{"cmd": cmd, "tok": tok}
			e := forge(t, a, "a", "both", load)
			if what == "absent" {
				b, _ := payload.Marshal(map[string]any{"cmd": cmd, "id": "a", "nonce": protocol.NewNonce(), "ts": time.Now().Unix()})
				e["load"], _ = a.requester.Session.Seal(b, "")
			}
			if v, err := a.sendValue(e); err != nil || v != "bad load" {
				t.Fatalf("%s with token %s: %v %v", cmd, what, v, err)
			}
		}
	}
	// The right token is refused under another id, under an unknown id, and without an id outside the encrypted load.
	for _, e := range []map[string]any{
		{"enc": "aes", "version": 3, "id": "b", "load": forge(t, a, "a", "both", map[string]any{"cmd": "_file_envs"})["load"]},
		{"enc": "aes", "version": 3, "id": "stranger", "load": forge(t, a, "a", "both", map[string]any{"cmd": "_file_envs"})["load"]},
		{"enc": "aes", "version": 3, "load": forge(t, a, "a", "both", map[string]any{"cmd": "_file_envs"})["load"]},
	} {
		if v, err := a.sendValue(e); err != nil || v != "bad load" {
			t.Fatalf("%v %v", v, err)
		}
	}
	// A token of the minion's former key is refused for its new key, under either session.
	before := r.accepted("c", 1)
	if err := r.Keys().Delete("c"); err != nil {
		t.Fatal(err)
	}
	after := r.accepted("c", 2)
	for _, cmd := range saltFuncs {
		load := map[string]any{"cmd": cmd, "tok": before.requester.Token}
		for what, e := range map[string]map[string]any{"new": forge(t, after, "c", "both", load), "old": forge(t, before, "c", "both", load)} {
			if v, err := after.sendValue(e); err != nil || v != "bad load" {
				t.Fatalf("%s with the former token under the %s session: %v %v", cmd, what, v, err)
			}
		}
	}
	after.must(map[string]any{"cmd": "_file_envs"})
	// The shared key cannot take the place of a session key, because every minion knows it.
	shared := r.newMinion("a", 1)
	shared.requester = a.requester
	shared.requester.Session = a.signed.AES
	if _, err := shared.call(map[string]any{"cmd": "_file_envs"}); !errors.Is(err, protocol.ErrReauth) {
		t.Fatal(err)
	}
}

// TestCVE_2024_38823_Replay covers T27: the master accepts each request only once.
func TestCVE_2024_38823_Replay(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}, CacheDir: t.TempDir()})
	m := r.accepted("m", 1)
	ev := r.Events().Subscribe(events.SubscribeOptions{Prefix: "custom"})
	defer ev.Close()
	pack := func(load map[string]any, at time.Time) []byte {
		e, _, err := m.requester.Pack(load, at)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := e.Marshal()
		return b
	}
	now := time.Now()
	recorded := pack(map[string]any{"cmd": "_minion_event", "tag": "custom", "data": map[string]any{"n": 1}}, now)
	if v, err := m.send(recorded); err != nil || v == "bad load" {
		t.Fatal(v, err)
	}
	other := r.newMinion("x", 2)
	for range 3 {
		for _, c := range []*minion{m, other} { // on the same connection and on another one
			if v, err := c.send(recorded); err != nil || v != "bad load" {
				t.Fatal("replayed:", v, err)
			}
		}
	}
	if _, err := ev.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.must(map[string]any{"cmd": "_file_envs"}) // the minion's own requests still work
	// A time is compared with the minion's earlier times, not with the master's clock.
	for _, c := range []struct {
		name string
		at   time.Time
		ok   bool
	}{
		{"a little late", now.Add(-200 * time.Second), true},
		{"ahead of us", now.Add(time.Hour), true},
		{"now within the window of it", now.Add(56 * time.Minute), true},
		{"now before the window", now.Add(50 * time.Minute), false},
		{"long ago", now.Add(-time.Hour), false},
	} {
		v, err := m.send(pack(map[string]any{"cmd": "_file_envs"}, c.at))
		if err != nil || (v != "bad load") != c.ok {
			t.Errorf("%s: %v %v", c.name, v, err)
		}
	}
	// A minion whose clock jumped back signs in again and works. The recorded request is refused in its new session.
	if st := m.signIn(); st != protocol.Accepted {
		t.Fatal(st)
	}
	m.must(map[string]any{"cmd": "_file_envs"})
	if v, err := m.send(recorded); err != nil || v != "bad load" {
		t.Fatal("replayed under another session:", v, err)
	}
	// A minion's clock may be wrong by any amount, but each request must contain a time.
	far := r.accepted("far", 3)
	if v, err := far.sendValue(forge(t, far, "far", "both", map[string]any{"cmd": "_file_envs", "ts": int64(1000000)})); err != nil || v == "bad load" {
		t.Fatal(v, err)
	}
	for _, ts := range []any{nil, "now", 1.5} {
		if v, err := far.sendValue(forge(t, far, "far", "both", map[string]any{"cmd": "_file_envs", "ts": ts})); err != nil || v != "bad load" {
			t.Fatalf("time %v: %v %v", ts, v, err)
		}
	}
}

// TestPillarMayBeAskedAgain checks that the master answers the same pillar request twice. Stock minions send it again
// unchanged if no answer came in time.
func TestPillarMayBeAskedAgain(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	m := r.accepted("m", 1)
	e, nonce, err := m.requester.Pack(map[string]any{"cmd": "_pillar", "ver": "2", "grains": map[string]any{}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	b, _ := e.Marshal()
	for range 2 {
		v, err := m.send(b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := protocol.OpenPillar(v, m.key, m.signed.MasterKey, "", "", nonce); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRequestTTL checks Salt's request_server_ttl: older requests are refused. The option is off by default.
func TestRequestTTL(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Security: master.SecurityOptions{RequestTTL: time.Minute}})
	m := r.accepted("m", 1)
	for ts, ok := range map[int64]bool{time.Now().Unix(): true, time.Now().Add(-30 * time.Second).Unix(): true, time.Now().Add(-2 * time.Minute).Unix(): false} {
		v, err := m.sendValue(forge(t, m, "m", "both", map[string]any{"cmd": "_file_envs", "ts": ts}))
		if err != nil || (v != "bad load") != ok {
			t.Errorf("%d: %v %v", ts, v, err)
		}
	}
}

// TestCVE_2025_22236_MinionsDoNotPublish covers T29: nothing that a minion sends becomes a job unless a peer rule
// allows it.
func TestCVE_2025_22236_MinionsDoNotPublish(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	m := r.accepted("m", 1)
	victim := r.accepted("victim", 2).subscribe()
	job := map[string]any{"fun": "cmd.run", "arg": []any{"id"}, "tgt": "*", "tgt_type": "glob", "ret": "", "jid": "20260101000000000000", "user": "root"}
	for _, cmd := range append([]string{"publish", "_send_pub", "broadcast"}, saltFuncs...) {
		load := map[string]any{"cmd": cmd, "tag": "salt/job/20260101000000000000/publish", "data": job, "events": nil, "load": job, "enc": "aes"}
		for k, v := range job {
			load[k] = v
		}
		m.call(load)
		m.signIn() // some of the functions revoke the minion's key
	}
	m.must(map[string]any{"cmd": "_minion_event", "events": []any{map[string]any{"tag": "salt/job/x/publish", "data": job}, map[string]any{"tag": "x", "data": job}}})
	if _, err := r.Run(t.Context(), master.Job{Fun: "test.ping", Tgt: "victim"}); err != nil {
		t.Fatal(err)
	}
	if got := victim.got(); !cmp.Equal(got, []string{"test.ping"}) {
		t.Fatal(got)
	}
}

// TestCVE_2025_22237_NoPillarOnDemand checks that the master ignores the external pillar that a request names.
func TestCVE_2025_22237_NoPillarOnDemand(t *testing.T) {
	dir := t.TempDir()
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	m := r.accepted("m", 1)
	p, err := m.pillar(map[string]any{"ext": map[string]any{"git": []any{"base ext::sh -c touch% " + dir + "/owned"}}})
	if err != nil || len(p) != 0 {
		t.Fatal(p, err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 0 {
		t.Fatal(list)
	}
}

// TestCVE_2025_22239_EventInjection covers T30: the master refuses a minion's event if its tag has a meaning when a
// master fires it.
func TestCVE_2025_22239_EventInjection(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	m := r.accepted("m", 1)
	ev := r.Events().Subscribe(events.SubscribeOptions{})
	defer ev.Close()
	jid := "20260101000000000000"
	refused := []any{"salt/auth", "salt/key", "key", "salt/job/" + jid + "/new", "salt/job/" + jid + "/publish", "salt/job/" + jid + "/ret/m", "salt/job/" + jid + "/ret/other",
		"salt/job/" + jid + "/prog/other/1", "salt/job/" + jid, "salt/job", "salt/run/" + jid + "/new", "salt/wheel/" + jid + "/ret", "salt/cloud/x", "salt/cluster/x", "cluster/peer/x",
		"salt/presence/present", "salt/fileserver/roots/update", "salt/stats/1", "minion/refresh/other", "salt/minion/other/start", "salt/beacon/other/x", jid, jid + "/x", "syndic/x/y",
		"", "a\n\nb", "a\x00b", strings.Repeat("x", 2000), "salt/", "salt//auth", []byte("\xff"), int64(1), nil, "salt/auth/", "salt/key/x", "brine", "brine/minion", "brine/minion/other/x", "brine/x/m", "salt/startup/failed/other"}
	refused = append(refused, published(t)...)
	allowed := []string{"custom/tag", "minion_start", "salt/minion/m/start", "salt/beacon/m/load", "_salt_error", "minion_ping", "salt/job/" + jid + "/prog/m/1", "saltish/auth", "brine/minion/m/x", "salt/startup/failed/m", "netapi/hook"}
	for _, tag := range refused {
		m.must(map[string]any{"cmd": "_minion_event", "tag": tag, "data": map[string]any{"x": 1}})
		m.must(map[string]any{"cmd": "_minion_event", "events": []any{map[string]any{"tag": tag, "data": map[string]any{"x": 1}}}})
	}
	m.must(map[string]any{"cmd": "_minion_event", "pretag": "salt/job/" + jid, "events": []any{map[string]any{"tag": "new", "data": map[string]any{}}}})
	for _, tag := range allowed {
		m.must(map[string]any{"cmd": "_minion_event", "tag": tag, "data": map[string]any{"x": 1}})
	}
	var got []string
	for range len(allowed) + 1 {
		e, err := ev.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e.Tag); e.Tag != "new" && e.Data["id"] != "m" {
			t.Errorf("%s: %v", e.Tag, e.Data)
		}
	}
	if d := cmp.Diff(append([]string{"new"}, allowed...), got); d != "" {
		t.Error(d)
	}
}

// published returns an example tag for each event that the master and its program fire themselves. It finds the calls
// in their source, so that a new event is tested without a change here.
func published(t *testing.T) []any {
	var dirs []string
	for _, root := range []string{".", "../cmd/brine-master"} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() && e.Name() != "testdata" {
				dirs = append(dirs, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var tags []any
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(dir, err)
		}
		sources := map[string]*ast.File{}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			if sources[name], err = parser.ParseFile(token.NewFileSet(), name, nil, 0); err != nil {
				t.Fatal(err)
			}
		}
		for name, f := range sources {
			ast.Inspect(f, func(n ast.Node) bool {
				fun, ok := n.(*ast.FuncDecl)
				if !ok {
					return true
				}
				ast.Inspect(fun, func(n ast.Node) bool {
					call, ok := n.(*ast.CallExpr)
					if !ok {
						return true
					}
					sel, ok := call.Fun.(*ast.SelectorExpr)
					// Fire publishes an event of a runner or a tool. The tag may come from the user, so an unknown
					// one is not an error.
					if ok && sel.Sel.Name == "Fire" && len(call.Args) >= 3 {
						tags = append(tags, beginnings(fun, sources, call.Args[len(call.Args)-2])...)
					}
					if !ok || sel.Sel.Name != "Publish" || len(call.Args) != 2 {
						return true
					}
					if from, ok := sel.X.(*ast.SelectorExpr); !ok || !strings.EqualFold(from.Sel.Name, "events") && from.Sel.Name != "Bus" {
						if events, ok := sel.X.(*ast.CallExpr); !ok || types.ExprString(events.Fun) == "" || !strings.HasSuffix(types.ExprString(events.Fun), ".Events") {
							return true // this Publish sends a job, not an event
						}
					}
					found := beginnings(fun, sources, call.Args[0])
					if len(found) == 0 && name != filepath.Join("requests", "events.go") && name != filepath.Join("runner", "embedded.go") {
						t.Errorf("%s: the tag of %s is not known", name, types.ExprString(call))
					}
					tags = append(tags, found...)
					return true
				})
				return true
			})
		}
	}
	if len(tags) < 15 {
		t.Fatal("the source publishes only", tags)
	}
	return tags
}

// beginnings returns the texts with which the value of x can begin. A variable stands for the values that fun assigns
// to it, a constant for its value. A text that ends in "/" is completed with "other".
func beginnings(fun *ast.FuncDecl, files map[string]*ast.File, x ast.Expr) (out []any) {
	switch x := x.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		if err == nil && text != "" {
			out = append(out, strings.TrimSuffix(text, "/")+map[bool]string{true: "/other"}[strings.HasSuffix(text, "/")])
		}
	case *ast.BinaryExpr:
		return beginnings(fun, files, x.X)
	case *ast.Ident:
		ast.Inspect(fun, func(n ast.Node) bool {
			a, ok := n.(*ast.AssignStmt)
			if ok && a.Tok != token.ADD_ASSIGN && len(a.Lhs) == len(a.Rhs) {
				for i, to := range a.Lhs {
					if id, ok := to.(*ast.Ident); ok && id.Name == x.Name {
						out = append(out, beginnings(fun, files, a.Rhs[i])...)
					}
				}
			}
			return true
		})
		for _, f := range files {
			for _, d := range f.Decls {
				ast.Inspect(d, func(n ast.Node) bool {
					if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 && v.Names[0].Name == x.Name {
						out = append(out, beginnings(fun, files, v.Values[0])...)
					}
					return true
				})
			}
		}
	}
	return out
}

// TestCVE_2025_22242_JobIDs covers T31: the master ignores invalid job ids, and only the minion that published a job
// can read its returns.
func TestCVE_2025_22242_JobIDs(t *testing.T) {
	base := t.TempDir()
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		CacheDir: filepath.Join(base, "cache"), PKIDir: filepath.Join(base, "pki"),
		Minions: master.MinionOptions{Peer: map[string][]any{"a": {"test.*"}}},
		Local:   &master.Local{SockDir: shortDir(t)}})
	a, b := r.accepted("a", 1).subscribe(), r.accepted("b", 2).subscribe()
	pub := a.must(map[string]any{"cmd": "minion_pub", "fun": "test.ping", "arg": []any{}, "tgt": "*", "tgt_type": "glob", "ret": ""}).(map[string]any)
	eventually(t, "both returns", func() bool {
		v, _ := a.must(map[string]any{"cmd": "pub_ret", "jid": pub["jid"]}).(map[string]any)
		return cmp.Equal(v, map[string]any{"a": map[string]any{"ret": true}, "b": map[string]any{"ret": true}})
	})
	if v := b.must(map[string]any{"cmd": "pub_ret", "jid": pub["jid"]}); !cmp.Equal(v, any(map[string]any{})) {
		t.Fatal("another minion reads the returns:", v)
	}
	eventually(t, "both returns in the job cache", func() bool { // written after the store that pub_ret reads
		files, err := filepath.Glob(filepath.Join(base, "cache", "jobs", "*", "*", "[ab]", "return.p"))
		return err == nil && len(files) == 2
	})
	before := tree(t, base)
	for _, jid := range []any{"../../../etc/passwd", "..", "", "x", "20260101000000000000/../x", "2026010100000000000", int64(20260101000000000), nil, []any{}, "20260101000000000000_x",
		strings.Repeat("1", 20) + "_" + strings.Repeat("1", 5000)} {
		if v := a.must(map[string]any{"cmd": "pub_ret", "jid": jid}); !cmp.Equal(v, any(map[string]any{})) {
			t.Errorf("%.40v: %v", jid, v)
		}
		a.must(map[string]any{"cmd": "_return", "jid": jid, "return": 1, "fun": "f", "fun_args": []any{}})
	}
	if d := cmp.Diff(before, tree(t, base)); d != "" {
		t.Errorf("files changed:\n%s", d)
	}
}

func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "brine")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// TestCVE_2025_62349_OldDialects covers T32: the master refuses a peer that asks for an older dialect, which has
// fewer checks.
func TestCVE_2025_62349_OldDialects(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	m := r.accepted("m", 1)
	for _, version := range []any{int64(0), int64(1), int64(2), int64(-1), int64(math.MinInt64), "3", 3.0, 2.9, nil, []any{}, map[string]any{}, true, "x"} {
		for _, e := range []map[string]any{
			{"enc": "clear", "load": map[string]any{"cmd": "_auth", "id": "n", "nonce": protocol.NewNonce(), "pub": testKey(t, 2).Public().Text()}, "version": version},
			{"enc": "aes", "id": "m", "load": forge(t, m, "m", "both", map[string]any{"cmd": "_file_envs"})["load"], "version": version},
			{"enc": "clear", "load": map[string]any{"cmd": "ping"}, "version": version},
		} {
			if v, err := m.sendValue(e); err != nil || v != "bad load" {
				t.Errorf("version %v: %v %v", version, v, err)
			}
			delete(e, "version")
			if v, err := m.sendValue(e); err != nil || v != "bad load" {
				t.Errorf("no version: %v %v", v, err)
			}
		}
	}
	if r.Keys().State("n") != keys.Unknown {
		t.Fatal("a key came in by an old dialect")
	}
	// A version newer than the master's is treated as the master's own.
	v, err := m.sendValue(func() map[string]any {
		e := forge(t, m, "m", "both", map[string]any{"cmd": "_file_envs"})
		e["version"] = int64(math.MaxInt64)
		return e
	}())
	if err != nil || v == "bad load" {
		t.Fatal(v, err)
	}
}

// TestSignInsAreLimited checks that one address cannot keep the master busy with signatures, and that a minion that
// has signed in is still answered.
func TestSignInsAreLimited(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true, MaxPending: 2},
		Security: master.SecurityOptions{AuthRate: 0.001, AuthBurst: 3}})
	m := r.accepted("m", 1)
	m.signIn()
	m.signIn()
	e := map[string]any{"enc": "clear", "version": 3, "load": map[string]any{"cmd": "_auth", "id": "n", "nonce": protocol.NewNonce(), "pub": testKey(t, 2).Public().Text()}}
	if v, err := m.sendValue(e); err == nil {
		t.Fatal("the fourth sign-in was answered:", v)
	}
	m.must(map[string]any{"cmd": "_file_envs"})
}

// TestAnUnknownIDMakesNoFiles checks that no file is created for an id before its key is accepted (gotcha 40).
func TestAnUnknownIDMakesNoFiles(t *testing.T) {
	base := t.TempDir()
	r := serve(t, master.Options{PKIDir: filepath.Join(base, "pki"), CacheDir: filepath.Join(base, "cache")})
	m := r.newMinion("m", 1)
	key, err := crypt.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	m.requester = protocol.Requester{ID: "m", Session: key, Token: make([]byte, 256)}
	before := tree(t, base)
	for range 5 {
		if _, err := m.call(map[string]any{"cmd": "_file_envs"}); !errors.Is(err, protocol.ErrReauth) {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(before, tree(t, base)); d != "" {
		t.Fatal(d)
	}
}

// TestFileAccess checks that a file that a minion may not see does not exist for it, neither in requests nor in
// listings.
func TestFileAccess(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Files: master.FileOptions{FS: fstest.MapFS{"a/f": {Data: []byte("A")},
			"b/f": {Data: []byte("B")}},
			Access: func(f master.FileRequest) bool {
				return f.Env == "base" && (f.Path == f.ID || strings.HasPrefix(f.Path, f.ID+"/"))
			}}})
	a := r.accepted("a", 1)
	if v := a.must(map[string]any{"cmd": "_file_list", "saltenv": "base", "prefix": ""}); !cmp.Equal(v, any([]any{"a/f"})) {
		t.Fatal(v)
	}
	for path, want := range map[string]string{"a/f": "A", "b/f": "", "a/../b/f": "", "b/f?saltenv=base": "", "|b/f": ""} {
		v, _ := a.must(map[string]any{"cmd": "_serve_file", "path": path, "saltenv": "base", "loc": 0}).(map[string]any)
		if v["data"] != want {
			t.Errorf("%s: %v", path, v)
		}
	}
}

// TestFileAccessOfTenants checks that FileOptions.Access receives the minion's tenant.
func TestFileAccessOfTenants(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Network: master.NetworkOptions{Advertise: []string{"salt.example"}},
		Files: master.FileOptions{FS: fstest.MapFS{"blue/f": {Data: []byte("B")},
			"red/f": {Data: []byte("R")}},
			Access: func(f master.FileRequest) bool {
				return f.Tenant != "" && strings.HasPrefix(f.Path,
					f.Tenant+"/")
			}}})
	for id, tenant := range map[string]string{"b": "blue", "r": "red"} {
		if _, err := r.EnsureMinion(t.Context(), master.MinionSpec{ID: id, Tenant: tenant}); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]any{"b": []any{"blue/f"}, "r": []any{"red/f"}, "n": []any{}} {
		if v := r.accepted(id, 1).must(map[string]any{"cmd": "_file_list", "saltenv": "base", "prefix": ""}); !cmp.Equal(v, want) {
			t.Errorf("%s: %v", id, v)
		}
	}
}

// TestT4PillarBombs checks that YAML that expands without bounds, is nested too deeply or names Python objects
// results in an error within a minute (CVE-2013-4438, CVE-2025-62348).
func TestT4PillarBombs(t *testing.T) {
	dir := t.TempDir()
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	for name, content := range map[string]string{"top": "base:\n  bomb: [bomb]\n  python: [python]\n  deep: [deep]\n", "bomb": bomb.String(),
		"python": "x: !!python/object/apply:os.system ['touch " + dir + "/owned']\n", "deep": strings.Repeat("[", 100000)} {
		if err := os.WriteFile(filepath.Join(dir, name+".sls"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Pillar: master.PillarOptions{Roots: map[string][]string{"base": {dir}}}})
	for _, id := range []string{"bomb", "python", "deep"} {
		m := r.accepted(id, 1)
		start := time.Now()
		p, err := m.pillar(nil)
		if list, _ := p["_errors"].([]any); err != nil || len(list) != 1 || len(p) != 1 {
			t.Errorf("%s: %.200v %v", id, p, err)
		}
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%s took %v", id, d)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "owned")); err == nil {
		t.Fatal("a command was run")
	}
}

// TestT7NoSecretsInLogs checks that even the debug log contains no key, pillar value, argument or result
// (CVE-2015-6918, CVE-2021-25284).
func TestT7NoSecretsInLogs(t *testing.T) {
	var log testlog.Buffer
	cache := t.TempDir()
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}, CacheDir: cache,
		Pillar: master.PillarOptions{Func: pillar.Static(map[string]any{"password": "canary-pillar"})},
		Local:  &master.Local{SockDir: shortDir(t)}, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	m := r.accepted("m", 1)
	m.run = func(protocol.Job) (any, error) { return "canary-result", nil }
	m.subscribe()
	if _, err := m.pillar(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Run(t.Context(), master.Job{Fun: "cmd.run", Args: []any{"canary-argument"}, Kwargs: map[string]any{"password": "canary-keyword"}, Tgt: "*"}); err != nil {
		t.Fatal(err)
	}
	m.must(map[string]any{"cmd": "_mine", "data": map[string]any{"f": "canary-mine"}})
	root, err := os.ReadFile(filepath.Join(cache, ".root_key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{string(root), "canary-wrong-key"} {
		load := map[string]any{"cmd": "publish", "fun": "cmd.run", "arg": []any{"canary-argument"}, "tgt": "*", "tgt_type": "glob", "ret": "", "jid": "", "key": key, "user": "root"}
		if _, err := m.sendValue(map[string]any{"enc": "clear", "load": load, "version": 3}); err != nil {
			t.Fatal(err)
		}
	}
	r.end()
	text := log.String()
	for _, secret := range []string{"canary", string(root), m.signed.AES.Text(), m.requester.Session.Text(), "PRIVATE KEY"} {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("the log shows %.16q… in %q", secret, text[max(0, i-200):min(len(text), i+50)])
		}
	}
	if !strings.Contains(text, "Job published") {
		t.Fatal("the log is not talkative")
	}
}

// TestT8ModesOfFiles checks that other users of the host cannot read any file that holds a secret (CVE-2015-8034,
// CVE-2020-17490).
func TestT8ModesOfFiles(t *testing.T) {
	base := t.TempDir()
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		CacheDir: filepath.Join(base, "cache"), PKIDir: filepath.Join(base, "pki"),
		Files:  master.FileOptions{Recv: true},
		Pillar: master.PillarOptions{Func: pillar.Static(map[string]any{"s": 1})},
		Local:  &master.Local{SockDir: filepath.Join(shortDir(t), "run")}})
	m := r.accepted("m", 1).subscribe()
	if _, err := m.pillar(nil); err != nil {
		t.Fatal(err)
	}
	m.must(map[string]any{"cmd": "_mine", "data": map[string]any{"f": 1}})
	m.must(map[string]any{"cmd": "_file_recv", "path": []any{"a", "b"}, "loc": 0, "data": "x"})
	if _, err := r.Run(t.Context(), master.Job{Fun: "test.ping", Tgt: "*"}); err != nil {
		t.Fatal(err)
	}
	r.end()
	for p := range tree(t, base) {
		info, err := os.Lstat(p)
		if err != nil {
			t.Fatal(err)
		}
		public := strings.HasSuffix(p, "master.pub") || filepath.Base(filepath.Dir(p)) == "minions" && strings.Contains(p, "/pki/")
		if p == base || public {
			continue
		}
		if info.Mode().Perm()&0o007 != 0 {
			t.Errorf("%s: %v", strings.TrimPrefix(p, base), info.Mode())
		}
	}
}
