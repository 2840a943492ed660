package requests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/internal/requesttest"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
)

// contacts are the minions that were heard of.
type contacts []string

func (c *contacts) Contact(id string) { *c = append(*c, id) }

func (c *contacts) Ping(_ context.Context, id string) { *c = append(*c, "ping "+id) }

// eventRules are rules of event_access.
type eventRules func(EventRequest) bool

func (r eventRules) MayFire(q EventRequest) bool { return r(q) }

// newEvents returns an Events over a store in memory, and the log.
func newEvents(t *testing.T, o EventOptions) (*Events, *testlog.Buffer) {
	t.Helper()
	log := new(testlog.Buffer)
	c, err := cache.Open("")
	if err != nil {
		t.Fatal(err)
	}
	o.Bus, o.Cache, o.Tenants, o.Log = events.New(nil), c, fakeTenants{}, slog.New(slog.NewTextHandler(log, nil))
	o.Contacts = new(contacts)
	o.Minions, _ = store.MinionsOf(store.NewMemory())
	return NewEvents(o), log
}

// announce stores the record of a minion.
func announce(t *testing.T, e *Events, id string) {
	t.Helper()
	err := store.ChangeMinion(t.Context(), e.Minions, id, func(*store.Minion) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
}

// TestEvents: events arrive under their tags, alone or as a list, with the minion's data; what is not an event does
// not.
func TestEvents(t *testing.T) {
	e, _ := newEvents(t, EventOptions{})
	sub := e.Bus.Subscribe(events.SubscribeOptions{})
	defer sub.Close()
	r := requesttest.NewSender(t)
	list := func(all ...any) []any { return all }
	for _, load := range []object{
		{"tag": "one", "data": object{"x": int64(1)}},
		{"tag": "no/data"},
		{"data": object{"x": int64(1)}},
		{"events": list(object{"tag": "two", "data": object{"x": int64(2)}}, "x", object{"data": object{}},
			object{"tag": "three"}, object{"tag": "four", "data": "text"}, object{"tag": "salt/auth", "data": object{}})},
		{"pretag": "pre", "events": list(object{"tag": "five", "data": object{"x": int64(5)}})},
		{"tag": "last", "data": object{}},
	} {
		load["cmd"] = "_minion_event"
		if got, err := e.Fire(t.Context(), r.From("m", load)); got != nil || err != nil {
			t.Error(load, got, err)
		}
	}
	var got []string
	data := object{}
	for len(got) == 0 || got[len(got)-1] != "last" {
		x, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, x.Tag)
		data[x.Tag] = x.Data["data"]
		if x.Data["x"] != nil {
			data[x.Tag] = x.Data["x"]
		}
	}
	if d := cmp.Diff([]string{"one", "two", "three", "four", "five", "pre/five", "last"}, got); d != "" {
		t.Error(d)
	}
	want := object{"one": object{"x": int64(1)}, "two": int64(2), "three": nil, "four": "text", "five": int64(5),
		"pre/five": int64(5), "last": object{}}
	if d := cmp.Diff(want, data); d != "" {
		t.Error(d)
	}
}

// TestStartEvents: a start event updates the grains and reports that the minion is connected.
func TestStartEvents(t *testing.T) {
	e, _ := newEvents(t, EventOptions{})
	if err := e.Cache.Store("m", cache.Data{Grains: object{"os": "old", "kept": "x"}}.Ordered()); err != nil {
		t.Fatal(err)
	}
	r := requesttest.NewSender(t)
	start := object{"cmd": "_minion_event", "tag": "salt/minion/m/start", "data": "x", "fetch": true,
		"grains": object{"os": "new", "id": "forged"}}
	if _, err := e.Fire(t.Context(), r.From("m", start)); err != nil {
		t.Fatal(err)
	}
	d, _ := e.Cache.Data("m")
	if diff := cmp.Diff(object{"os": "new", "kept": "x", "id": "m"}, d.Grains); diff != "" {
		t.Error(diff)
	}
	if o, _ := e.Cache.Ordered("m"); cmp.Diff([]any{"kept", "os", "id"}, keysOf(o.Grains)) != "" {
		t.Error(o.Grains)
	}
	if x, err := e.Minions.Minion(t.Context(), "m"); err != nil || x.Spec["fetch"] != true || x.Spec["journal"] != false ||
		!x.Joined {
		t.Error(x, err)
	}
	if d := cmp.Diff(contacts{"m"}, *e.Contacts.(*contacts)); d != "" {
		t.Error(d)
	}
	e.Forget = true
	start["grains"] = object{"os": "newer"}
	if _, err := e.Fire(t.Context(), r.From("m", start)); err != nil {
		t.Fatal(err)
	}
	if d, _ := e.Cache.Data("m"); d.Grains["os"] != "new" {
		t.Error("grains are remembered:", d)
	}
}

