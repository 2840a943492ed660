package master_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol/payload"
)

// clearPublish returns a publish request as Salt's tools send it.
func clearPublish(t *testing.T, fun, user, key string) []byte {
	t.Helper()
	b, err := payload.Marshal(object{"enc": "clear", "version": 3, "load": object{"cmd": "publish", "fun": fun, "arg": []any{},
		"tgt": "*", "tgt_type": "glob", "ret": "", "jid": "", "user": user, "key": key, "kwargs": object{}}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRefusalsDoNotFillTheLogs checks that 10,000 refused requests add at most 1 MiB each to the audit log and to the
// ordinary log, and that the audit log reports how many entries it left out.
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
	counted := -1 // the entry of r.Audit does not count
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
