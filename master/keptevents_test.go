package master_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
)

// TestKeptEvents checks that events with a tag of EventOptions.Keep are stored before they are acknowledged, so that
// another master can read what a stopped one received, and that a minion cannot add an event to those of another
// minion.
func TestKeptEvents(t *testing.T) {
	st := store.NewMemory()
	o := announcing()
	o.Store, o.Events.Keep = st, []string{"heat/signal/*"}
	r := serve(t, o)
	var minions []*minion
	for i, id := range []string{"a", "b"} {
		token := ensure(t, r, master.MinionSpec{ID: id})
		m := r.newMinion(id, i+1)
		if got := m.signInWith(protocol.Signin{JoinToken: token}); got != protocol.Accepted {
			t.Fatal(got)
		}
		minions = append(minions, m)
	}
	fire := func(m *minion, tag string, data map[string]any) {
		t.Helper()
		m.must(map[string]any{"cmd": "_minion_event", "tag": tag, "data": data, "id": "b"})
	}
	fire(minions[0], "heat/signal/1", map[string]any{"status": "SUCCESS"})
	fire(minions[0], "other/tag", map[string]any{"x": int64(1)})
	minions[0].must(map[string]any{"cmd": "_minion_event", "events": []any{
		map[string]any{"tag": "heat/signal/1", "data": map[string]any{"id": "two"}}, map[string]any{"tag": "heat/signal/2", "data": map[string]any{}}}})
	fire(minions[1], "heat/signal/1", map[string]any{"status": "FAILURE"})
	r.stop()

	other := serve(t, o)
	kept := func(id, tag string) (out []any) {
		t.Helper()
		list, err := other.KeptEvents(within(t), id, tag)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			out = append(out, []any{e.Tag, e.Data})
			if e.Time.IsZero() {
				t.Error("no time")
			}
		}
		return out
	}
	want := []any{[]any{"heat/signal/1", map[string]any{"status": "SUCCESS"}}, []any{"heat/signal/1", map[string]any{"id": "two"}}}
	if d := cmp.Diff(want, kept("a", "heat/signal/1")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]any{[]any{"heat/signal/1", map[string]any{"status": "FAILURE"}}}, kept("b", "")); d != "" {
		t.Error(d)
	}
	if n, err := other.ForgetEvents(within(t), "a", "heat/signal/1"); n != 2 || err != nil {
		t.Error(n, err)
	}
	if d := cmp.Diff([]any{[]any{"heat/signal/2", map[string]any{}}}, kept("a", "")); d != "" {
		t.Error(d)
	}
	if _, err := other.KeptEvents(within(t), "c", ""); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
}
