package eauth

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/protocol/payload"
)

// match knows web1, web2 and db1.
func match(_ string, tgt any) ([]string, error) {
	switch tgt {
	case "web*":
		return []string{"web1", "web2"}, nil
	case "web1", "db1":
		return []string{tgt.(string)}, nil
	case "*":
		return []string{"web1", "web2", "db1"}, nil
	}
	return nil, errors.New("no such target")
}

func newAuth(t *testing.T, config map[string]any) *Auth {
	t.Helper()
	users := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(users, []byte("alice:secret\nbob:e5e9fa1ba31ecd1ae84f75caaa474f3a663f05f4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config["^filename"] = users
	a, err := New(Options{Config: map[string]any{"file": config}, Match: match})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestRules(t *testing.T) {
	a := newAuth(t, map[string]any{"alice": []any{"a"}, "al*": []any{"b"}, "admins%": []any{"c"}, "*": []any{"d"}})
	for _, c := range []struct {
		token Token
		want  []any
	}{
		{Token{EAuth: "file", Name: "alice"}, []any{"b", "a"}},
		{Token{EAuth: "file", Name: "alfred"}, []any{"b"}},
		{Token{EAuth: "file", Name: "bob"}, []any{"d"}},
		{Token{EAuth: "file", Name: "bob", Groups: []string{"admins"}}, []any{"c", "d"}},
		{Token{EAuth: "file", Name: "^filename"}, []any{"d"}},
		{Token{EAuth: "pam", Name: "alice"}, nil},
	} {
		if diff := cmp.Diff(c.want, a.Rules(c.token)); diff != "" {
			t.Errorf("%+v: %s", c.token, diff)
		}
	}
}

func TestShown(t *testing.T) {
	only := map[string]any{"web*": []any{"a"}}
	a := newAuth(t, map[string]any{"alice": []any{"a", only, "d"}, "al*": []any{"b"}, "admins%": []any{"c", "a"}, "*": []any{"d", only, "e"}})
	for _, c := range []struct {
		token Token
		want  []any
	}{
		{Token{EAuth: "file", Name: "alice"}, []any{"a", only, "d", "e"}},
		{Token{EAuth: "file", Name: "alfred"}, []any{"d", only, "e"}},
		{Token{EAuth: "file", Name: "bob", Groups: []string{"admins", "others"}}, []any{"d", only, "e", "c", "a"}},
		{Token{EAuth: "file", Name: "^filename"}, []any{"d", only, "e"}},
		{Token{EAuth: "pam", Name: "alice"}, nil},
	} {
		if diff := cmp.Diff(c.want, a.Shown(c.token)); diff != "" {
			t.Errorf("%+v: %s", c.token, diff)
		}
	}
}

func TestMayPublish(t *testing.T) {
	a := newAuth(t, map[string]any{})
	kw := func(m map[string]any) map[string]any { m["__kwarg__"] = true; return m }
	web := func(conds ...any) []any { return []any{map[string]any{"web*": conds}} }
	for _, c := range []struct {
		name  string
		rules []any
		funs  []string
		args  [][]any
		tgt   any
		want  bool
	}{
		{"all", []any{".*"}, []string{"cmd.run"}, nil, "*", true},
		{"one function", []any{`test\.ping`}, []string{"test.ping"}, nil, "*", true},
		{"no prefix", []any{`test\.p`}, []string{"test.ping"}, nil, "*", false},
		{"all but some", []any{`(?!cmd\.).*`}, []string{"test.ping"}, nil, "*", true},
		{"none of these", []any{`(?!cmd\.).*`}, []string{"cmd.run"}, nil, "*", false},
		{"no letters' case", []any{`(?i)TEST\.PING`}, []string{"test.ping"}, nil, "*", true},
		{"every function of several", []any{`test\..*`}, []string{"test.ping", "cmd.run"}, nil, "*", false},
		{"empty function", []any{".*"}, []string{""}, nil, "*", false},
		{"no function", []any{".*"}, nil, nil, "*", false},
		{"runner rules are none for minions", []any{"@runner", "@test"}, []string{"test.ping"}, nil, "*", false},
		{"broken expression", []any{"("}, []string{"("}, nil, "*", false},
		{"no rules", nil, []string{"saltutil.find_job"}, nil, "*", false},
		{"find_job", []any{"x"}, []string{"saltutil.find_job"}, nil, "*", true},
		{"minions", web(".*"), []string{"cmd.run"}, nil, "web1", true},
		{"other minion", web(".*"), []string{"cmd.run"}, nil, "db1", false},
		{"more minions", web(".*"), []string{"cmd.run"}, nil, "*", false},
		{"unknown target", web(".*"), []string{"cmd.run"}, nil, "?", false},
		{"argument", web(map[string]any{"cmd.run": map[string]any{"args": []any{"uptime"}}}), []string{"cmd.run"}, [][]any{{"uptime"}}, "web1", true},
		{"other argument", web(map[string]any{"cmd.run": map[string]any{"args": []any{"uptime"}}}), []string{"cmd.run"}, [][]any{{"uptime; id"}}, "web1", false},
		{"a name and a value before the arguments", web(map[string]any{"test.arg": map[string]any{"args": []any{".*", "^ok$"}}}),
			[]string{"test.arg"}, [][]any{{"a=b", "ok", "bad"}}, "web1", false},
		{"keyword arguments before the arguments", web(map[string]any{"test.arg": map[string]any{"args": []any{".*", "^ok$"}}}),
			[]string{"test.arg"}, [][]any{{map[string]any{"__kwarg__": true, "z": int64(1)}, "ok", "bad"}}, "web1", false},
		{"keyword arguments before allowed ones", web(map[string]any{"test.arg": map[string]any{"args": []any{".*", "^ok$"}}}),
			[]string{"test.arg"}, [][]any{{map[string]any{"__kwarg__": true, "z": int64(1)}, "bad", "ok"}}, "web1", true},
		{"keyword as text", web(map[string]any{"user.add": map[string]any{"kwargs": map[string]any{"shell": "/bin/sh"}}}), []string{"user.add"},
			[][]any{{"shell=/bin/bash"}}, "web1", false},
		{"quoted keyword as text", web(map[string]any{"user.add": map[string]any{"kwargs": map[string]any{"shell": "[^b]*"}}}), []string{"user.add"},
			[][]any{{`shell="/\x62in/\x62ash"`}}, "web1", false},
		{"missing argument", web(map[string]any{"cmd.run": map[string]any{"args": []any{"uptime"}}}), []string{"cmd.run"}, nil, "web1", false},
		{"any argument", web(map[string]any{"cmd.run": map[string]any{"args": []any{nil, "b"}}}), []string{"cmd.run"}, [][]any{{"x", "b"}}, "web1", true},
		{"keyword", web(map[string]any{"user.add": map[string]any{"kwargs": map[string]any{"shell": "/bin/sh"}}}), []string{"user.add"},
			[][]any{{"x", kw(map[string]any{"shell": "/bin/sh"})}}, "web1", true},
		{"other keyword", web(map[string]any{"user.add": map[string]any{"kwargs": map[string]any{"shell": "/bin/sh"}}}), []string{"user.add"},
			[][]any{{"x", kw(map[string]any{"shell": "/bin/bash"})}}, "web1", false},
		{"two keys in a rule", []any{map[string]any{"web*": []any{".*"}, "db1": []any{".*"}}}, []string{"cmd.run"}, nil, "web1", false},
		{"other keyword of a map in order", web(map[string]any{"user.add": map[string]any{"kwargs": map[string]any{"shell": "/bin/sh"}}}), []string{"user.add"},
			[][]any{{"x", payload.OrderedMap{{Key: "shell", Value: "/bin/bash"}, {Key: "__kwarg__", Value: true}}}}, "web1", false},
		{"a map in order", web(map[string]any{"test.arg": map[string]any{"args": []any{"{'a': 1}"}}}), []string{"test.arg"},
			[][]any{{payload.OrderedMap{{Key: "a", Value: int64(1)}}}}, "web1", true},
	} {
		if got := a.MayPublish(c.rules, c.funs, c.args, "glob", c.tgt); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestMayRun(t *testing.T) {
	a := newAuth(t, map[string]any{})
	for _, c := range []struct {
		rules     []any
		kind, fun string
		want      bool
	}{
		{[]any{"@runner"}, "runner", "jobs.active", true}, {[]any{"@runners"}, "runner", "jobs.active", true}, {[]any{"@jobs"}, "runner", "jobs.active", true},
		{[]any{"@runner"}, "wheel", "key.accept", false}, {[]any{".*"}, "runner", "jobs.active", false}, {[]any{"@wheel"}, "wheel", "key.accept", true},
		{[]any{map[string]any{"@jobs": []any{"active"}}}, "runner", "jobs.active", true}, {[]any{map[string]any{"@jobs": []any{"act"}}}, "runner", "jobs.active", false},
		{[]any{map[string]any{"@runner": []any{`jobs\..*`}}}, "runner", "jobs.active", true}, {[]any{map[string]any{"@runner": []any{`jobs\..*`}}}, "runner", "manage.up", false},
		{[]any{"@runner"}, "runner", "jobs", false}, {[]any{"@runner"}, "runner", "a.b.c", false}, {nil, "runner", "jobs.active", false},
	} {
		if got := a.MayRun(c.rules, c.kind, c.fun, nil, nil); got != c.want {
			t.Errorf("%v %s.%s: %v", c.rules, c.kind, c.fun, got)
		}
	}
}

func TestTokens(t *testing.T) {
	now := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	a := newAuth(t, map[string]any{})
	a.o.Now = func() time.Time { return now }
	a.o.MaxTokens = 2
	tok, err := a.Login(t.Context(), "file", "alice", "secret")
	if err != nil || tok.Expire.Sub(now) != 12*time.Hour {
		t.Fatal(tok, err)
	}
	if got, ok := a.Token(tok.ID); !ok || got.Name != "alice" {
		t.Error(got, ok)
	}
	now = now.Add(12 * time.Hour)
	if _, ok := a.Token(tok.ID); ok {
		t.Error("a token lives for ever")
	}
	tok, err = a.Login(t.Context(), "file", "alice", "secret")
	if err != nil {
		t.Fatal("dead tokens keep their places:", err)
	}
	a.Revoke(tok.ID)
	if _, ok := a.Token(tok.ID); ok {
		t.Error("a revoked token lives on")
	}
}

// TestTokensAreShared: a user who logs in many times keeps the newest tokens, up to half of all, and others can
// still log in.
func TestTokensAreShared(t *testing.T) {
	now := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	a := newAuth(t, map[string]any{})
	if err := os.WriteFile(a.o.Config["file"].(map[string]any)["^filename"].(string), []byte("alice:secret\nbob:secret\ncarol:secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.o.Now = func() time.Time { return now }
	a.o.MaxTokens = 16
	valid := func(user string, times int) (n int) {
		var all []Token
		for range times {
			now = now.Add(time.Second)
			tok, err := a.Login(t.Context(), "file", user, "secret")
			if err != nil {
				t.Fatal(user, err)
			}
			all = append(all, tok)
		}
		if _, ok := a.Token(all[times-1].ID); !ok {
			t.Errorf("the newest token of %s is gone", user)
		}
		for _, tok := range all {
			if _, ok := a.Token(tok.ID); ok {
				n++
			}
		}
		return n
	}
	if alice, bob, carol := valid("alice", 50), valid("bob", 50), valid("carol", 1); alice != 8 || bob != 4 || carol != 1 {
		t.Errorf("alice has %d, bob %d, carol %d", alice, bob, carol)
	}
	if len(a.tokens) > a.o.MaxTokens {
		t.Errorf("%d tokens", len(a.tokens))
	}
}

func TestFile(t *testing.T) {
	for _, c := range []struct {
		name, password string
		config         map[string]any
		want           bool
	}{
		{"alice", "secret", map[string]any{}, true}, {"alice", "Secret", map[string]any{}, false}, {"alice", "", map[string]any{}, false}, {"eve", "secret", map[string]any{}, false},
		{"bob", "secret", map[string]any{"^hashtype": "sha1"}, true}, {"bob", "other", map[string]any{"^hashtype": "sha1"}, false},
		{"bob", "secret", map[string]any{"^hashtype": "rot13"}, false}, {"alice", "secret", map[string]any{"^filetype": "x"}, false},
		{strings.Repeat("a", 300), "secret", map[string]any{}, false},
	} {
		a := newAuth(t, c.config)
		_, err := a.Check(t.Context(), "file", c.name, c.password)
		if got := err == nil; got != c.want || err != nil && !errors.Is(err, ErrDenied) {
			t.Errorf("%s %s %v: %v", c.name, c.password, c.config, err)
		}
	}
	if _, err := New(Options{Config: map[string]any{"ldap": map[string]any{}}}); err == nil || !strings.Contains(err.Error(), `system "ldap" is unknown`) {
		t.Error(err)
	}
}

// TestUnknownSystemIsLogged: the log says that external_auth lacks the system of a log-in, and for whom; the client is
// only refused.
func TestUnknownSystemIsLogged(t *testing.T) {
	log := new(testlog.Buffer)
	a, err := New(Options{Config: map[string]any{"sharedsecret": map[string]any{}}, Systems: map[string]System{"sharedsecret": SharedSecret{"s"}},
		Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Check(t.Context(), "pam", "alice", "hush"); !errors.Is(err, ErrDenied) {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, `eauth=pam user=alice err="external_auth does not have this system"`) || strings.Contains(text, "hush") {
		t.Errorf("the log is %s", text)
	}
}

func TestSharedSecret(t *testing.T) {
	if ok, _, err := (SharedSecret{"s"}).Authenticate(t.Context(), nil, "x", "s"); !ok || err != nil {
		t.Error(ok, err)
	}
	if ok, _, _ := (SharedSecret{"s"}).Authenticate(t.Context(), nil, "x", "t"); ok {
		t.Error("any secret will do")
	}
	if ok, _, err := (SharedSecret{}).Authenticate(t.Context(), nil, "x", ""); ok || err == nil {
		t.Error("no secret will do")
	}
}
