package requests

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master/internal/requesttest"
	"github.com/brine-salt/brine/master/store"
)

// TestFetch: a minion gets the jobs that it is a target of. A request for any other job gets the answer for a
// missing job, and is logged.
func TestFetch(t *testing.T) {
	var log testlog.Buffer
	const jid = "20260101000000000000"
	j := &Jobs{Store: store.NewMemory(), Log: slog.New(slog.NewTextHandler(&log, nil))}
	if err := j.Store.SaveJob(t.Context(), store.Job{JID: jid, Fun: "test.echo", Arg: []any{"x"}, Minions: []string{"a"},
		Load: object{"ret": "redis", "user": "joe"}, Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	s := requesttest.NewSender(t)
	for i, c := range []struct {
		id  string
		jid any
		fun any
	}{{"b", jid, nil}, {"a", jid, "test.echo"}, {"a", jid, "test.echo"}, {"b", jid, nil}, {"a", "20260101000000000001", nil},
		{"a", "../x", nil}, {"a", nil, nil}} {
		got, err := j.Fetch(t.Context(), s.From(c.id, object{"jid": c.jid}))
		load, ok := got.(object)
		if err != nil || !ok || load["fun"] != c.fun {
			t.Errorf("%d: %v %v", i, got, err)
		}
		if c.fun != nil && (!cmp.Equal(load["arg"], any([]any{"x"})) || load["ret"] != "redis") {
			t.Errorf("%d: %v", i, load)
		}
		if c.fun == nil && len(load) != 0 {
			t.Errorf("%d: %v", i, load)
		}
	}
	if log.String() == "" {
		t.Error("nothing is logged")
	}
	// A batch names more minions under the same id.
	if err := j.Store.AddMinions(t.Context(), jid, []string{"b"}); err != nil {
		t.Fatal(err)
	}
	if got, err := j.Fetch(t.Context(), s.From("b", object{"jid": jid})); err != nil || got.(object)["fun"] != "test.echo" {
		t.Error(got, err)
	}
}
