package master_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
)

// announcing returns the options of a master that accepts only announced minions.
func announcing() master.Options {
	o := orderOptions()
	o.Keys.AutoAccept, o.Network.Advertise = false, []string{"salt.example"}
	return o
}

func ensure(t testing.TB, r *rig, s master.MinionSpec) (token string) {
	t.Helper()
	b, err := r.EnsureMinion(within(t), s)
	if err != nil {
		t.Fatal(err)
	}
	return b.Token
}

// TestJoinToken checks that a join token accepts one key, at any master of the store, until it expires, and that it
// is not sent on the wire.
func TestJoinToken(t *testing.T) {
	st := store.NewMemory()
	o := announcing()
	o.Store = st
	r, other := serve(t, o), serve(t, o)
	token := ensure(t, r, master.MinionSpec{ID: "m"})
	if again := ensure(t, other, master.MinionSpec{ID: "m"}); token == "" || again != token {
		t.Fatal("the token is another one at the second time")
	}
	if wrong := r.newMinion("m", 3).signInWith(protocol.Signin{JoinToken: token + "x"}); wrong != protocol.Pending {
		t.Fatal("a wrong token:", wrong)
	}
	if none := r.newMinion("stranger", 3).signInWith(protocol.Signin{JoinToken: token}); none != protocol.Pending {
		t.Fatal("the token of another id:", none)
	}
	sign := protocol.Signin{ID: "m", Key: testKey(t, 1), JoinToken: token}
	e, err := sign.Request()
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.Marshal()
	if err != nil || bytes.Contains(b, []byte(token)) {
		t.Fatal("the token is on the wire", err)
	}
	// The MAC covers the minion's key, so a recorded request cannot be used with another key.
	stolen, err := protocol.EnvelopeOf(mustUnpack(t, b))
	if err != nil {
		t.Fatal(err)
	}
	load, _ := stolen.Load.(map[string]any)
	load["pub"] = testKey(t, 2).Public().Text()
	thief := r.newMinion("m", 2)
	if _, err := thief.sendValue(object{"enc": "clear", "version": 3, "load": load}); err != nil {
		t.Fatal(err)
	}
	if st := r.Keys().State("m"); st == keys.Accepted {
		t.Fatal("a recorded proof accepts another key")
	}
	if got := r.newMinion("m", 1).signInWith(protocol.Signin{JoinToken: token}); got != protocol.Accepted {
		t.Fatal(got)
	}
	if got := other.newMinion("m", 1).signInWith(protocol.Signin{JoinToken: token}); got != protocol.Accepted {
		t.Fatal("the same key at another master:", got)
	}
	third := serve(t, o)
	if got := third.newMinion("m", 2).signInWith(protocol.Signin{JoinToken: token}); got == protocol.Accepted {
		t.Fatal("a second key joined with one token")
	}
	if again := ensure(t, r, master.MinionSpec{ID: "m"}); again != "" {
		t.Fatal("a minion that joined gets another token")
	}
	short := ensure(t, r, master.MinionSpec{ID: "late", TokenTTL: time.Millisecond})
	time.Sleep(2 * time.Millisecond)
	if got := r.newMinion("late", 1).signInWith(protocol.Signin{JoinToken: short}); got != protocol.Pending {
		t.Fatal("an expired token:", got)
	}
	ensure(t, r, master.MinionSpec{ID: "late"})
	if got := r.newMinion("late", 1).signInWith(protocol.Signin{JoinToken: short}); got != protocol.Accepted {
		t.Fatal("a token with a new term:", got)
	}
	if err := r.Keys().Reject("late", true, false); err != nil {
		t.Fatal(err)
	}
	if got := r.newMinion("late", 1).signInWith(protocol.Signin{JoinToken: short}); got != protocol.Rejected {
		t.Fatal("a rejected minion:", got)
	}
}

