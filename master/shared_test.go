package master_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

const sealing = "a sealing key for tests"

// openStore opens the database at path and closes it at the end of the test.
func openStore(t testing.TB, path string) store.Store {
	t.Helper()
	s, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// equals starts n masters over one database, and returns when each of them receives the messages of the others.
func equals(t testing.TB, n int, o master.Options) []*rig {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	var out []*rig
	for range n {
		one := o
		one.Store, one.Shared = openStore(t, path), &master.Shared{Key: []byte(sealing)}
		out = append(out, serve(t, one))
	}
	for i, r := range out {
		sub := r.Events().Subscribe(events.SubscribeOptions{Prefix: "test/hello"})
		for k, other := range out {
			if k == i {
				continue
			}
			eventually(t, "masters hear each other", func() bool {
				other.Events().Publish("test/hello/"+string(rune('a'+k)), nil)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				for {
					e, err := sub.Next(ctx)
					if err != nil || e.Relayed && strings.HasSuffix(e.Tag, string(rune('a'+k))) {
						return err == nil
					}
				}
			})
		}
		sub.Close()
	}
	return out
}

// at returns the same minion, connected to another master. It does not sign in there.
func (m *minion) at(r *rig) *minion {
	m.t.Helper()
	other := &minion{t: m.t, rig: r, id: m.id, key: m.key, signed: m.signed, requester: m.requester}
	var err error
	if other.conn, err = r.dialer.Requester(transport.ClientOptions{RequestAddr: r.RequestAddr().String(), PublishAddr: r.PublishAddr().String()}); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(other.close)
	return other
}

// TestEqualMastersServeAnyMinion checks that a minion's session is valid at every master of a database, and that the
// data that it stored at one master is available at all.
func TestEqualMastersServeAnyMinion(t *testing.T) {
	all := equals(t, 3, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Minions: master.MinionOptions{MineGet: map[string][]string{".*": {".*"}}}})
	m := all[0].accepted("m", 1)
	if _, err := m.pillar(nil); err != nil {
		t.Fatal(err)
	}
	m.must(map[string]any{"cmd": "_mine", "data": map[string]any{"net.ip": "10.0.0.1"}})
	for i, r := range all {
		here := m.at(r)
		got := here.must(map[string]any{"cmd": "_mine_get", "tgt": "os:Debian", "tgt_type": "grain", "fun": "net.ip"})
		if d := cmp.Diff(map[string]any{"m": "10.0.0.1"}, got); d != "" {
			t.Errorf("master %d: %s", i, d)
		}
		if r.PublicKey() != all[0].PublicKey() {
			t.Errorf("master %d has another key", i)
		}
		if here.signIn() != protocol.Accepted || !here.signed.AES.Equal(m.signed.AES) || !here.signed.Session.Equal(m.signed.Session) {
			t.Errorf("master %d: other secrets", i)
		}
	}
	eventually(t, "all masters are listed", func() bool {
		list, err := all[2].Masters(t.Context())
		return err == nil && len(list) == 3
	})
}

