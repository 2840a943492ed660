package cluster

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/internal/probe"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
)

// jobMap returns a job as the root publishes it.
func jobMap(jid string, arg ...any) map[string]any {
	return map[string]any{"jid": jid, "fun": "test.arg", "arg": append([]any{}, arg...), "tgt": "*", "tgt_type": "glob"}
}

// TestPublishReachesOthers: a job reaches the masters that it is for, with its audience; the sender does not get it back.
func TestPublishReachesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		a, b, c := join(t, db, "a"), join(t, db, "b"), join(t, db, "c")
		run(t, a, b, c)
		list := []Publication{
			{Job: jobMap("1", "x")},
			{Job: jobMap("2"), To: "b", IDs: []string{"m", "n"}, Topics: []string{"m", "n"}},
			{Job: jobMap("3"), IDs: []string{"m"}, NoCache: true},
			{Job: jobMap("4"), IDs: []string{"m"}, Topics: []string{}},
		}
		if err := a.Publish(t.Context(), list...); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for i := range list {
			list[i].To = ""
		}
		if d := cmp.Diff(list, b.host.published); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(slices.Delete(slices.Clone(list), 1, 2), c.host.published); d != "" {
			t.Error(d)
		}
		if len(a.host.published) > 0 {
			t.Errorf("the sender got %v", a.host.published)
		}
	})
}

// TestSecretJobsAreSealed: the arguments of a secret job are in the message under the sealing key only. A job that cannot
// be packed does not keep back the others.
func TestSecretJobsAreSealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, a, b := cluster(t)
		secret := jobMap("1", "password")
		secret[protocol.SecretField] = true
		bad := jobMap("2", struct{}{})
		err := a.Publish(t.Context(), Publication{Job: bad}, Publication{Job: secret, IDs: []string{"m"}})
		if err == nil {
			t.Error("no error for a job that cannot be packed")
		}
		synctest.Wait()
		body := db.last(t, tellPublish).Body
		if bytes.Contains(body, []byte("password")) || !bytes.Contains(body, []byte("sealed")) {
			t.Errorf("%q", body)
		}
		if d := cmp.Diff([]Publication{{Job: secret, IDs: []string{"m"}}}, b.host.published); d != "" {
			t.Error(d)
		}
		changed := db.last(t, tellPublish)
		changed.Body = bytes.ReplaceAll(changed.Body, []byte("jid\xa11"), []byte("jid\xa19"))
		if err := db.Tell(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(b.host.published) != 1 {
			t.Error("sealed arguments were taken for another job")
		}
	})
}

// TestReturnsReachOthers: peers announce a return once and read a large one from the store only if it is needed
// there. The answer to a probe is not an event.
func TestReturnsReachOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, a, b := cluster(t)
		sub := b.bus.Subscribe(events.SubscribeOptions{Prefix: "salt/job/wanted/"})
		defer sub.Close()
		b.host.awaited["awaited"] = true
		large := strings.Repeat("y", inlineReturn)
		probed := probe.Metadata(probe.Listening, false)
		probed["return"] = "x"
		save := func(jid, id string, load map[string]any, want bool) {
			t.Helper()
			if first, err := a.SaveReturn(t.Context(), store.Return{JID: jid, ID: id, Load: load}); err != nil || first != want {
				t.Error(jid, id, first, err)
			}
		}
		save("small", "m", map[string]any{"return": "x"}, true)
		save("small", "m", map[string]any{"return": "again"}, false)
		save("unwanted", "m", map[string]any{"return": large}, true)
		save("awaited", "m", map[string]any{"return": large}, true)
		save("wanted", "m", map[string]any{"return": large}, true)
		if err := a.TellReturn(t.Context(), "unstored", "n", map[string]any{"return": large}); err != nil {
			t.Fatal(err)
		}
		if err := a.TellReturn(t.Context(), "probe", "n", probed); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want := []string{"small/m: x", "awaited/m: yyyyyyyyyy", "wanted/m: yyyyyyyyyy", "unstored/n: yyyyyyyyyy"}
		if d := cmp.Diff(want, b.host.returned); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"m", "m", "m", "m", "n", "n"}, b.host.heard); d != "" {
			t.Error(d)
		}
		if db.readings != 2 {
			t.Errorf("%d returns were read from the store", db.readings)
		}
		e, err := sub.Next(t.Context())
		if err != nil || e.Tag != "salt/job/wanted/ret/m" || !e.Relayed || e.Data["return"] != large {
			t.Error(e.Tag, e.Relayed, err)
		}
		if body := db.last(t, tellReturn).Body; len(body) > 1000 {
			t.Errorf("a probe's answer has %d bytes", len(body))
		}
	})
}