func mustUnpack(t testing.TB, b []byte) any {
	t.Helper()
	e, err := protocol.ParseEnvelope(b, payload.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return object{"enc": e.Enc, "load": e.Load, "version": e.Version}
}

func TestAnnouncedKeys(t *testing.T) {
	r := serve(t, announcing())
	b, err := r.EnsureMinion(within(t), master.MinionSpec{ID: "pair", KeyPair: true, Grains: object{"role": "db"}})
	if err != nil || b.PrivateKey == "" || b.Fingerprint == "" {
		t.Fatal(b, err)
	}
	again, err := r.EnsureMinion(within(t), master.MinionSpec{ID: "pair", KeyPair: true, Grains: object{"role": "db"}})
	if err != nil || again.PrivateKey != b.PrivateKey {
		t.Fatal("other keys at the second time", err)
	}
	if _, err := r.EnsureMinion(within(t), master.MinionSpec{ID: "known", PublicKey: testKey(t, 1).Public().Text()}); err != nil {
		t.Fatal(err)
	}
	if st := r.newMinion("known", 1).signIn(); st != protocol.Accepted {
		t.Fatal(st)
	}
	if again, err := r.EnsureMinion(within(t), master.MinionSpec{ID: "known", KeyPair: true}); err != nil || again.PrivateKey != "" {
		t.Fatal("a minion that is there gets other keys", err)
	}
	if st := r.newMinion("known", 2).signIn(); st == protocol.Accepted {
		t.Fatal("another key was accepted")
	}
	for name, bad := range map[string]master.MinionSpec{
		"no id": {}, "path": {ID: "../x"}, "key": {ID: "x", PublicKey: "nonsense"}, "both": {ID: "x", KeyPair: true, PublicKey: testKey(t, 1).Public().Text()},
		"tenant": {ID: "pair", Tenant: "red"},
	} {
		if _, err := r.EnsureMinion(within(t), bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	// An order that waits for a revoked minion never runs.
	cast(t, r, order("o", "job.a", "known"))
	if err := r.RevokeMinion(within(t), "known"); err != nil {
		t.Fatal(err)
	}
	if res := waitFor(t, r, "o", "known"); res.Status != master.Cancelled {
		t.Fatal(res)
	}
	if st := r.newMinion("known", 1).signIn(); st != protocol.Pending {
		t.Fatal(st)
	}
	if err := r.RevokeMinion(within(t), "known"); err != nil {
		t.Fatal("a second time:", err)
	}
}

// TestRevokedMinionsGetNothing checks that a delivery that is pending while its minion runs another job is not sent
// to any minion after its minion is revoked.
func TestRevokedMinionsGetNothing(t *testing.T) {
	o := announcing()
	o.Keys.KeepAESOnDelete = true // so that the revoked minion could still decrypt what is sent
	r := serve(t, o)
	if _, err := r.EnsureMinion(within(t), master.MinionSpec{ID: "m", PublicKey: testKey(t, 1).Public().Text()}); err != nil {
		t.Fatal(err)
	}
	m := r.newMinion("m", 1)
	if st := m.signIn(); st != protocol.Accepted {
		t.Fatal(st)
	}
	begun := make(chan struct{}, 1)
	m.run = func(j protocol.Job) (any, error) {
		if j.Fun[0] == "job.long" {
			begun <- struct{}{}
			return nil, errSilent
		}
		return true, nil
	}
	m.subscribe()
	m.started()
	cast(t, r, order("long", "job.long", "m"))
	<-begun
	sent := r.Events().Subscribe(events.SubscribeOptions{Buffer: 10_000, Match: func(tag string) bool { return strings.HasSuffix(tag, "/publish") || tag == "end" }})
	defer sent.Close()
	var ids []string
	for i := range 30 {
		ids = append(ids, fmt.Sprint("o", i))
		cast(t, r, order(ids[i], "job.secret", "m"))
	}
	if err := r.RevokeMinion(within(t), "m"); err != nil {
		t.Fatal(err)
	}
	for _, id := range append(ids, "long") {
		if res := waitFor(t, r, id, "m"); res.Status != master.Cancelled || res.StillRunning != (id == "long") {
			t.Errorf("%s: %+v", id, res)
		}
	}
	r.Events().Publish("end", nil)
	for {
		e, err := sent.Next(within(t))
		if err != nil {
			t.Fatal(err)
		}
		if e.Tag == "end" {
			break
		}
		if e.Data["fun"] == "job.secret" {
			t.Error("it was sent to the revoked minion:", e.Data["jid"])
		}
	}
}

// TestTargetsOfAbsentMinions checks that a target matches a minion that has not connected yet by the grains of its
// announcement.
func TestTargetsOfAbsentMinions(t *testing.T) {
	r := serve(t, announcing())
	for id, role := range map[string]string{"db1": "db", "db2": "db", "web1": "web"} {
		ensure(t, r, master.MinionSpec{ID: id, Tenant: "blue", Grains: object{"role": role}})
	}
	ensure(t, r, master.MinionSpec{ID: "db9", Tenant: "red", Grains: object{"role": "db"}})
	for _, c := range []struct {
		kind, tgt, tenant string
		want              []string
	}{
		{"glob", "*", "", []string{"db1", "db2", "db9", "web1"}},
		{"grain", "role:db", "", []string{"db1", "db2", "db9"}},
		{"grain", "role:db", "blue", []string{"db1", "db2"}},
		{"compound", "G@role:web or db2", "blue", []string{"db2", "web1"}},
		{"pcre", "db[0-9]", "red", []string{"db9"}},
	} {
		out, err := r.PlaceOrder(within(t), master.Order{Tenant: c.tenant, Job: master.Job{Fun: "f", Tgt: c.tgt, TgtType: c.kind}})
		var got []string
		for id, res := range out.Results {
			if res.Status != master.Queued {
				t.Errorf("%v: %v", c, res)
			}
			got = append(got, id)
		}
		slices.Sort(got)
		if d := cmp.Diff(c.want, got); d != "" || err != nil {
			t.Errorf("%v: %s %v", c, d, err)
		}
	}
	// A tenant's order is refused for unknown minions and for those of other tenants, also when a list names them.
	out, err := r.PlaceOrder(within(t), master.Order{Tenant: "blue", Job: master.Job{Fun: "f", Tgt: []string{"db1", "db9", "nobody"}, TgtType: "list"}})
	if err != nil || out.Results["db1"].Status != master.Queued || out.Results["db9"].Status != master.Refused || out.Results["nobody"].Status != master.Refused {
		t.Error(out, err)
	}
	var none *master.NoMinionsError
	if out, err := r.PlaceOrder(within(t), master.Order{Tenant: "green", Job: master.Job{Fun: "f", Tgt: "*"}}); !errors.As(err, &none) {
		t.Error(out, err)
	}
	blue, err := r.Announced(within(t), "blue")
	if err != nil || len(blue) != 3 || blue[0].ID != "db1" || blue[0].Joined || blue[0].Grains["role"] != "db" {
		t.Error(blue, err)
	}
}

func TestBootstrapForms(t *testing.T) {
	r := serve(t, announcing())
	b, err := r.EnsureMinion(within(t), master.MinionSpec{ID: "m", Grains: object{"role": "it's \"db\""}, Config: object{"hash_type": "sha512"}})
	if err != nil {
		t.Fatal(err)
	}
	cloud, err := b.CloudConfig()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Minion struct {
			Conf   map[string]any
			Grains map[string]any
		} `json:"salt_minion"`
	}
	head, body, _ := strings.Cut(string(cloud), "\n")
	if err := json.Unmarshal([]byte(body), &doc); err != nil || head != "#cloud-config" {
		t.Fatal(head, err)
	}
	c := doc.Minion.Conf
	if c["id"] != "m" || c["master"] != "salt.example" || c["join_token"] != b.Token || c["master_finger"] != b.Fingerprint || c["cache_jobs"] != true || c["hash_type"] != "sha512" ||
		doc.Minion.Grains["role"] != "it's \"db\"" {
		t.Error(doc)
	}
	for name, render := range map[string]func() ([]byte, error){"files": b.CloudConfigFiles, "PowerShell": b.PowerShell, "JSON": b.JSON, "env": b.Env} {
		text, err := render()
		if err != nil || len(text) == 0 || len(text) > 4<<10 {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
}