// TestPingOnDemand: a minion that asks for a ping gets one, for itself only, and the number is limited.
func TestPingOnDemand(t *testing.T) {
	e, _ := newEvents(t, EventOptions{})
	r := requesttest.NewSender(t)
	for range 10 {
		for _, id := range []string{"beta", "alpha"} {
			load := object{"cmd": "_minion_event", "tag": "brine/minion/" + id + "/ping", "data": object{}}
			if _, err := e.Fire(t.Context(), r.From("alpha", load)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if d := cmp.Diff(contacts{"ping alpha", "ping alpha", "ping alpha"}, *e.Contacts.(*contacts)); d != "" {
		t.Error(d)
	}
}

// TestJournalBeginsAgain: the master notices that a minion came back without the journal that it had.
func TestJournalBeginsAgain(t *testing.T) {
	e, _ := newEvents(t, EventOptions{})
	since := func(load map[string]any) int64 {
		t.Helper()
		e.noteStart(t.Context(), "alpha", load)
		x, err := e.Minions.Minion(t.Context(), "alpha")
		if err != nil {
			t.Fatal(err)
		}
		n, _ := payload.Int(x.Spec["journal_since"])
		return n
	}
	for _, load := range []map[string]any{
		{"journal": true}, // a minion that does not name its journal
		{"journal": true, "journal_id": "A"},
		{"journal": true, "journal_id": "A"},
	} {
		if n := since(load); n != 0 {
			t.Fatalf("%v: the journal begins again at %d", load, n)
		}
	}
	begun := time.Now().UnixMicro()
	again := since(map[string]any{"journal": true, "journal_id": "B"})
	if again < begun {
		t.Errorf("a new journal begins at %d, before %d", again, begun)
	}
	if n := since(map[string]any{"journal": true, "journal_id": "B"}); n != again {
		t.Errorf("after a restart the journal begins at %d, not %d", n, again)
	}
}

// TestEventRules: minions by pattern, {id} as the minion's own and nothing else, bad rules.
func TestEventRules(t *testing.T) {
	f, err := EventRules(map[string][]string{"*": {"app/{id}/*"}, "db-*": {"backup/done", "deploy/*"}, "none": nil})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id, tag string
		want    bool
	}{
		{"web-1", "app/web-1/up", true}, {"web-1", "app/web-2/up", false}, {"web-1", "backup/done", false},
		{"db-1", "backup/done", true}, {"db-1", "backup/done/x", false}, {"db-1", "deploy/a/b", true},
		{"*", "app/web-1/up", false}, {"*", "app/*/up", true}, {"[a]", "app/a/up", false}, {"[a]", "app/[a]/up", true},
		{"none", "app/none/", true}, {"db-1", "", false},
	} {
		if got := f(EventRequest{ID: c.id, Tag: c.tag}); got != c.want {
			t.Errorf("%s, %s: %v", c.id, c.tag, got)
		}
	}
	for _, bad := range []map[string][]string{{"": {"x"}}, {"a": {""}}, {"a": {"\xff"}}, {"a": {strings.Repeat("x", 2000)}}} {
		if _, err := EventRules(bad); err == nil {
			t.Errorf("%q is good", bad)
		}
	}
}

// TestEventAccess: the rule decides but for tags of the minion's own; refusals are logged, not without end.
func TestEventAccess(t *testing.T) {
	rules, err := EventRules(map[string][]string{"*": {"app/{id}/*"}})
	if err != nil {
		t.Fatal(err)
	}
	e, log := newEvents(t, EventOptions{Access: eventRules(rules)})
	const job = "salt/job/20260101000000000000/prog/m/1"
	for tag, want := range map[string]bool{
		"app/m/x": true, "app/n/x": false, "other": false, "salt/minion/m/start": true, "salt/beacon/m/load": true, job: true,
		"salt/auth": false, "salt/startup/failed/m": true, "brine/minion/m/x": true, "_salt_error": true,
		"salt/minion/n/start": false, "saltish": false,
	} {
		if why := e.refusalOf(t.Context(), "m", tag); (why == "") != want {
			t.Errorf("%s: %q", tag, why)
		}
	}
	r := requesttest.NewSender(t)
	v := r.From("m", object{"cmd": "_minion_event", "tag": "no", "data": object{}})
	for range 100 {
		if _, err := e.Fire(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "Event of minion refused"); n != refusedEventsBurst {
		t.Errorf("%d lines in the log", n)
	}
}

// TestGrants: only the minion that an event tag is granted to may fire it, whatever the rule says.
func TestGrants(t *testing.T) {
	never := eventRules(func(q EventRequest) bool { return strings.HasPrefix(q.Tag, "free/") })
	e, _ := newEvents(t, EventOptions{Access: never})
	announce(t, e, "a")
	if got, err := e.Grant(t.Context(), "a", false, []string{"free/b/*", "free/a/*", "free/a/*"}, nil); err != nil ||
		!cmp.Equal(got, []string{"free/a/*", "free/b/*"}) {
		t.Fatal(got, err)
	}
	may := func(id, tag string, want bool) {
		t.Helper()
		if why := e.refusalOf(t.Context(), id, tag); (why == "") != want {
			t.Errorf("%s, %s: %q", id, tag, why)
		}
	}
	may("a", "free/a/x", true)
	may("b", "free/a/x", false)
	may("b", "free/c/x", true)
	if got, err := e.Grant(t.Context(), "a", false, []string{"signal/1/x"}, []string{"free/a/*"}); err != nil ||
		!cmp.Equal(got, []string{"free/b/*", "signal/1/x"}) {
		t.Fatal(got, err)
	}
	may("b", "free/a/x", true)
	may("a", "signal/1/x", true)
	may("b", "signal/1/x", false)
	if _, err := e.Grant(t.Context(), "b", false, []string{"x/y"}, nil); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	e.TakeGrants(store.Minion{ID: "a"})
	may("b", "free/b/x", true)
	e.Minions = nil
	if _, err := e.Grant(t.Context(), "a", false, []string{"x/y"}, nil); !errors.Is(err, store.ErrNoMinions) {
		t.Error(err)
	}
}

// TestKeptEventsAreBounded: what is there stays, what is too much is dropped, and a minion that was not announced has
// no room.
func TestKeptEventsAreBounded(t *testing.T) {
	e, log := newEvents(t, EventOptions{Keep: []string{"keep"}})
	announce(t, e, "a")
	for i := range maxKept + 2 {
		if err := e.keepEvent(t.Context(), "a", "keep", object{"n": int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for id, tag := range map[string]string{"stray": "keep", "a": "other"} {
		if err := e.keepEvent(t.Context(), id, tag, object{}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := e.Kept(t.Context(), "a", "")
	if err != nil || len(list) != maxKept || fmt.Sprint(list[maxKept-1].Data) != "map[n:255]" {
		t.Error(len(list), err)
	}
	if _, err := e.Kept(t.Context(), "stray", ""); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "Event of minion is not kept"); n != 3 {
		t.Errorf("%d lines in the log", n)
	}
	if n, err := e.ForgetKept(t.Context(), "a", "keep"); n != maxKept || err != nil {
		t.Error(n, err)
	}
	large := object{"x": strings.Repeat("x", maxKeptBytes)}
	if err := e.keepEvent(t.Context(), "a", "keep", large); err != nil {
		t.Fatal(err)
	}
	if list, err := e.Kept(t.Context(), "a", ""); len(list) != 0 || err != nil {
		t.Error(len(list), err)
	}
	e.Minions = nil
	if err := e.keepEvent(t.Context(), "a", "keep", object{}); !errors.Is(err, store.ErrNoMinions) {
		t.Error(err)
	}
}
