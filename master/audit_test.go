package master_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
)

// account parses an audit log. It checks that each line has a time, and removes the times and job ids.
func account(t *testing.T, text string) []object {
	t.Helper()
	var out []object
	for line := range strings.Lines(text) {
		var e object
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		at, _ := e["time"].(string)
		if _, err := time.Parse(time.RFC3339Nano, at); err != nil {
			t.Error(line, err)
		}
		delete(e, "time")
		delete(e, "jid")
		out = append(out, e)
	}
	return out
}

// TestAuditLog checks that each call of a tool or a minion adds a line to the audit log, also if it is refused, and
// that no line contains an argument or a password.
func TestAuditLog(t *testing.T) {
	base := t.TempDir()
	users := filepath.Join(base, "users")
	if err := os.WriteFile(users, []byte("alice:hunter2\nbob:hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var r *rig
	auth, err := eauth.New(eauth.Options{Match: func(tgtType string, tgt any) ([]string, error) { return r.Match(tgtType, tgt) },
		Config: object{"file": object{"^filename": users, "alice": []any{".*", "@runner", "@wheel"}, "bob": []any{"test.ping"}}}})
	if err != nil {
		t.Fatal(err)
	}
	var log testlog.Buffer
	r = serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		CacheDir: filepath.Join(base, "cache"), Audit: &log,
		Minions: master.MinionOptions{Peer: map[string][]any{"a": {"test.ping"}}},
		Local: &master.Local{SockDir: shortDir(t), Auth: auth, Call: func(context.Context, master.MasterCall) (master.MasterResult, error) {
			return master.MasterResult{JID: "1", Tag: "t"}, nil
		}}})
	a := r.accepted("a", 1).subscribe()
	ask := func(user, password string, load object) {
		t.Helper()
		creds := object{"eauth": "file", "username": user, "password": password}
		if load["cmd"] == "publish" {
			load["kwargs"] = creds
		} else {
			for k, v := range creds {
				load[k] = v
			}
		}
		if _, err := a.sendValue(object{"enc": "clear", "load": load, "version": int64(3)}); err != nil {
			t.Fatal(err)
		}
	}
	publish := func(fun any, tgt any, kind string) object {
		return object{"cmd": "publish", "fun": fun, "arg": []any{"hunter2"}, "tgt": tgt, "tgt_type": kind, "ret": "", "jid": "", "user": "root", "key": ""}
	}
	ask("alice", "hunter2", publish("test.echo", "*", "glob"))
	ask("alice", "hunter2", publish([]any{"test.ping", "test.echo"}, []any{"a", "none"}, "list"))
	ask("alice", "hunter3", publish("test.echo", "*", "glob"))
	ask("bob", "hunter2", publish("cmd.run", "*", "glob"))
	ask("alice", "hunter2", object{"cmd": "runner", "fun": "test.arg", "kwarg": object{"arg": []any{"hunter2"}}})
	ask("bob", "hunter2", object{"cmd": "wheel", "fun": "key.accept", "match": "hunter2"})
	ask("bob", "hunter2", object{"cmd": "mk_token"})
	ask("bob", "hunter3", object{"cmd": "mk_token"})
	a.must(object{"cmd": "minion_pub", "fun": "test.ping", "arg": []any{"hunter2"}, "tgt": "*", "tgt_type": "glob", "ret": ""})
	a.must(object{"cmd": "minion_pub", "fun": "cmd.run", "arg": []any{"hunter2"}, "tgt": "*", "tgt_type": "glob", "ret": ""})
	a.must(object{"cmd": "minion_runner", "fun": "ours.do", "arg": []any{"hunter2"}})
	ask("eve", "hunter3", publish(strings.Repeat("x", 5000), strings.Repeat("y", 5000)+"\n{}", "glob"))
	text := log.String()
	if strings.Contains(text, "hunter") {
		t.Error("the log has what was shown:", text)
	}
	long := func(s string) string { return strings.Repeat(s, 1000) }
	want := []object{
		{"via": "local", "user": "alice", "eauth": "file", "kind": "local", "fun": []any{"test.echo"}, "tgt_type": "glob", "tgt": "*", "outcome": "allowed"},
		// A compound call needs one list of arguments for each function.
		{"via": "local", "user": "alice", "eauth": "file", "kind": "local", "fun": []any{"test.ping", "test.echo"}, "tgt_type": "list", "tgt": []any{"a", "none"}, "outcome": "failed"},
		{"via": "local", "user": "alice", "eauth": "file", "kind": "local", "fun": []any{"test.echo"}, "tgt_type": "glob", "tgt": "*", "outcome": "denied"},
		{"via": "local", "user": "bob", "eauth": "file", "kind": "local", "fun": []any{"cmd.run"}, "tgt_type": "glob", "tgt": "*", "outcome": "denied"},
		{"via": "local", "user": "alice", "eauth": "file", "kind": "runner", "fun": []any{"test.arg"}, "outcome": "allowed"},
		{"via": "local", "user": "bob", "eauth": "file", "kind": "wheel", "fun": []any{"key.accept"}, "outcome": "denied"},
		{"via": "local", "user": "bob", "eauth": "file", "kind": "login", "outcome": "allowed"},
		{"via": "local", "user": "bob", "eauth": "file", "kind": "login", "outcome": "denied"},
		{"via": "peer", "user": "a", "kind": "local", "fun": []any{"test.ping"}, "tgt_type": "glob", "tgt": "*", "outcome": "allowed"},
		{"via": "peer", "user": "a", "kind": "local", "fun": []any{"cmd.run"}, "tgt_type": "glob", "tgt": "*", "outcome": "denied"},
		{"via": "peer", "user": "a", "kind": "runner", "fun": []any{"ours.do"}, "outcome": "denied"},
		{"via": "local", "user": "eve", "eauth": "file", "kind": "local", "fun": []any{long("x")}, "tgt_type": "glob", "tgt": long("y"), "outcome": "denied"},
	}
	if d := cmp.Diff(want, account(t, text)); d != "" {
		t.Error(d)
	}
}