// TestUnreadableReturnIsAGap: listeners learn that a return is missing.
func TestUnreadableReturnIsAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, _, b := cluster(t)
		sub := b.bus.Subscribe(events.SubscribeOptions{})
		defer sub.Close()
		body, err := payload.MarshalBin(map[string]any{"jid": "1", "id": "m"})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Tell(t.Context(), store.Message{From: "a", Kind: tellReturn, Body: body},
			store.Message{From: "a", Kind: tellEvent, Body: []byte("\xc1")}); err != nil {
			t.Fatal(err)
		}
		if e, err := sub.Next(t.Context()); err != nil || e.Missed != 1 {
			t.Errorf("%+v, %v", e, err)
		}
		synctest.Wait()
		if len(b.host.returned) > 0 {
			t.Error(b.host.returned)
		}
	})
}

// TestOrdersAreTold: the others learn which minions an order waits for, and which of them the master has itself.
func TestOrdersAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, a, b := cluster(t)
		a.host.connect("m n", "")
		ids := []string{"k", "m", "n"}
		if err := a.SaveOrder(t.Context(), store.Order{ID: "o"}, nil, ids); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if d := cmp.Diff([][2][]string{{{"k", "m", "n"}, {"m", "n"}}}, b.host.ordered); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"k", "m", "n"}, ids); d != "" {
			t.Error("the caller's list was changed:", d)
		}
		if len(db.orders) != 1 || db.orders[0].ID != "o" || len(a.host.ordered) > 0 {
			t.Error(db.orders, a.host.ordered)
		}
	})
}

// TestPresenceEndsWithTheLease: a master's minions are known to the others within a heartbeat. They are forgotten at once
// when the master ends in order, and with its lease when it dies.
func TestPresenceEndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		a, b, c := join(t, db, "a"), join(t, db, "b"), join(t, db, "c")
		a.host.connect("m n", "")
		b.host.connect("k", "")
		run(t, a, b, c)
		check := func(when, want string) {
			t.Helper()
			synctest.Wait()
			if got := strings.Join(c.at.Present(nil, time.Now(), false), " "); got != want {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}
		masters := func(want ...string) {
			t.Helper()
			if got, err := c.Masters(t.Context()); err != nil || !slices.Equal(got, want) {
				t.Error(got, err)
			}
		}
		check("at first", "k m n")
		masters("a", "b", "c")
		if !c.at.Elsewhere("m") || c.at.Elsewhere("z") || !c.at.Knows("a") || c.at.Knows("c") {
			t.Error("c does not know where minions are")
		}
		a.host.connect("o", "m")
		time.Sleep(heartbeat + listenTick)
		check("one came and one left", "k n o")
		a.stop()
		time.Sleep(heartbeat + listenTick)
		check("a has left", "k")
		masters("b", "c")
		// A master that dies is one whose lease is not renewed.
		db.mu.Lock()
		died := time.Now()
		db.leases[leaseMaster+"d"] = lease{"d", died.Add(beatLife)}
		db.mu.Unlock()
		body, err := payload.MarshalBin(map[string]any{"full": true, "up": []any{"x"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Tell(t.Context(), store.Message{From: "d", Kind: tellPresent, Body: body}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(beatLife - time.Second)
		check("the lease of d is valid", "k x")
		time.Sleep(time.Second + heartbeat + listenTick)
		check("the lease of d has ended", "k")
	})
}

// TestEventsArePassedOnWhileSomebodyListens: nothing is stored for masters without listeners.
func TestEventsArePassedOnWhileSomebodyListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, a, b := cluster(t)
		a.bus.Publish("my/event", map[string]any{"n": int64(1)})
		synctest.Wait()
		if kinds := db.kinds(); len(kinds) > 0 {
			t.Fatal(kinds)
		}
		sub := b.bus.Subscribe(events.SubscribeOptions{})
		time.Sleep(2 * listenTick)
		synctest.Wait()
		for _, tag := range []string{"my/event", "salt/auth", "salt/presence/present", "minion/refresh/m", "salt/job/1/ret/m",
			"salt/job/1/new"} {
			a.bus.Publish(tag, map[string]any{"n": int64(2)})
		}
		b.bus.Publish("own", nil)
		var got []string
		for range 3 {
			e, err := sub.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(e.Tag, e.Relayed))
		}
		slices.Sort(got)
		if d := cmp.Diff([]string{"my/eventtrue", "ownfalse", "salt/job/1/newtrue"}, got); d != "" {
			t.Error(d)
		}
		synctest.Wait()
		if sub.Waiting() != 0 {
			t.Error("more events came")
		}
		sub.Close()
		time.Sleep(2 * beatLife)
		n := len(db.kinds())
		a.bus.Publish("my/event", nil)
		synctest.Wait()
		if kinds := db.kinds(); len(kinds) != n {
			t.Error("an event was told though nobody listens", kinds[n:])
		}
	})
}

