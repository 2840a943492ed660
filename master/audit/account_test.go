package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master/audit"
)

// TestAccount: an entry is one line of bounded size, whatever it contains. When one source has too many denied
// calls, the next line has their count.
func TestAccount(t *testing.T) {
	var out bytes.Buffer
	var log testlog.Buffer
	a := audit.NewAccount(&out, slog.New(slog.NewTextHandler(&log, nil)))
	many := make([]any, 1000)
	for i := range many {
		many[i] = strings.Repeat("y", 100)
	}
	for _, e := range []audit.Entry{
		{Via: "http", From: "192.0.2.1:1", User: "joe", Fun: []string{"test.ping"}, Tgt: "*", Outcome: audit.Allowed},
		{Via: "local", From: "uid 1000", User: strings.Repeat("x", 5000), Tgt: many, Outcome: audit.Failed},
		{Via: "peer", From: "@", User: "m", Tgt: 7, Outcome: audit.Denied},
	} {
		a.Record(e)
	}
	var got []audit.Entry
	for line := range strings.Lines(out.String()) {
		if len(line) > 4<<10 {
			t.Errorf("a line of %d bytes", len(line))
		}
		var e audit.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Time.IsZero() {
			t.Fatal(line, err)
		}
		got = append(got, e)
	}
	if len(got) != 3 {
		t.Fatal(out.String())
	}
	if e := got[0]; e.From != "192.0.2.1:1" || e.User != "joe" || !cmp.Equal(e.Fun, []string{"test.ping"}) || e.Tgt != "*" {
		t.Errorf("%+v", e)
	}
	if e := got[1]; e.From != "uid 1000" || len(e.User) == 0 || strings.Trim(e.User, "x") != "" {
		t.Errorf("%+v", e)
	}
	if e := got[2]; e.From != "" || e.Tgt != "int" || e.Outcome != audit.Denied {
		t.Errorf("%+v", e)
	}
	out.Reset()
	for i := range 200 {
		a.Record(audit.Entry{From: "198.51.100.1:1", User: fmt.Sprint(i), Outcome: audit.Denied})
	}
	n := strings.Count(out.String(), "\n")
	out.Reset()
	a.Record(audit.Entry{User: "next", Outcome: audit.Allowed})
	var next audit.Entry
	if err := json.Unmarshal(out.Bytes(), &next); err != nil || n < 50 || n > 60 || next.Omitted != 200-n {
		t.Errorf("%d lines, then %s: %v", n, out.String(), err)
	}
	audit.NewAccount(nil, nil).Record(audit.Entry{Outcome: audit.Allowed}) // an account without a log
	audit.NewAccount(full{}, slog.New(slog.NewTextHandler(&log, nil))).Record(audit.Entry{Outcome: audit.Allowed})
	if !strings.Contains(log.String(), "disk full") {
		t.Error("a line that cannot be written is not logged")
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }
