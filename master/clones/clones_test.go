package clones

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/protocol/events"
)

// fakeAsker is a network where hosts share ids. The grains that it knows of a minion are those of the first host.
type fakeAsker struct {
	mu    sync.Mutex // guards the fields below
	hosts map[string][]map[string]any
	asked int
}

func (a *fakeAsker) Accepted(string) bool { return true }

func (a *fakeAsker) Grains(id string) (map[string]any, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.hosts[id]) == 0 {
		return nil, false
	}
	return a.hosts[id][0], true
}

func (a *fakeAsker) AskHosts(ctx context.Context, ids, grains []string,
	each func(id string, answer any)) {
	a.mu.Lock()
	a.asked++
	for _, id := range ids {
		for _, h := range a.hosts[id] {
			each(id, h)
		}
	}
	a.mu.Unlock()
	<-ctx.Done()
}

// questions is how often minions were asked.
func (a *fakeAsker) questions() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

func (a *fakeAsker) set(id string, hosts ...map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hosts == nil {
		a.hosts = make(map[string][]map[string]any)
	}
	a.hosts[id] = hosts
}

func host(name, uuid string) map[string]any {
	return map[string]any{"nodename": name, "uuid": uuid, "machine_id": "same",
		"ipv4": []any{"127.0.0.1", "10.0.0." + uuid}}
}

// startGuard runs a guard of a single master, with a subscription to its events, until stop is called.
func startGuard(t *testing.T, a *fakeAsker) (g *Guard, sub *events.Subscription, stop func()) {
	bus := events.New(nil)
	sub = bus.Subscribe(events.SubscribeOptions{})
	g = NewGuard(a, new(Memory), bus, 5*time.Second, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Run(ctx)
	}()
	return g, sub, func() {
		sub.Close()
		cancel()
		<-done
	}
}

// TestCloneComesAndGoes: two hosts with one id are found once, and the id leaves the list when one host alone has
// answered several times in a row.
func TestCloneComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeAsker{}
		g, sub, stop := startGuard(t, a)
		ctx := t.Context()
		a.set("m", host("first", "1"), host("second", "2"))
		g.AsksPillar("m", host("second", "2"))
		time.Sleep(time.Minute)
		got, err := g.List(ctx)
		if err != nil || len(got) != 1 || got[0].ID != "m" || len(got[0].Hosts) != 2 ||
			got[0].Hosts[1].Name != "second" ||
			!slices.Equal(got[0].Hosts[0].IPv4, []string{"10.0.0.1"}) || got[0].Since.IsZero() {
			t.Fatalf("%+v, %v", got, err)
		}
		a.set("m", host("second", "2"))
		for range cloneGone {
			time.Sleep(cloneRecheck)
			g.Recheck(ctx, time.Now())
		}
		time.Sleep(time.Minute)
		if got, err := g.List(ctx); err != nil || len(got) != 0 {
			t.Errorf("%+v, %v", got, err)
		}
		for _, cloned := range []bool{true, false} {
			if e, err := sub.Next(ctx); err != nil || e.Tag != "brine/clone/m" ||
				e.Data["cloned"] != cloned {
				t.Errorf("event %v, %v, want cloned %v", e, err, cloned)
			}
		}
		if n := sub.Waiting(); n > 0 {
			t.Errorf("%d further events", n)
		}
		stop()
	})
}

// TestReplacedHostIsNoClone: a host that replaced another is queried for a while and then left alone, and so is one
// whose address changed.
func TestReplacedHostIsNoClone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeAsker{}
		g, sub, stop := startGuard(t, a)
		a.set("m", host("first", "1"))
		g.SignedIn("m", "192.0.2.1:1")
		g.SignedIn("m", "192.0.2.1:2")
		time.Sleep(time.Minute)
		if n := a.questions(); n != 0 {
			t.Errorf("asked %d times without a reason", n)
		}
		g.SignedIn("m", "192.0.2.2:1")
		time.Sleep(time.Hour)
		if n := a.questions(); n != 1+len(cloneAgain) || sub.Waiting() != 0 {
			t.Errorf("asked %d times, %d events", n, sub.Waiting())
		}
		stop()
	})
}

// TestMemoryNotes: what is kept first stays until it is dropped.
func TestMemoryNotes(t *testing.T) {
	var n Memory
	ctx := t.Context()
	for _, c := range []struct {
		body  string
		first bool
	}{{"one", true}, {"two", false}} {
		if first, err := n.Add(ctx, "m", []byte(c.body)); first != c.first || err != nil {
			t.Errorf("%s: %v, %v", c.body, first, err)
		}
	}
	if b, err := n.Read(ctx, "m"); string(b) != "one" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if err := n.Drop(ctx, "m"); err != nil {
		t.Error(err)
	}
	if ids, err := n.IDs(ctx); len(ids) != 0 || err != nil {
		t.Error(ids, err)
	}
}
