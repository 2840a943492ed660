package master_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// fetch reads a file piece by piece, as minions do, and returns its content and the number of pieces. It stops at a
// piece of more than 1 MiB.
func (m *minion) fetch(name string, gzip int64) (data []byte, pieces int) {
	m.t.Helper()
	for {
		v, _ := payload.Map(m.must(object{"cmd": "_serve_file", "path": name, "saltenv": "base", "loc": int64(len(data)), "gzip": gzip}))
		b, _ := payload.Bytes(v["data"])
		if s, ok := v["data"].(string); ok {
			b = []byte(s)
		}
		if len(b) == 0 || len(b) > 1<<20 {
			return data, pieces
		}
		data = append(data, b...)
		pieces++
	}
}

func (m *minion) hash(name string) string {
	m.t.Helper()
	v, _ := payload.Map(m.must(object{"cmd": "_file_hash", "path": name, "saltenv": "base"}))
	sum, _ := payload.Text(v["hsum"])
	return sum
}

func (m *minion) lists(cmd string) any {
	m.t.Helper()
	return m.must(object{"cmd": cmd, "saltenv": "base", "prefix": "_order"})
}

func carrying(id, tgt string) master.Order {
	o := order(id, "state.apply", tgt)
	o.Files = map[string]string{"config.sls": "a:\n  test.nop\n", "empty": "", "run.sh": "#!/bin/sh\necho hello\n"}
	o.Pillar = map[string]any{"app": map[string]any{"port": 80, "own": "order"}, "key": "order's"}
	return o
}

func TestFilesOfAnOrder(t *testing.T) {
	for _, hashType := range []string{"sha256", "md5"} {
		o := orderOptions()
		o.Files.HashType = hashType
		o.Files.FS = fstest.MapFS{"top.sls": {Data: []byte("base: {}\n")},
			"_order/o-1/config.sls": {Data: []byte("stolen")}}
		r := serve(t, o)
		m, other := r.accepted("m", 1), r.accepted("other", 2)
		big := make([]byte, 3*content.PieceSize+5)
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range big {
			big[i] = byte(rng.Uint32())
		}
		want := carrying("o-1", "m")
		want.FileStream = func(add func(string, io.Reader) error) error { return add("big", bytes.NewReader(big)) }
		out := cast(t, r, want)
		const at = "_order/o-1/"
		for name, data := range map[string][]byte{"config.sls": []byte(want.Files["config.sls"]), "run.sh": []byte(want.Files["run.sh"]), "big": big} {
			got, pieces := m.fetch(at+name, 0)
			if !bytes.Equal(got, data) || pieces != (len(data)+content.PieceSize-1)/content.PieceSize {
				t.Errorf("%s: %d bytes in %d pieces", name, len(got), pieces)
			}
			if hashType == "sha256" {
				if sum := sha256.Sum256(data); m.hash(at+name) != hex.EncodeToString(sum[:]) {
					t.Errorf("%s: hash %s", name, m.hash(at+name))
				}
			} else if len(m.hash(at+name)) != 32 {
				t.Errorf("%s: hash %s", name, m.hash(at+name))
			}
			if got, _ := other.fetch(at+name, 0); len(got) > 0 {
				t.Errorf("another minion reads %q", got)
			}
		}
		find, _ := payload.Map(m.must(object{"cmd": "_file_find", "path": at + "run.sh", "saltenv": "base"}))
		if stat, _ := payload.List(find["stat"]); find["rel"] != at+"run.sh" || find["back"] != "order" || len(stat) != 10 || stat[6] != int64(21) {
			t.Errorf("%v", find)
		}
		if m.hash(at+"empty") == "" || m.hash(at+"none") != "" || m.hash("_order/o-2/run.sh") != "" || m.hash("_order/o-1") != "" {
			t.Error("hashes of an empty file, and of none")
		}
		all := []any{at + "big", at + "config.sls", at + "empty", at + "run.sh"}
		if d := cmp.Diff(any(all), m.lists("_file_list")); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(any([]any{"_order", "_order/o-1"}), m.lists("_dir_list")); d != "" {
			t.Error(d)
		}
		for _, cmd := range []string{"_file_list", "_dir_list", "_file_list_emptydirs"} {
			if d := cmp.Diff(any([]any{}), other.lists(cmd)); d != "" {
				t.Error(cmd, d)
			}
		}
		if links := m.lists("_symlink_list"); !cmp.Equal(links, any(map[string]any{})) {
			t.Error(links)
		}
		if got, _ := m.fetch(at+"run.sh?saltenv=dev", 0); len(got) > 0 {
			t.Error("in another environment")
		}
		if got, _ := m.fetch("|"+at+"run.sh", 0); string(got) != want.Files["run.sh"] {
			t.Errorf("%q", got)
		}
		m.subscribe().started()
		waitFor(t, r, out.ID, "m")
		if got, _ := m.fetch(at+"run.sh", 0); len(got) > 0 || m.hash(at+"run.sh") != "" || len(m.lists("_file_list").([]any)) > 0 {
			t.Errorf("after the end: %q", got)
		}
	}
}

