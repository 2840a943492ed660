package restapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/restapi"
)

// TestAuditLog: each call, also a refused one, has a line with the user and the source, and no line contains an
// argument or a password.
func TestAuditLog(t *testing.T) {
	s := newSite(t, func(o *restapi.Options) { o.LoginRate = -1 })
	alice := s.token
	for _, c := range []struct {
		token, path string
		body        any
	}{
		{"", "/login", m{"username": "bob", "password": "hunter2", "eauth": "file"}},
		{alice, "/", []any{m{"client": "local_async", "tgt": "web*", "fun": "test.echo", "arg": []any{"hunter2"}}, m{"client": "runner", "fun": "test.arg", "kwarg": m{"password": "hunter2"}}}},
		{"0bad", "/", m{"client": "local", "tgt": "*", "fun": "cmd.run", "arg": "hunter2"}}, // not a call of anybody's
		{"", "/run", m{"client": "wheel", "fun": "key.accept", "match": "hunter2", "username": "eve", "password": "hunter2", "eauth": "file"}},
		{s.login("bob"), "/", m{"client": "local", "tgt": []any{"a", "b"}, "tgt_type": "list", "fun": []any{"test.ping", "cmd.run"}, "arg": []any{[]any{}, []any{"hunter2"}}}},
		{alice, "/hook/a/b", m{"password": "hunter2"}},
		{alice, "/v1/jobs", m{"id": "x", "tgt": []any{"db-7"}, "fun": "test.ping", "arg": []any{"hunter2"}}},
		{alice, "/v1/minions", m{"id": "../x"}},
	} {
		s.token = c.token
		s.json("POST", c.path, c.body)
	}
	text := s.account.String()
	if strings.Contains(text, "hunter") || strings.Contains(text, "secret") {
		t.Error("the log has what was shown:", text)
	}
	var got []m
	for line := range strings.Lines(text) {
		var e m
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(line, err)
		}
		if from, _ := e["from"].(string); !strings.HasPrefix(from, "127.0.0.1:") || e["time"] == nil || e["via"] != "http" {
			t.Error(line)
		}
		delete(e, "from")
		delete(e, "time")
		delete(e, "via")
		delete(e, "jid")
		got = append(got, e)
	}
	login := func(user, outcome string) m {
		return m{"user": user, "eauth": "file", "kind": "login", "outcome": outcome}
	}
	want := []m{
		login("alice", "allowed"), login("bob", "allowed"), login("bob", "denied"),
		{"user": "alice", "eauth": "file", "kind": "local", "fun": []any{"test.echo"}, "tgt": "web*", "outcome": "allowed"},
		{"user": "alice", "eauth": "file", "kind": "runner", "fun": []any{"test.arg"}, "outcome": "allowed"},
		{"user": "eve", "eauth": "file", "kind": "wheel", "fun": []any{"key.accept"}, "outcome": "denied"},
		{"user": "bob", "eauth": "file", "kind": "local", "fun": []any{"test.ping", "cmd.run"}, "tgt_type": "list", "tgt": []any{"a", "b"}, "outcome": "denied"},
		{"user": "alice", "eauth": "file", "kind": "hook", "fun": []any{"salt/netapi/hook/a/b"}, "outcome": "allowed"},
		{"user": "alice", "eauth": "file", "kind": "order", "fun": []any{"test.ping"}, "tgt": []any{"db-7"}, "outcome": "allowed"},
		{"user": "alice", "eauth": "file", "kind": "wheel", "fun": []any{"key.gen_accept"}, "outcome": "allowed"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestRefusalsDoNotFillTheAuditLog: commands and log-ins without a credential add little to it, however large and many they are.
func TestRefusalsDoNotFillTheAuditLog(t *testing.T) {
	s := newSite(t, nil)
	s.token = ""
	long := strings.Repeat("\x01", 20000)
	// A large body that is refused before it has been read ends the connection, perhaps while it is still sent.
	send := func(path string, body m) {
		b, err := json.Marshal(body)
		if err != nil {
			t.Error(err)
		}
		r, err := http.Post(s.server.URL+path, "application/json", bytes.NewReader(b))
		switch {
		case err == nil:
			r.Body.Close()
		case !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET):
			t.Error(err)
		}
	}
	begin := time.Now()
	var all sync.WaitGroup
	for range 30 { // beside each other, for most of them wait for their refusal
		all.Go(func() {
			for range 10 {
				send("/run", m{"client": "local", "tgt": long, "fun": []any{long, long}, "username": long, "password": "x", "eauth": "file"})
				send("/login", m{"username": long, "password": "x", "eauth": long})
			}
		})
	}
	all.Wait()
	text := s.account.String()
	// Per source, five refusals a second of at most 4 KiB each are written, so the limit grows with the time that
	// these take.
	if most := 1<<20 + int(time.Since(begin).Seconds()*5*4096); len(text) > most || !strings.Contains(text, `"outcome":"denied"`) {
		t.Errorf("the audit log has %d bytes", len(text))
	}
	for line := range strings.Lines(text) {
		if len(line) > 4096 {
			t.Fatalf("a line of %d bytes", len(line))
		}
	}
}