// TestEqualMastersSharePresence checks that each master knows which minions are connected to any of the masters, and
// forgets the minions of a master that has stopped.
func TestEqualMastersSharePresence(t *testing.T) {
	all := equals(t, 3, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	present := func(i int, want ...string) {
		t.Helper()
		eventually(t, "present are "+strings.Join(want, " and "), func() bool { return slices.Equal(all[i].Present(), want) })
	}
	one := all[0].accepted("one", 1).subscribe()
	all[1].accepted("two", 2).subscribe()
	for i := range all {
		present(i, "one", "two")
	}
	one.sub.Close()
	for i := range all {
		present(i, "two")
	}
	all[1].end()
	present(0)
	present(2)
}

// TestEqualMastersKnowTheirSubscribers checks that over zeromq, where a connection carries no id, each master
// identifies its own subscribers, so that a job for one minion is sent over that minion's connection only.
func TestEqualMastersKnowTheirSubscribers(t *testing.T) {
	all := equals(t, 2, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Network: master.NetworkOptions{Listen: zeromq.Listen}})
	one := all[0].accepted("one", 1).subscribe()
	two := all[0].accepted("two", 2).subscribe()
	got := func(m *minion, jid string) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return slices.ContainsFunc(m.read, func(job map[string]any) bool { return job["jid"] == jid })
	}
	eventually(t, "what is for one is sent to nobody else", func() bool {
		run := func(r *rig, id string) string {
			t.Helper()
			p, err := r.Submit(t.Context(), master.Job{Fun: "job.x", Tgt: []string{id}, TgtType: "list", Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if res, err := p.Next(within(t)); err != nil || res.ID != id || res.Status != master.Returned {
				t.Fatal(res, err)
			}
			return p.JID
		}
		first := run(all[1], "one")
		run(all[1], "two") // when this job has returned, the first would have arrived too
		return got(one, first) && !got(two, first)
	})
}

// TestEqualMastersShareJobs checks that a job that is published at one master reaches the minions of the others, and
// that their results come back.
func TestEqualMastersShareJobs(t *testing.T) {
	all := equals(t, 3, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	large := strings.Repeat("x", 100_000)
	for i, id := range []string{"a", "b", "c"} {
		m := all[i].accepted(id, i+1).subscribe()
		m.run = func(j protocol.Job) (any, error) {
			if j.Fun[0] == "test.large" {
				return large, nil
			}
			return id, nil
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i, r := range all {
		res, err := r.Run(ctx, master.Job{Fun: "test.name", Tgt: "*", Timeout: time.Minute})
		if err != nil || len(res) != 3 {
			t.Fatal(i, res, err)
		}
		for id, x := range res {
			if x.Return != id || x.Status != master.Returned {
				t.Errorf("master %d, %s: %v", i, id, x)
			}
		}
		for _, nocache := range []bool{false, true} {
			res, err = r.Run(ctx, master.Job{Fun: "test.large", Tgt: []string{"a", "c"}, TgtType: "list", Timeout: time.Minute, NoCache: nocache})
			if err != nil || len(res) != 2 || res["a"].Return != large || res["c"].Return != large {
				t.Fatal(i, len(res), err)
			}
		}
		if jobs, err := r.Store().Jobs(ctx, store.Filter{}); err != nil || len(jobs) != 3*(i+1) {
			t.Errorf("%d jobs are stored, %v", len(jobs), err)
		}
	}
}

// TestEqualMastersRefuseRepeatedRequests checks that a request that was recorded on its way to one master is refused
// by another one.
func TestEqualMastersRefuseRepeatedRequests(t *testing.T) {
	all := equals(t, 2, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	m := all[0].accepted("m", 1)
	sub := all[0].Events().Subscribe(events.SubscribeOptions{Prefix: "my/"})
	defer sub.Close()
	e, nonce, err := m.requester.Pack(map[string]any{"cmd": "_minion_event", "tag": "my/event", "data": map[string]any{}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	v, err := m.send(b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.requester.OpenReply(v, nonce); err != nil {
		t.Fatal(err)
	}
	if v, err = m.at(all[1]).send(b); err != nil {
		t.Fatal(err)
	}
	if _, err := m.requester.OpenReply(v, nonce); err == nil {
		t.Fatal("the second master takes it again")
	}
	if _, err := sub.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sub.Waiting() != 0 {
		t.Error("the event was fired twice")
	}
}

// TestEqualMastersShareEvents checks that subscribers at one master receive each event of another master's minions
// once.
func TestEqualMastersShareEvents(t *testing.T) {
	all := equals(t, 2, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	here := all[0].Events().Subscribe(events.SubscribeOptions{Prefix: "my/"})
	defer here.Close()
	there := all[1].Events().Subscribe(events.SubscribeOptions{Prefix: "my/"})
	defer there.Close()
	m := all[0].accepted("m", 1)
	for i := range 3 {
		m.must(map[string]any{"cmd": "_minion_event", "tag": "my/event", "data": map[string]any{"n": int64(i)}})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 3 {
		for _, sub := range []*events.Subscription{here, there} {
			e, err := sub.Next(ctx)
			if err != nil || e.Tag != "my/event" || e.Relayed != (sub == there) {
				t.Fatal(i, e, err)
			}
		}
	}
	if here.Waiting() != 0 {
		t.Error("an event came back")
	}
}

// TestEqualMastersForgetAKey checks that a key that is deleted at one master is no longer valid at another, and that
// all masters get a new shared key.
func TestEqualMastersForgetAKey(t *testing.T) {
	all := equals(t, 2, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	m := all[0].accepted("m", 1)
	there := m.at(all[1])
	there.must(map[string]any{"cmd": "_file_envs"})
	sub := all[1].Events().Subscribe(events.SubscribeOptions{Prefix: "key"})
	defer sub.Close()
	if err := all[1].Keys().Delete("m"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the session is over at the other master", func() bool {
		_, err := m.call(map[string]any{"cmd": "_file_envs"})
		return err != nil
	})
	if _, err := there.call(map[string]any{"cmd": "_file_envs"}); err == nil {
		t.Error("a deleted minion is served")
	}
	if _, err := sub.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	old := m.signed
	if m.signIn() != protocol.Accepted || m.signed.Session.Equal(old.Session) {
		t.Error("the old session is good again")
	}
	eventually(t, "the shared key is new everywhere", func() bool {
		return m.signIn() == protocol.Accepted && there.signIn() == protocol.Accepted && m.signed.AES.Equal(there.signed.AES) && !m.signed.AES.Equal(old.AES)
	})
	if st := all[1].Keys().State("m"); st != keys.Accepted {
		t.Error(st)
	}
}

// TestEqualMastersClockJumpsBack checks that a minion whose clock jumps back gets a new session at all masters.
func TestEqualMastersClockJumpsBack(t *testing.T) {
	all := equals(t, 2, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	m := all[0].accepted("m", 1)
	m.must(map[string]any{"cmd": "_file_envs"})
	old := m.signed.Session
	e, _, err := m.requester.Pack(map[string]any{"cmd": "_file_envs"}, time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if v, err := m.send(b); err != nil || v == nil {
		t.Fatal(v, err)
	}
	there := m.at(all[1])
	eventually(t, "the other master knows of the new session", func() bool {
		return there.signIn() == protocol.Accepted && !there.signed.Session.Equal(old)
	})
	here := there.at(all[0])
	here.requester = there.requester
	if e, nonce, err := here.requester.Pack(map[string]any{"cmd": "_file_envs"}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	} else if b, err := e.Marshal(); err != nil {
		t.Fatal(err)
	} else if v, err := here.send(b); err != nil {
		t.Fatal(err)
	} else if _, err := here.requester.OpenReply(v, nonce); err != nil {
		t.Error("the new session does not heal the clock:", err)
	}
}

// TestSealing checks that the private keys in the database can be opened only with the right sealing key, and can be
// sealed again with a new one.
func TestSealing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	open := func(s master.Shared) (string, error) {
		m, err := master.New(master.Options{Store: openStore(t, path), Shared: &s})
		if err != nil {
			return "", err
		}
		defer m.Close()
		return m.PublicKey(), nil
	}
	first, err := open(master.Shared{Key: []byte(sealing)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(master.Shared{Key: []byte("another key for sealing")}); err == nil || !strings.Contains(err.Error(), "sealed with another key") {
		t.Fatal(err)
	}
	if _, err := open(master.Shared{Key: []byte("short")}); err == nil {
		t.Fatal("a short key is taken")
	}
	for range 2 { // the second time the former key is not needed, but does no harm
		if again, err := open(master.Shared{Key: []byte("another key for sealing"), Former: [][]byte{[]byte(sealing)}}); err != nil || again != first {
			t.Fatal(err)
		}
	}
	if again, err := open(master.Shared{Key: []byte("another key for sealing")}); err != nil || again != first {
		t.Fatal(err)
	}
	if _, err := master.New(master.Options{Shared: &master.Shared{Key: []byte(sealing)}}); err == nil {
		t.Error("masters share a memory")
	}
}

// TestRecoveredReturnIsToldEverywhere checks that a return that one master recovers by a query is announced once by
// each master.
func TestRecoveredReturnIsToldEverywhere(t *testing.T) {
	o := orderOptions()
	o.Jobs.GatherTimeout = 50 * time.Millisecond
	all := equals(t, 2, o)
	var subs []*events.Subscription
	for _, r := range all {
		sub := r.Events().Subscribe(events.SubscribeOptions{Match: func(tag string) bool { return strings.HasSuffix(tag, "/ret/m") || tag == "end" }})
		defer sub.Close()
		subs = append(subs, sub)
	}
	m := all[0].accepted("m", 1)
	m.parallel = true
	m.run = func(j protocol.Job) (any, error) {
		switch j.Fun[0] {
		case "job.dumb":
			return nil, errSilent
		case "saltutil.find_job":
			return object{}, nil
		case "saltutil.find_cached_job":
			return object{"jid": j.Args[0][0], "fun": "job.dumb", "fun_args": []any{}, "return": "kept", "retcode": 0, "success": true}, nil
		}
		return true, nil
	}
	m.subscribe()
	cast(t, all[0], order("o", "job.dumb", "m"))
	if res := waitFor(t, all[0], "o", "m"); res.Status != master.Returned || res.Return != "kept" {
		t.Fatalf("%+v", res)
	}
	// This event arrives after the return, so each loop below ends with it.
	m.must(map[string]any{"cmd": "_minion_event", "tag": "end", "data": map[string]any{}})
	for i, sub := range subs {
		n := 0
		for {
			e, err := sub.Next(within(t))
			if err != nil {
				t.Fatal(err)
			}
			if e.Tag == "end" {
				break
			}
			if data, _ := payload.Map(e.Data); data["return"] == "kept" {
				n++
			}
		}
		if n != 1 {
			t.Errorf("master %d told the return %d times", i, n)
		}
	}
}