// TestFilesOfTenants checks that two tenants can have orders of the same id, and that each tenant's minion sees its
// own tenant's files.
func TestFilesOfTenants(t *testing.T) {
	o := orderOptions()
	o.Network.Advertise = []string{"127.0.0.1"}
	r := serve(t, o)
	ms := make(map[string]*minion)
	for i, name := range []string{"blue", "green"} {
		tenant, err := r.Tenant(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tenant.EnsureMinion(within(t), master.MinionSpec{ID: name + "-m", PublicKey: testKey(t, i+1).Public().Text()}); err != nil {
			t.Fatal(err)
		}
		want := order("same", "test.ping", name+"-m")
		want.Files = map[string]string{"whose": name}
		if _, err := tenant.PlaceOrder(within(t), want); err != nil {
			t.Fatal(err)
		}
		ms[name] = r.accepted(name+"-m", i+1)
	}
	for name, m := range ms {
		if got, _ := m.fetch("_order/same/whose", 0); string(got) != name {
			t.Errorf("%s reads %q", name, got)
		}
		if d := cmp.Diff(any([]any{"_order/same/whose"}), m.lists("_file_list")); d != "" {
			t.Error(d)
		}
	}
	bad := order("a.b", "test.ping", "blue-m")
	bad.Files = map[string]string{"x": ""}
	tenant, _ := r.Tenant("blue")
	if _, err := tenant.PlaceOrder(within(t), bad); !errors.Is(err, content.ErrBad) {
		t.Error(err)
	}
}

func TestPillarOfAnOrder(t *testing.T) {
	o := orderOptions()
	o.Pillar.Func = func(context.Context, pillar.Request) (map[string]any, error) {
		return map[string]any{"app": map[string]any{"name": "x", "own": "master"}}, nil
	}
	r := serve(t, o)
	m, other := r.accepted("m", 1), r.accepted("other", 2)
	seen, goOn := make(chan map[string]any, 1), make(chan struct{})
	own := map[string]any{"app": map[string]any{"name": "x", "own": "master"}}
	m.run = func(j protocol.Job) (any, error) {
		switch j.Fun[0] {
		case "saltutil.find_job":
			return object{"jid": j.Args[0][0]}, nil // it runs, also after started: the order is not sent again
		case "state.apply":
			p, err := m.pillar(nil)
			if err != nil {
				t.Error(err)
			}
			seen <- p
			<-goOn
		}
		return true, nil
	}
	is := func(who *minion, want map[string]any) {
		t.Helper()
		if got, err := who.pillar(nil); err != nil || cmp.Diff(any(want), any(got)) != "" {
			t.Error(cmp.Diff(any(want), any(got)), err)
		}
	}
	m.parallel = true
	out := cast(t, r, carrying("o-1", "m"))
	is(m, own) // the order has not been sent yet
	m.subscribe().started()
	with := map[string]any{"app": map[string]any{"name": "x", "own": "order", "port": int64(80)}, "key": "order's"}
	if d := cmp.Diff(with, <-seen); d != "" {
		t.Error(d)
	}
	is(other, own)
	// The pillar_override of a request takes precedence over the order's pillar.
	if got, err := m.pillar(map[string]any{"pillar_override": object{"key": "mine"}}); err != nil || got["key"] != "mine" {
		t.Error(got, err)
	}
	if d, _ := r.Minion("m"); cmp.Diff(own, d.Pillar) != "" {
		t.Errorf("the minion is remembered with %v", d.Pillar)
	}
	for _, tgt := range []string{"key:order's", "key:mine", "app:own:order"} {
		if ids, err := r.Match("pillar", tgt); err != nil || len(ids) > 0 {
			t.Error(tgt, ids, err)
		}
	}
	close(goOn)
	waitFor(t, r, out.ID, "m")
	is(m, own)
}

// TestPillarOverrideIsNoMembership checks that a minion that requests its pillar with overrides is not matched by
// pillar targets that name these values. This holds for everything that matches by pillar: targets of jobs, the
// fetching of announced jobs, mine values, and users' rules.
func TestPillarOverrideIsNoMembership(t *testing.T) {
	o := orderOptions()
	o.Pillar.Func = func(_ context.Context, r pillar.Request) (map[string]any, error) {
		return map[string]any{"role": map[string]any{"m": "web", "own": "db"}[r.ID]}, nil
	}
	r := serve(t, o)
	m, own := r.accepted("m", 1), r.accepted("own", 2).subscribe()
	own.starts(true)
	if _, err := own.pillar(nil); err != nil {
		t.Fatal(err)
	}
	own.must(object{"cmd": "_mine", "data": object{"f": object{"__saltmine_acl__": 1, "__data__": "secret", "allow_tgt": "role:db", "allow_tgt_type": "pillar"}}})
	auth, err := eauth.New(eauth.Options{Match: r.Match, Config: map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	rules := []any{map[string]any{"I@role:db": []any{".*"}}}
	for _, override := range []object{nil, {"role": "db", "mysecret": "X"}} {
		p, err := m.pillar(map[string]any{"pillar_override": map[string]any(override)})
		if err != nil || override != nil && p["mysecret"] != "X" {
			t.Fatal(p, err)
		}
		for tgt, want := range map[string]string{"role:web": "[m]", "role:db": "[own]", "mysecret:X": "[]"} {
			if ids, err := r.Match("pillar", tgt); err != nil || fmt.Sprint(ids) != want {
				t.Errorf("%v: %s: %v %v", override, tgt, ids, err)
			}
		}
		if _, err := r.Publish(within(t), master.Job{Fun: "test.arg", Args: []any{"x"}, Tgt: "mysecret:X", TgtType: "pillar"}); err == nil {
			t.Error("a job for nobody was published")
		}
		pub, err := r.Publish(within(t), master.Job{Fun: "test.arg", Args: []any{"x"}, Tgt: "role:db", TgtType: "pillar"})
		if err != nil || fmt.Sprint(pub.Minions) != "[own]" {
			t.Fatal(pub, err)
		}
		if got := m.must(object{"cmd": protocol.FetchCmd, "jid": pub.JID}); !cmp.Equal(got, any(object{})) {
			t.Errorf("%v: it fetched %v", override, got)
		}
		if got := own.must(object{"cmd": protocol.FetchCmd, "jid": pub.JID}).(object); len(got) == 0 {
			t.Errorf("%v: the minion that is meant fetched nothing", override)
		}
		if got := m.must(object{"cmd": "_mine_get", "tgt": "own", "fun": "f", "tgt_type": "glob"}); !cmp.Equal(got, any(object{})) {
			t.Errorf("%v: the mine gave %v", override, got)
		}
		for id, want := range map[string]bool{"m": false, "own": true} {
			if auth.Allows(rules, "test.ping", nil, "glob", id) != want {
				t.Errorf("%v: the rule about %s is %v", override, id, !want)
			}
		}
	}
}

func TestSameOrderWithContent(t *testing.T) {
	r := serve(t, orderOptions())
	base := func() master.Order {
		o := carrying("same", "m")
		o.Args = []any{"x"}
		return o
	}
	first := cast(t, r, base())
	again := cast(t, r, base())
	if again.JID != first.JID {
		t.Fatal(first, again)
	}
	// An order with the same content from a stream is the same order.
	streamed := base()
	file := streamed.Files["run.sh"]
	streamed.Files = map[string]string{"config.sls": streamed.Files["config.sls"], "empty": ""}
	streamed.FileStream = func(add func(string, io.Reader) error) error { return add("run.sh", strings.NewReader(file)) }
	if again := cast(t, r, streamed); again.JID != first.JID {
		t.Fatal(first, again)
	}
	for name, change := range map[string]func(o *master.Order){
		"file":       func(o *master.Order) { o.Files["run.sh"] += " " },
		"fewer":      func(o *master.Order) { delete(o.Files, "empty") },
		"more":       func(o *master.Order) { o.Files["more"] = "" },
		"pillar":     func(o *master.Order) { o.Pillar["key"] = "other" },
		"no pillar":  func(o *master.Order) { o.Pillar = nil },
		"args":       func(o *master.Order) { o.Args = []any{"y"} },
		"secret":     func(o *master.Order) { o.Secret = true },
		"no content": func(o *master.Order) { o.Files, o.Pillar = nil, nil },
	} {
		o := base()
		change(&o)
		if _, err := r.PlaceOrder(within(t), o); !errors.Is(err, master.ErrOrderDiffers) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, _ := store.ContentsOf(r.Store())
	if n, err := c.ContentSize(within(t), ""); err != nil || n > 2000 {
		t.Error("orders that were not placed left content:", n, err)
	}
}

// TestBadContent checks that PlaceOrder refuses content that an order cannot have, with an error that names the
// cause, and stores nothing.
func TestBadContent(t *testing.T) {
	o := orderOptions()
	o.Orders.Limits = content.Limits{Files: 3, Bytes: 1000, Pillar: 2000}
	r := serve(t, o)
	many := map[string]string{"a": "", "b": "", "c": "", "d": ""}
	stream := func(names ...string) func(add func(string, io.Reader) error) error {
		return func(add func(string, io.Reader) error) error {
			for _, n := range names {
				if err := add(n, strings.NewReader("x")); err != nil {
					return err
				}
			}
			return nil
		}
	}
	broken := errors.New("the line broke")
	for _, c := range []struct {
		name string
		o    master.Order
		want string
	}{
		{"parent", master.Order{ID: "a", Files: map[string]string{"..": ""}}, `file name ".." `},
		{"up", master.Order{ID: "a", Files: map[string]string{"../x": ""}}, "is a path"},
		{"dir", master.Order{ID: "a", Files: map[string]string{"x/y": ""}}, "is a path"},
		{"absolute", master.Order{ID: "a", Files: map[string]string{"/etc/passwd": ""}}, "is a path"},
		{"backslash", master.Order{ID: "a", Files: map[string]string{`..\x`: ""}}, "is a path"},
		{"control", master.Order{ID: "a", Files: map[string]string{"a\nb": ""}}, `"a\nb" may have letters`},
		{"query", master.Order{ID: "a", Files: map[string]string{"a?saltenv=dev": ""}}, "may have letters"},
		{"nul", master.Order{ID: "a", Files: map[string]string{"a\x00": ""}}, "may have letters"},
		{"unicode", master.Order{ID: "a", Files: map[string]string{"é": ""}}, "may have letters"},
		{"bad bytes", master.Order{ID: "a", Files: map[string]string{"a\xff": ""}}, "may have letters"},
		{"hidden", master.Order{ID: "a", Files: map[string]string{".ssh": ""}}, "begins or ends with a dot"},
		{"empty", master.Order{ID: "a", Files: map[string]string{"": ""}}, "empty name"},
		{"long", master.Order{ID: "a", Files: map[string]string{strings.Repeat("x", 129): ""}}, "129 bytes"},
		{"many", master.Order{ID: "a", Files: many}, "3 files"},
		{"large", master.Order{ID: "a", Files: map[string]string{"a": strings.Repeat("x", 600), "b": strings.Repeat("x", 401)}}, "1000 bytes"},
		{"twice", master.Order{ID: "a", Files: map[string]string{"a": ""}, FileStream: stream("b", "a")}, "two files"},
		{"stream", master.Order{ID: "a", FileStream: stream("../b")}, "is a path"},
		{"broken", master.Order{ID: "a", FileStream: func(add func(string, io.Reader) error) error {
			return add("x", io.MultiReader(strings.NewReader("part"), failing{broken}))
		}}, broken.Error()},
		{"ignored error", master.Order{ID: "a", FileStream: func(add func(string, io.Reader) error) error {
			_ = add("../b", strings.NewReader("x"))
			_ = add("b", strings.NewReader("x"))
			return nil
		}}, "is a path"},
		{"nil reader", master.Order{ID: "a", FileStream: func(add func(string, io.Reader) error) error {
			return add("x", nil)
		}}, "its reader is nil"},
		{"cut", master.Order{ID: "a", FileStream: func(add func(string, io.Reader) error) error {
			return add("x", io.MultiReader(strings.NewReader("part"), failing{io.ErrUnexpectedEOF}))
		}}, "unexpected EOF"},
		{"pillar", master.Order{ID: "a", Pillar: map[string]any{"a": strings.Repeat("x", 3000)}}, "pillar of an order"},
		{"what pillar", master.Order{ID: "a", Pillar: map[string]any{"a": func() {}}}, "pillar"},
		{"arguments", master.Order{ID: "a", Secret: true, Job: master.Job{Args: []any{strings.Repeat("x", 3000)}}}, "arguments of an order"},
		{"no id", master.Order{Files: map[string]string{"a": ""}}, "needs an id"},
		{"slash", master.Order{ID: "a/b", Files: map[string]string{"a": ""}}, `id "a/b"`},
		{"dot", master.Order{ID: "..", Files: map[string]string{"a": ""}}, `id ".."`},
		{"long id", master.Order{ID: strings.Repeat("a", 129), Files: map[string]string{"a": ""}}, "1 to 128"},
		{"id é", master.Order{ID: "é", FileStream: stream("a")}, `id "é"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Fun, c.o.Tgt, c.o.TgtType = "test.ping", "m", "list"
			_, err := r.PlaceOrder(within(t), c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, not %s", err, c.want)
			}
			if _, err := r.Order(within(t), c.o.ID); !errors.Is(err, store.ErrNotFound) {
				t.Error("it was placed:", err)
			}
			contents, _ := store.ContentsOf(r.Store())
			if n, err := contents.ContentSize(within(t), ""); n != 0 || err != nil {
				t.Error("it left", n, "bytes", err)
			}
		})
	}
	if out := cast(t, r, func() master.Order { o := carrying("a", "m"); return o }()); out.ID != "a" {
		t.Error(out)
	}
}

// TestFilesAfterFileStream checks that a file that comes after FileStream has returned is refused, and not lost.
func TestFilesAfterFileStream(t *testing.T) {
	r := serve(t, orderOptions())
	var late func(string, io.Reader) error
	o := master.Order{ID: "a", Job: master.Job{Fun: "test.ping", Tgt: []string{"m"}}}
	o.FileStream = func(add func(string, io.Reader) error) error {
		late = add
		return add("in-time", strings.NewReader("x"))
	}
	if _, err := r.PlaceOrder(within(t), o); err != nil {
		t.Fatal(err)
	}
	if err := late("late", strings.NewReader("x")); err == nil || !strings.Contains(err.Error(), "FileStream has returned") {
		t.Error(err)
	}
	if o, err := r.Order(within(t), "a"); err != nil || !slices.Equal(o.FileNames, []string{"in-time"}) {
		t.Error(o.FileNames, err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestTotalContentIsBounded(t *testing.T) {
	o := orderOptions()
	o.Orders.Limits.Total = 3000
	r := serve(t, o)
	var err error
	n := 0
	for ; n < 100 && err == nil; n++ {
		o := carrying(fmt.Sprint("o", n), "m")
		o.Files["more"] = strings.Repeat("x", 700)
		_, err = r.PlaceOrder(within(t), o)
	}
	if !errors.Is(err, master.ErrBusy) || n < 2 || n > 4 {
		t.Fatal(n, err)
	}
	if _, err := r.CancelOrder(within(t), "o0"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.CancelOrder(within(t), "o1"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is room", func() bool {
		_, err := r.PlaceOrder(within(t), carrying("again", "m"))
		return err == nil
	})
}

// TestRefusedForAll checks that an order that is refused for all its minions stores no content.
func TestRefusedForAll(t *testing.T) {
	o := orderOptions()
	o.Orders.Authorize = func(context.Context, master.Order,
		string) error {
		return errors.New("no")
	}
	r := serve(t, o)
	out := cast(t, r, carrying("o", "m"))
	contents, _ := store.ContentsOf(r.Store())
	if n, err := contents.ContentSize(within(t), ""); !out.Done || n != 0 || err != nil {
		t.Error(out, n, err)
	}
	if again := cast(t, r, carrying("o", "m")); again.JID != out.JID {
		t.Error(again)
	}
}

func TestOrdersByMetadata(t *testing.T) {
	r := serve(t, orderOptions())
	for i := range 5 {
		o := order(fmt.Sprint("o", i), "test.ping", "m")
		o.Metadata = map[string]any{"stack": fmt.Sprint("s", i%2), "n": i, "up": i > 2, "deep": map[string]any{"x": 1}}
		cast(t, r, o)
	}
	for _, c := range []struct {
		f    master.OrderFilter
		want []string
	}{
		{master.OrderFilter{Metadata: map[string]string{"stack": "s0"}}, []string{"o0", "o2", "o4"}},
		{master.OrderFilter{Metadata: map[string]string{"stack": "s0", "up": "true"}}, []string{"o4"}},
		{master.OrderFilter{Metadata: map[string]string{"n": "3"}}, []string{"o3"}},
		{master.OrderFilter{Metadata: map[string]string{"deep": "x"}}, nil},
		{master.OrderFilter{Limit: 1}, []string{"o0"}},
	} {
		list, err := r.Orders(within(t), c.f)
		var got []string
		for _, o := range list {
			got = append(got, o.ID)
		}
		if !slices.Equal(got, c.want) || err != nil {
			t.Errorf("%+v: %v %v", c.f, got, err)
		}
		if len(list) > 0 {
			if m, _ := payload.Map(list[0].Metadata); m["stack"] == nil {
				t.Errorf("%+v", list[0])
			}
		}
	}
	o := order("many", "test.ping", "m")
	many := map[string]any{}
	for i := range 257 {
		many[fmt.Sprint(i)] = i
	}
	o.Metadata = many
	if _, err := r.PlaceOrder(within(t), o); err == nil || !strings.Contains(err.Error(), "257 entries") {
		t.Error(err)
	}
}
