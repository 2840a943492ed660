package master_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// TestPresentMinionsGetJobs checks that a tenant's minion that has signed in is present only when jobs can reach it,
// at each of several masters.
func TestPresentMinionsGetJobs(t *testing.T) {
	o := orderOptions()
	o.Network.Advertise, o.Network.Listen = []string{"salt.example"}, zeromq.Listen
	all := equals(t, 2, o)
	r := all[0]
	blue, err := r.Tenant("blue")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := blue.EnsureMinion(within(t), master.MinionSpec{ID: "b1"}); err != nil {
		t.Fatal(err)
	}
	m := r.accepted("b1", 1)
	m.mayMiss = true
	if got := r.Present(); len(got) > 0 {
		t.Fatalf("%v present before it listens", got)
	}
	m.subscribe()
	for i, r := range all {
		eventually(t, "present", func() bool { return slices.Contains(r.Present(), "b1") })
		res, err := r.Run(within(t), master.Job{Fun: "job.now", Tgt: "b1", TgtType: "list", Timeout: time.Minute})
		if err != nil || res["b1"].Status != master.Returned {
			t.Error(i, res, err)
		}
	}
}

// TestTenants checks that a tenant sees only its own minions, jobs and events, and that its minions see only each
// other.
func TestTenants(t *testing.T) {
	o := orderOptions()
	o.Network.Advertise, o.Minions.Peer = []string{"salt.example"}, map[string][]any{".*": {".*"}}
	o.Pillar.Func = func(_ context.Context, r pillar.Request) (map[string]any, error) {
		return object{"tenant": r.Tenant}, nil
	}
	r := serve(t, o)
	view := func(name string) *master.Tenant {
		x, err := r.Tenant(name)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	blue, red := view("blue"), view("red")
	for _, bad := range []string{"", "a/b"} {
		if _, err := r.Tenant(bad); err == nil {
			t.Errorf("%q is a tenant", bad)
		}
	}
	for id, x := range map[string]*master.Tenant{"b1": blue, "b2": blue, "r1": red} {
		if _, err := x.EnsureMinion(within(t), master.MinionSpec{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := red.EnsureMinion(within(t), master.MinionSpec{ID: "b1"}); err == nil {
		t.Error("announced another tenant's minion")
	}
	if err := r.Keys().Preseed("operator", testKey(t, 1).Public().Text()); err != nil {
		t.Fatal(err)
	}
	if _, err := red.EnsureMinion(within(t), master.MinionSpec{ID: "operator"}); err == nil {
		t.Error("a tenant takes a minion that the operator accepted")
	}
	if err := r.Keys().Delete("operator"); err != nil {
		t.Fatal(err)
	}
	if _, err := red.EnsureMinion(within(t), master.MinionSpec{ID: "b3", Tenant: "blue"}); err == nil {
		t.Error("announced a minion for another tenant")
	}
	all := map[string]*minion{}
	for i, id := range []string{"b1", "b2", "r1", "n1"} {
		m := r.accepted(id, i%3+1)
		m.mayMiss = true
		all[id] = m
		want := map[string]string{"b1": "blue", "b2": "blue", "r1": "red", "n1": ""}[id]
		if p, err := m.pillar(nil); err != nil || p["tenant"] != want {
			t.Fatal(id, p, err)
		}
		m.must(object{"cmd": "_mine", "data": object{"secret": "of " + id}})
		m.subscribe()
	}
	eventually(t, "all subscribers are known", func() bool { return r.Named() == 4 })
	ids := func(m map[string]master.Result) (out []string) {
		for id, x := range m {
			if x.Status == master.Returned {
				out = append(out, id)
			}
		}
		slices.Sort(out)
		return out
	}

	t.Run("orders of nobody's", func(t *testing.T) {
		const id = "blue/release" // blue's order "release" has the same id in the store
		if _, err := r.PlaceOrder(within(t), master.Order{ID: id, Job: master.Job{Fun: "job.secret", Tgt: "red", TgtType: "list"}}); err != nil {
			t.Fatal(err)
		}
		for what, look := range map[string]func(context.Context, string) (master.Outcome, error){"result": blue.OrderOutcome, "wait": blue.AwaitOrder, "cancel": blue.CancelOrder} {
			if out, err := look(within(t), "release"); !errors.Is(err, store.ErrNotFound) || out.JID != "" || out.Results != nil {
				t.Error(what, out, err)
			}
		}
		if o, err := blue.Order(within(t), "release"); !errors.Is(err, store.ErrNotFound) || o.Fun != "" {
			t.Error(o, err)
		}
		if out, err := blue.PlaceOrder(within(t), master.Order{ID: "release", Job: master.Job{Fun: "job.secret", Tgt: "red", TgtType: "list"}}); !errors.Is(err, master.ErrOrderDiffers) {
			t.Error(out, err)
		}
		if out, err := r.CancelOrder(within(t), id); err != nil || out.Results["red"].Status != master.Cancelled {
			t.Error(out, err)
		}
	})
	t.Run("jobs", func(t *testing.T) {
		for _, c := range []struct {
			tgtType string
			tgt     any
			want    []string
		}{
			{"glob", "*", []string{"b1", "b2"}}, {"grain", "os:Debian", []string{"b1", "b2"}}, {"compound", "r1 or b1 or n1", []string{"b1"}},
			{"list", "b2,r1,n1", []string{"b2"}}, {"pcre", "[rb]1", []string{"b1"}},
		} {
			res, err := blue.Run(within(t), master.Job{Fun: "job.blue", Tgt: c.tgt, TgtType: c.tgtType})
			if d := cmp.Diff(c.want, ids(res)); err != nil || d != "" {
				t.Errorf("%v: %v %s", c.tgt, err, d)
			}
		}
		for _, tgt := range []string{"r1", "n1", "nobody"} {
			var none *master.NoMinionsError
			if _, err := blue.Run(within(t), master.Job{Fun: "job.blue", Tgt: tgt}); !errors.As(err, &none) {
				t.Error(tgt, err)
			}
		}
		// A minion of another tenant looks the same as one that does not exist.
		for _, id := range []string{"r1", "nobody"} {
			if p, err := blue.Publish(within(t), master.Job{Fun: "job.blue", Tgt: "b1," + id, TgtType: "list"}); err != nil || !slices.Equal(p.Missing, []string{id}) {
				t.Error(p, err)
			}
		}
		for _, id := range []string{"r1", "n1"} {
			if got := all[id].got(); slices.Contains(got, "job.blue") {
				t.Error(id, "ran", got)
			}
		}
	})
	t.Run("lists", func(t *testing.T) {
		if got, err := blue.Match(within(t), "glob", "*"); err != nil || !slices.Equal(got, []string{"b1", "b2"}) {
			t.Error(got, err)
		}
		if got, err := red.Present(within(t)); err != nil || !slices.Equal(got, []string{"r1"}) {
			t.Error(got, err)
		}
		if got, err := red.Announced(within(t)); err != nil || len(got) != 1 || got[0].ID != "r1" {
			t.Error(got, err)
		}
		if err := red.RevokeMinion(within(t), "b1"); !errors.Is(err, store.ErrNotFound) || r.Keys().State("b1").String() != "accepted" {
			t.Error("revoked another tenant's minion:", err)
		}
	})
	t.Run("orders", func(t *testing.T) {
		ctx := within(t)
		first, err := blue.RunOrder(ctx, master.Order{ID: "o", Job: master.Job{Fun: "job.order", Tgt: "b1", TgtType: "list"}})
		if err != nil || first.ID != "o" || first.Results["b1"].Status != master.Returned {
			t.Fatal(first, err)
		}
		for _, look := range []func(context.Context, string) (master.Outcome, error){red.OrderOutcome, red.AwaitOrder, red.CancelOrder, r.OrderOutcome} {
			if out, err := look(ctx, "o"); !errors.Is(err, store.ErrNotFound) {
				t.Error(out, err)
			}
		}
		// For another tenant, the same id is another order. Minions of other tenants are refused in the same way as
		// unknown ones.
		second, err := red.RunOrder(ctx, master.Order{ID: "o", Job: master.Job{Fun: "job.other", Tgt: "r1,b1,nobody", TgtType: "list"}})
		if err != nil || second.Results["r1"].Status != master.Returned || second.Results["b1"].Status != master.Refused || second.Results["nobody"].Status != master.Refused ||
			second.Results["b1"].Reason != second.Results["nobody"].Reason {
			t.Error(second, err)
		}
		if _, err := red.PlaceOrder(ctx, master.Order{Tenant: "blue", Job: master.Job{Fun: "job.other", Tgt: "*"}}); err == nil {
			t.Error("placed another tenant's order")
		}
		if out, err := blue.RunOrder(ctx, master.Order{Job: master.Job{Fun: "job.order", Tgt: "b2"}}); err != nil || out.ID == "" {
			t.Error(out, err)
		} else if again, err := blue.OrderOutcome(ctx, out.ID); err != nil || again.JID != out.JID {
			t.Error(again, err)
		}
	})
	t.Run("minions", func(t *testing.T) {
		for id, want := range map[string]object{"b1": {"b1": "of b1", "b2": "of b2"}, "r1": {"r1": "of r1"}, "n1": {"n1": "of n1"}} {
			got := all[id].must(object{"cmd": "_mine_get", "tgt": "*", "tgt_type": "glob", "fun": "secret"})
			if d := cmp.Diff(any(want), got); d != "" {
				t.Errorf("mine of %s: %s", id, d)
			}
			got = all[id].must(object{"cmd": "minion_publish", "fun": "job.peer", "arg": []any{}, "tgt": "*", "tgt_type": "glob", "ret": ""})
			reached, _ := got.(object)
			if len(reached) != len(want) {
				t.Errorf("%s reached %v", id, got)
			}
		}
		if got := all["r1"].must(object{"cmd": "minion_publish", "fun": "job.cross", "arg": []any{}, "tgt": "b1", "tgt_type": "glob", "ret": ""}); len(got.(object)) != 0 || slices.Contains(all["b1"].got(), "job.cross") {
			t.Error("reached another tenant's minion:", got)
		}
	})
	t.Run("events", func(t *testing.T) {
		ctx, cancel := context.WithCancel(within(t))
		defer cancel()
		cursor := r.FollowCursor()
		for _, id := range []string{"r1", "n1", "b1"} {
			all[id].must(object{"cmd": "_minion_event", "tag": "hello/" + id, "data": object{"x": int64(1)}, "events": nil, "pretag": nil})
		}
		if _, err := r.Run(ctx, master.Job{Fun: "job.all", Tgt: "*"}); err != nil {
			t.Fatal(err)
		}
		if _, err := blue.Run(ctx, master.Job{Fun: "job.last", Tgt: "b2"}); err != nil {
			t.Fatal(err)
		}
		seen := 0
		for e := range blue.Follow(ctx, cursor) {
			if id, ok := e.Data["id"].(string); ok && id != "b1" && id != "b2" {
				t.Errorf("%s: %v", e.Tag, e.Data)
			}
			if list, ok := e.Data["minions"].([]any); ok && (slices.Contains(list, any("r1")) || slices.Contains(list, any("n1"))) {
				t.Errorf("%s: %v", e.Tag, e.Data)
			}
			if seen++; e.Data["fun"] == "job.last" && e.Data["id"] == "b2" {
				break
			}
		}
		if seen < 4 || ctx.Err() != nil { // hello, two returns, a new job, its return
			t.Error(seen, ctx.Err())
		}
	})
}
