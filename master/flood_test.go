package master_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testlog"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// clearPublish is a publish request as a tool sends it.
func clearPublish(t *testing.T, fun, user, key string) []byte {
	t.Helper()
	b, err := payload.Marshal(object{"enc": "clear", "version": 3, "load": object{"cmd": "publish", "fun": fun, "arg": []any{},
		"tgt": "*", "tgt_type": "glob", "ret": "", "jid": "", "user": user, "key": key, "kwargs": object{}}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRefusalsDoNotFillTheLogs: 10,000 refused requests add little to the audit log and to the ordinary one, and the audit log
// says how many it left out.
func TestRefusalsDoNotFillTheLogs(t *testing.T) {
	var audit, log testlog.Buffer
	r := serve(t, master.Options{CacheDir: t.TempDir(), Audit: &audit, Local: &master.Local{SockDir: shortDir(t)},
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	body := clearPublish(t, strings.Repeat("\x01", 50000), strings.Repeat("\x02", 5000), "wrong")
	for range 10000 {
		r.HandleFrom(t.Context(), "127.0.0.1:4321", body)
	}
	for name, b := range map[string]*testlog.Buffer{"audit log": &audit, "log": &log} {
		if n := len(b.String()); n == 0 || n > 1<<20 {
			t.Errorf("%s has %d bytes", name, n)
		}
	}
	for line := range strings.Lines(audit.String()) {
		if len(line) > 4096 {
			t.Fatalf("a line of %d bytes", len(line))
		}
	}
	r.Audit(master.AuditEntry{User: "next", Outcome: master.AuditAllowed})
	counted := -1 // the entry just made
	for line := range strings.Lines(audit.String()) {
		var e master.AuditEntry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		counted += 1 + e.Omitted
	}
	if counted != 10000 {
		t.Errorf("entries and what they omit are %d calls, want 10000", counted)
	}
}

// TestToolsOfOtherHosts: a request of a tool counts from this host only, unless Local.AnyHost is set.
func TestToolsOfOtherHosts(t *testing.T) {
	for _, anyHost := range []bool{false, true} {
		r := serve(t, master.Options{AutoAccept: true, CacheDir: t.TempDir(), Local: &master.Local{SockDir: shortDir(t), AnyHost: anyHost}})
		r.accepted("m", 1)
		ask := func(peer string, body []byte) any {
			v, err := payload.Unmarshal(r.HandleFrom(t.Context(), peer, body))
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		publish := clearPublish(t, "test.ping", "root", r.LocalKey("root"))
		for peer, want := range map[string]bool{"127.0.0.1:99": true, "[::1]:99": true, "192.0.2.7:99": anyHost} {
			got, _ := ask(peer, publish).(object)
			if _, published := got["load"]; published != want {
				t.Errorf("AnyHost %v: publish from %s: %v", anyHost, peer, got)
			}
		}
		for _, cmd := range []string{"runner", "wheel", "mk_token", "get_token", protocol.ReturnsCmd} {
			b, err := payload.Marshal(object{"enc": "clear", "version": 3, "load": object{"cmd": cmd, "fun": "test.arg", "token": "x"}})
			if err != nil {
				t.Fatal(err)
			}
			if got := ask("192.0.2.7:99", b); !anyHost && !cmp.Equal(got, any(object{})) {
				t.Errorf("%s from another host: %v", cmd, got)
			}
		}
	}
}