// TestMissedMessages: a master that missed messages reads the shared data again and asks which minions are
// connected. Its listeners are told of a gap.
func TestMissedMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, a, b := cluster(t)
		a.host.connect("m", "")
		time.Sleep(2 * heartbeat)
		sub := b.bus.Subscribe(events.SubscribeOptions{})
		defer sub.Close()
		time.Sleep(heartbeat)
		synctest.Wait()
		key, dismissed := b.host.key, b.host.dismissed
		if !b.at.Elsewhere("m") || b.host.caughtUp != 0 {
			t.Fatal("not as expected before")
		}
		db.miss("b")
		synctest.Wait()
		if b.at.Elsewhere("m") || b.host.caughtUp != 1 || b.host.dismissed != dismissed+1 || !b.host.key.Equal(key) ||
			b.host.key == key {
			t.Error("b does not read again", b.host.caughtUp, b.host.dismissed-dismissed)
		}
		if e, err := sub.Next(t.Context()); err != nil || e.Missed != 1 {
			t.Errorf("%+v, %v", e, err)
		}
		time.Sleep(2 * (heartbeat + listenTick))
		synctest.Wait()
		if !b.at.Elsewhere("m") {
			t.Error("b did not ask who is connected")
		}
		if a.host.caughtUp != 0 {
			t.Error("a missed nothing")
		}
	})
}

// TestSecretsAreFollowed: when one master replaces the key of publishes, the others use the new key, and dismiss minions
// whose keys are gone.
func TestSecretsAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := cluster(t)
		before, dismissed := a.host.key, b.host.dismissed
		if !before.Equal(b.host.key) {
			t.Fatal("two keys at first")
		}
		if err := a.Secrets().Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if a.host.key.Equal(before) || !a.host.key.Equal(b.host.key) || b.host.dismissed != dismissed+1 {
			t.Error("b does not follow", b.host.dismissed-dismissed)
		}
	})
}

// TestOneMaintains: the housekeeping is one master's until it is gone for two rounds, and one root of sessions is added
// for all.
func TestOneMaintains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, a, b := cluster(t)
		round := func(m *member, want bool) {
			t.Helper()
			if got := m.Maintain(t.Context(), time.Now()); got != want {
				t.Errorf("%s: %v", m.Name(), got)
			}
		}
		round(a, true)
		round(b, false)
		time.Sleep(testLoop)
		round(b, false)
		round(a, true)
		time.Sleep(2*testLoop - time.Second)
		round(b, false)
		time.Sleep(2 * time.Second)
		round(b, true)
		round(a, false)
		if len(db.purged) != 3 || time.Since(db.purged[2]) != keepMessages {
			t.Error(db.purged)
		}
		time.Sleep(testSession/2 + time.Minute)
		for _, m := range []*member{a, b} {
			m.Maintain(t.Context(), time.Now())
		}
		if n := len(db.secrets[secretSession]); n != 2 {
			t.Errorf("%d roots of sessions", n)
		}
	})
}

