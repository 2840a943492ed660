package master_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/events"
)

// fired makes the minion fire the tags and returns those that arrive as events.
func fired(t *testing.T, r *rig, m *minion, tags ...string) (got []string) {
	t.Helper()
	sub := r.Events().Subscribe(events.SubscribeOptions{})
	defer sub.Close()
	round := rand.Text() // events of other masters arrive later: only those of this call count
	for _, tag := range append(tags, "minion_ping") {
		m.must(map[string]any{"cmd": "_minion_event", "tag": tag, "data": map[string]any{"round": round}})
	}
	for {
		e, err := sub.Next(within(t))
		if err != nil {
			t.Fatal(err)
		}
		if data, _ := e.Data["data"].(map[string]any); data["round"] != round {
			continue
		}
		if e.Tag == "minion_ping" {
			return got
		}
		got = append(got, e.Tag)
	}
}

// TestGrantEvents checks that a tag that is granted to one minion can be fired only by minions with the grant, at
// every master of the store, until the grant is revoked. Grants in a tenant restrict only the tenant's minions.
func TestGrantEvents(t *testing.T) {
	o := orderOptions()
	o.Network.Advertise, o.Events.Access = []string{"salt.example"},
		func(e master.EventRequest) bool { return strings.HasPrefix(e.Tag, "free/") }
	all := equals(t, 2, o)
	r, other := all[0], all[1]
	view := func(name string) *master.Tenant {
		x, err := r.Tenant(name)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	blue, red := view("blue"), view("red")
	for id, x := range map[string]*master.Tenant{"b1": blue, "b2": blue, "r1": red} {
		if _, err := x.EnsureMinion(within(t), master.MinionSpec{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.EnsureMinion(within(t), master.MinionSpec{ID: "a", Events: []string{"heat/signal/1", "free/a/*"}}); err != nil {
		t.Fatal(err)
	}
	minions := map[string]*minion{}
	for i, id := range []string{"a", "b1", "b2", "r1"} {
		minions[id] = r.accepted(id, i%3+1)
		minions[id+"@other"] = other.accepted(id, i%3+1)
	}
	expect := func(at *rig, id string, want ...string) {
		t.Helper()
		if d := cmp.Diff(want, fired(t, at, minions[id], "heat/signal/1", "heat/signal/2", "free/a/x", "free/b/x", "nobody's")); d != "" {
			t.Errorf("%s: %s", id, d)
		}
	}
	expect(r, "a", "heat/signal/1", "free/a/x", "free/b/x")
	expect(other, "a@other", "heat/signal/1", "free/a/x", "free/b/x")
	expect(r, "b1", "free/b/x")
	expect(other, "b1@other", "free/b/x")

	got, err := r.GrantEvents(within(t), "a", []string{"heat/signal/2", "heat/signal/2"}, []string{"heat/signal/1", "free/a/*"})
	if d := cmp.Diff([]string{"heat/signal/2"}, got); d != "" || err != nil {
		t.Error(d, err)
	}
	expect(r, "a", "heat/signal/2", "free/a/x", "free/b/x")
	if d := cmp.Diff([]string{"heat/signal/2"}, fired(t, other, minions["a@other"], "heat/signal/2")); d != "" {
		t.Errorf("the other master does not know at once what is granted: %s", d)
	}
	expect(r, "b1", "free/a/x", "free/b/x")

	if _, err := blue.GrantEvents(within(t), "b1", []string{"free/b/*"}, nil); err != nil {
		t.Fatal(err)
	}
	expect(r, "b1", "free/a/x", "free/b/x")
	expect(r, "b2", "free/a/x")
	expect(r, "r1", "free/a/x", "free/b/x")
	for _, id := range []string{"r1", "a", "nobody"} {
		if _, err := blue.GrantEvents(within(t), id, []string{"free/b/*"}, nil); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := r.EnsureMinion(within(t), master.MinionSpec{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	list, err := r.Announced(within(t), "")
	if err != nil || len(list) != 4 || cmp.Diff([]string{"heat/signal/2"}, list[0].Events) != "" || cmp.Diff([]string{"free/b/*"}, list[1].Events) != "" {
		t.Errorf("%+v %v", list, err)
	}
	eventually(t, "the other master refuses as well", func() bool {
		return cmp.Equal([]string{"free/a/x"}, fired(t, other, minions["b2@other"], "free/a/x", "free/b/x"))
	})
	if err := r.RevokeMinion(within(t), "b1"); err != nil {
		t.Fatal(err)
	}
	expect(r, "b2", "free/a/x", "free/b/x")
	many := make([]string, 257)
	for i := range many {
		many[i] = fmt.Sprint("a/b/", i)
	}
	for _, bad := range [][]string{many, {"x"}, {"x/*"}, {"*/y/z"}, {"/x/y"}, {"salt/x/y"}, {"minion/refresh/a"}, {"a/b\n"}, {"a/" + strings.Repeat("x", 300)}} {
		if _, err := r.GrantEvents(within(t), "a", bad, nil); err == nil {
			t.Errorf("%.40q is granted", bad)
		}
	}
}
