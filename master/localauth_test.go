package master_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/protocol"
)

// TestExternalAuthentication: tools show a name and a password, or a token, and may do what external_auth says, in every request.
func TestExternalAuthentication(t *testing.T) {
	base := t.TempDir()
	users := filepath.Join(base, "users")
	if err := os.WriteFile(users, []byte("alice:secret\nbob:secret\nred:secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var r *rig
	auth, err := eauth.New(eauth.Options{Match: func(tgtType string, tgt any) ([]string, error) { return r.Match(tgtType, tgt) },
		Config: map[string]any{"file": map[string]any{"^filename": users, "alice": []any{".*", "@runner", "@wheel"}, "bob": []any{map[string]any{"a": []any{`test\..*`}}, "@jobs"},
			"red": []any{".*", "@runner", "@wheel"}}},
		Tenant: func(t eauth.Token) (string, error) {
			if t.Name == "red" {
				return "red", nil
			}
			return "", nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	var called []string
	r = serve(t, master.Options{AutoAccept: true, CacheDir: filepath.Join(base, "cache"), Local: &master.Local{SockDir: shortDir(t), Auth: auth,
		Call: func(_ context.Context, c master.MasterCall) (master.MasterResult, error) {
			called = append(called, fmt.Sprintf("%s.%s %v %v by %s", c.Kind, c.Fun, c.Args, c.Kwargs, c.User))
			return master.MasterResult{JID: "1", Tag: "t", Data: map[string]any{"return": "done"}}, nil
		}}})
	a := r.accepted("a", 1).subscribe()
	r.accepted("b", 2).subscribe()
	ask := func(load map[string]any) any {
		t.Helper()
		v, err := a.sendValue(map[string]any{"enc": "clear", "load": load, "version": int64(3)})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	creds := func(user, password string, more map[string]any) map[string]any {
		out := map[string]any{"eauth": "file", "username": user, "password": password}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	publish := func(kwargs map[string]any, fun any, tgt string) string {
		t.Helper()
		v, _ := ask(map[string]any{"cmd": "publish", "fun": fun, "arg": []any{}, "tgt": tgt, "tgt_type": "glob", "ret": "", "jid": "", "user": "root", "key": "", "kwargs": kwargs}).(map[string]any)
		if e, ok := v["error"].(map[string]any); ok {
			return e["name"].(string)
		}
		return "published"
	}
	for _, c := range []struct {
		name   string
		kwargs map[string]any
		fun    any
		tgt    string
		want   string
	}{
		{"alice", creds("alice", "secret", nil), "cmd.run", "*", "published"},
		{"wrong password", creds("alice", "x", nil), "test.ping", "*", "AuthenticationError"},
		{"unknown", creds("eve", "secret", nil), "test.ping", "*", "AuthenticationError"},
		{"bob on his minion", creds("bob", "secret", nil), "test.ping", "a", "published"},
		{"bob on others", creds("bob", "secret", nil), "test.ping", "*", "AuthorizationError"},
		{"bob and other functions", creds("bob", "secret", nil), "cmd.run", "a", "AuthorizationError"},
		{"bob hides a function", creds("bob", "secret", nil), []any{"test.ping", "cmd.run"}, "a", "AuthorizationError"},
		{"one of a tenant", creds("red", "secret", nil), "test.ping", "a", "AuthenticationError"},
		{"no token", map[string]any{"token": "00"}, "test.ping", "*", "AuthenticationError"},
		{"nothing", map[string]any{}, "test.ping", "*", "AuthenticationError"},
	} {
		if got := publish(c.kwargs, c.fun, c.tgt); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	jids := make(map[string]string)
	for _, user := range []string{"alice", "bob"} {
		v, _ := ask(map[string]any{"cmd": "publish", "fun": "test.ping", "arg": []any{}, "tgt": "a", "tgt_type": "glob", "kwargs": creds(user, "secret", nil)}).(map[string]any)
		load, _ := v["load"].(map[string]any)
		jids[user], _ = load["jid"].(string)
	}
	for _, c := range []struct{ user, password, of, want string }{
		{"alice", "secret", "alice", "true"}, {"bob", "secret", "bob", "true"}, {"bob", "secret", "alice", "AuthorizationError"},
		{"alice", "secret", "bob", "AuthorizationError"}, {"alice", "x", "alice", "AuthenticationError"}, {"red", "secret", "alice", "AuthenticationError"},
		{"alice", "secret", "nobody", "AuthorizationError"},
	} {
		got := ""
		eventually(t, c.user+" is told the returns of the job of "+c.of, func() bool {
			v, _ := ask(map[string]any{"cmd": protocol.ReturnsCmd, "jid": jids[c.of], "ids": []any{"a", "b"}, "kwargs": creds(c.user, c.password, nil)}).(map[string]any)
			if e, ok := v["error"].(map[string]any); ok {
				got = e["name"].(string)
				return true
			}
			ret, _ := v["returns"].(map[string]any)
			one, _ := ret["a"].(map[string]any)
			got = fmt.Sprint(one["return"])
			return len(ret) == 1 // a has returned, and b was not asked
		})
		if got != c.want {
			t.Errorf("%s asks for the returns of the job of %s: %s, not %s", c.user, c.of, got, c.want)
		}
	}
	tok, _ := ask(creds("bob", "secret", map[string]any{"cmd": "mk_token"})).(map[string]any)
	id, _ := tok["token"].(string)
	if len(id) != 64 || tok["name"] != "bob" || tok["eauth"] != "file" {
		t.Fatal(tok)
	}
	if got := publish(map[string]any{"token": id}, "test.ping", "a"); got != "published" {
		t.Error(got)
	}
	if diff := cmp.Diff(any(tok), ask(map[string]any{"cmd": "get_token", "token": id})); diff != "" {
		t.Error(diff)
	}
	if v := ask(creds("bob", "x", map[string]any{"cmd": "mk_token"})); v != "" {
		t.Error(v)
	}
	red, _ := ask(creds("red", "secret", map[string]any{"cmd": "mk_token"})).(map[string]any)
	if got := publish(map[string]any{"token": red["token"]}, "test.ping", "a"); got != "AuthenticationError" || red["name"] != "red" {
		t.Error("the token of one who is of a tenant:", got)
	}
	denied := func(v any) bool {
		m, _ := v.(map[string]any)
		_, has := m["error"]
		return has
	}
	for _, c := range []struct {
		load map[string]any
		want bool
	}{
		{creds("bob", "secret", map[string]any{"cmd": "runner", "fun": "jobs.list_jobs", "kwarg": map[string]any{"arg": []any{}, "kwarg": map[string]any{"x": int64(1)}}}), true},
		{creds("bob", "secret", map[string]any{"cmd": "runner", "fun": "manage.up"}), false},
		{creds("bob", "secret", map[string]any{"cmd": "wheel", "fun": "key.accept", "match": "*"}), false},
		{creds("alice", "secret", map[string]any{"cmd": "wheel", "fun": "key.accept", "match": "*"}), true},
		{creds("alice", "secret", map[string]any{"cmd": "wheel", "client": "wheel", "fun": "key.accept", "match": "*"}), true},
		{creds("red", "secret", map[string]any{"cmd": "wheel", "fun": "key.accept", "match": "*"}), false},
		{map[string]any{"cmd": "wheel", "fun": "key.accept", "match": "*"}, false},
		{map[string]any{"cmd": "wheel", "fun": "key.accept", "match": "*", "user": "root", "key": "x"}, false},
		{map[string]any{"cmd": "runner", "fun": "jobs.active", "token": id}, true},
		{map[string]any{"cmd": "runner", "fun": "jobs.active", "token": "x"}, false},
	} {
		if got := !denied(ask(c.load)); got != c.want {
			t.Errorf("%v: %v", c.load, got)
		}
	}
	want := []string{"runner.jobs.list_jobs [] map[x:1] by bob", "wheel.key.accept [] map[match:*] by alice",
		"wheel.key.accept [] map[match:*] by alice", "runner.jobs.active [] map[] by bob"}
	if diff := cmp.Diff(want, called); diff != "" {
		t.Error(diff)
	}
}