// TestKeysAreFollowed: a key that one master deletes is gone for the other, with the session.
func TestKeysAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := cluster(t)
		minion, err := crypt.GenerateKey(2048)
		if err != nil {
			t.Fatal(err)
		}
		pub := minion.Public()
		if err := a.keys.Preseed("m", pub.Text()); err != nil {
			t.Fatal(err)
		}
		token, err := protocol.RequestToken(minion)
		if err != nil {
			t.Fatal(err)
		}
		key, err := a.Secrets().IssueSession("m", pub)
		if err != nil {
			t.Fatal(err)
		}
		e, _, err := protocol.Requester{ID: "m", Session: key, Token: token}.Pack(map[string]any{"cmd": "_mine"}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		session := b.Secrets().Session("m")
		v, err := b.Secrets().OpenRequest(e, session, pub)
		if err != nil || v.ID() != "m" {
			t.Fatal("a session of the other master is not good:", err)
		}
		a.Secrets().OutdateSession("m", a.Secrets().Session("m"))
		synctest.Wait()
		if _, err := b.Secrets().OpenRequest(e, session, pub); err == nil {
			t.Error("an outdated session is good")
		}
		if again, err := b.Secrets().IssueSession("m", pub); err != nil || again.Equal(key) {
			t.Error("the outdated session is issued", err)
		}
		if err := a.keys.Delete("m"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if b.Secrets().Session("m") == session {
			t.Error("the session of a deleted key is known")
		}
		if d := cmp.Diff([]string{"m"}, b.host.deleted) + cmp.Diff([]string(nil), a.host.deleted); d != "" {
			t.Error("who hears of a deleted key: ", d)
		}
	})
}

// TestFirstTime: what changes something is taken by one master once, what only reads is not remembered.
func TestFirstTime(t *testing.T) {
	db := newFakeDB()
	a, b := join(t, db, "a"), join(t, db, "b")
	minion, err := crypt.GenerateKey(2048)
	if err != nil {
		t.Fatal(err)
	}
	token, err := protocol.RequestToken(minion)
	if err != nil {
		t.Fatal(err)
	}
	key, err := crypt.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		load map[string]any
		once bool
	}{
		{map[string]any{"cmd": "_return", "jid": "20260101000000000000"}, false},
		{map[string]any{"cmd": "_return", "jid": string(protocol.JIDRequest)}, true},
		{map[string]any{"cmd": "_return", "jid": string(protocol.JIDNoCache)}, true},
		{map[string]any{"cmd": "_minion_event"}, true},
		{map[string]any{"cmd": "_mine"}, true},
		{map[string]any{"cmd": "_mine_delete"}, true},
		{map[string]any{"cmd": "_mine_flush"}, true},
		{map[string]any{"cmd": "_file_recv"}, true},
		{map[string]any{"cmd": "minion_pub"}, true},
		{map[string]any{"cmd": "minion_publish"}, true},
		{map[string]any{"cmd": "minion_runner"}, true},
		{map[string]any{"cmd": "revoke_auth"}, true},
		{map[string]any{"cmd": "_pillar"}, false},
		{map[string]any{"cmd": "_serve_file"}, false},
		{map[string]any{"cmd": "_mine_get"}, false},
	} {
		e, _, err := protocol.Requester{ID: "m", Session: key, Token: token}.Pack(c.load, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		v, err := protocol.OpenRequest(e, key, minion.Public())
		if err != nil {
			t.Fatal(err)
		}
		first, err := a.FirstTime(t.Context(), v)
		again, err2 := b.FirstTime(t.Context(), v)
		if err != nil || err2 != nil || !first || again == c.once {
			t.Errorf("%v: %v, %v, %v, %v", c.load, first, again, err, err2)
		}
	}
}

// TestLeavesInOrder: a master that ends releases its leases, and Run returns when its context ends.
func TestLeavesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, a, b := cluster(t)
		defer a.bus.Subscribe(events.SubscribeOptions{}).Close()
		time.Sleep(heartbeat)
		if all, err := db.Leases(context.Background(), ""); err != nil || len(all) != 3 {
			t.Fatal(all, err)
		}
		a.stop()
		b.stop()
		if all, err := db.Leases(context.Background(), ""); err != nil || len(all) != 0 {
			t.Error(all, err)
		}
	})
}
