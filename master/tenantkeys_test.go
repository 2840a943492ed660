package master_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// TestTenantsKeys checks that a minion cannot read anything that is published for another tenant: no function,
// argument, id or target. One of the minions does not identify itself. It receives everything that is not sent to a
// single connection, but it cannot decrypt it. An operator's job goes to all minions and does not show them the ids
// of each other.
func TestTenantsKeys(t *testing.T) {
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			o := orderOptions()
			o.Network.Listen, o.Keys.AutoAccept, o.Network.Advertise = tr.listen, true,
				[]string{"salt.example"}
			r := serve(t, o)
			r.dialer = tr.dialer
			views, all, keys := map[string]*master.Tenant{}, map[string]*minion{}, map[string]*crypt.Key{}
			for i, id := range []string{"red1", "red2", "blue1", "blue2", "free1"} {
				tenant := id[:len(id)-1]
				if tenant != "free" {
					view, err := r.Tenant(tenant)
					if err != nil {
						t.Fatal(err)
					}
					views[tenant] = view
					if _, err := view.EnsureMinion(within(t), master.MinionSpec{ID: id, PublicKey: testKey(t, i+1).Public().Text()}); err != nil {
						t.Fatal(err)
					}
				}
				m := r.accepted(id, i+1)
				m.mayMiss = true
				if id == "red2" {
					m.run = func(protocol.Job) (any, error) { return nil, errSilent }
				}
				if _, err := m.pillar(object{"grains": object{"os": "Debian", "kind": id}}); err != nil {
					t.Fatal(err)
				}
				keys[id] = m.signed.AES // read before subscribe, because the minion may sign in again then
				all[id] = m.subscribe()
			}
			for _, pair := range [][2]string{{"red1", "blue1"}, {"red1", "free1"}, {"blue1", "free1"}} {
				if keys[pair[0]].Equal(keys[pair[1]]) {
					t.Errorf("%s and %s have one key", pair[0], pair[1])
				}
			}
			for _, pair := range [][2]string{{"red1", "red2"}, {"blue1", "blue2"}} {
				if !keys[pair[0]].Equal(keys[pair[1]]) {
					t.Errorf("%s and %s have not one key", pair[0], pair[1])
				}
			}
			eventually(t, "all but the silent one are known", func() bool { return r.Named() == 4 })
			for i, j := range []master.Job{{Tgt: "*"}, {Tgt: "blue*"}, {Tgt: []any{"blue1", "blue2"}, TgtType: "list"}, {Tgt: "os:Debian", TgtType: "grain"},
				{Tgt: "blue1 or blue2", TgtType: "compound"}} {
				j.Fun, j.Args = fmt.Sprintf("job.blue_%d", i), []any{"hunter2"}
				res, err := views["blue"].Run(within(t), j)
				if err != nil || len(res) != 2 || res["blue1"].Status != master.Returned || res["blue2"].Status != master.Returned {
					t.Fatal(j.Tgt, res, err)
				}
			}
			out, err := views["blue"].RunOrder(within(t), master.Order{Job: master.Job{Fun: "job.blue_order", Args: []any{"hunter2"}, Tgt: []any{"blue1"}, TgtType: "list"}})
			if err != nil || out.Results["blue1"].Status != master.Returned {
				t.Fatal(out, err)
			}
			// The operator's jobs go to the minions of all tenants.
			for i, j := range []master.Job{{Tgt: "*"}, {Tgt: "L@red1,blue1,blue2,free1 or os:x", TgtType: "compound"}, {Tgt: "os:Debian", TgtType: "grain"},
				{Tgt: []any{"red1", "blue1", "blue2", "free1"}, TgtType: "list"}} {
				j.Fun = fmt.Sprintf("job.everybody_%d", i)
				j.Timeout, j.GatherTimeout = 1e9, 1e9 // do not wait long for the silent minion
				res, err := r.Run(within(t), j)
				if err != nil {
					t.Fatal(err)
				}
				for _, id := range []string{"red1", "blue1", "blue2", "free1"} {
					if res[id].Status != master.Returned {
						t.Errorf("%v: %s did not return: %v", j.Tgt, id, res[id])
					}
				}
			}
			for _, id := range []string{"red1", "red2", "free1"} {
				got := all[id].wire()
				for _, secret := range []string{"job.blue", "hunter2", "blue1", "blue2"} {
					if strings.Contains(got, secret) {
						t.Errorf("%s read of %s: %s", id, secret, got)
					}
				}
				if known := strings.Contains(got, "job.everybody_3"); known != (id != "red2") {
					t.Errorf("%s read the operator's job: %v", id, known)
				}
			}
			if got := all["blue1"].wire(); strings.Contains(got, "red1") || strings.Contains(got, "free1") {
				t.Error("blue1 read of others:", got)
			}
		})
	}
}

// tapped is a server whose publishes are copied to wire.
type tapped struct {
	transport.Server
	wire chan []byte
}

func (s tapped) Publish(msg []byte, topics []string) error {
	s.wire <- msg
	return s.Server.Publish(msg, topics)
}

func (s tapped) PublishTo(peer string, msg []byte) bool {
	s.wire <- msg
	return s.Server.PublishTo(peer, msg)
}

// TestTenantsKeysOnTheWire checks that each message on the publish channel can be decrypted with the shared key of one
// tenant, or of the minions without one, and with no other: jobs of a tenant with the key of that tenant, jobs of an
// operator once with each key. Rotate gives each tenant a new shared key, and former keys decrypt nothing after that.
func TestTenantsKeysOnTheWire(t *testing.T) {
	o := orderOptions()
	o.Keys.AutoAccept, o.Network.Advertise = true, []string{"salt.example"}
	var network mem.Network
	wire := make(chan []byte, 1000)
	o.Network.Listen = func(o transport.ServerOptions) (transport.Server, error) {
		s, err := network.Listen(o)
		return tapped{s, wire}, err
	}
	r := serve(t, o)
	r.dialer = network.Dialer()
	views, shared := map[string]*master.Tenant{}, map[string]*crypt.Key{}
	var from *crypt.PublicKey
	ids := []string{"red", "blue", "free"}
	for i, id := range ids {
		if id != "free" {
			if _, err := r.EnsureMinion(within(t), master.MinionSpec{ID: id, Tenant: id, PublicKey: testKey(t, i+1).Public().Text()}); err != nil {
				t.Fatal(err)
			}
			view, err := r.Tenant(id)
			if err != nil {
				t.Fatal(err)
			}
			views[id] = view
		}
		m := r.accepted(id, i+1)
		m.mayMiss = true
		m.run = func(j protocol.Job) (any, error) {
			if strings.HasPrefix(j.Fun[0], "job.") {
				return nil, errSilent
			}
			return true, nil
		}
		shared[id], from = m.signed.AES, m.signed.MasterKey // read before it subscribes, because it may sign in again then
		m.subscribe()
	}
	eventually(t, "all are known", func() bool { return r.Named() == len(ids) })
	// readers returns who can decrypt a message, and its function.
	readers := func(msg []byte) (fun string, who []string) {
		t.Helper()
		e, err := protocol.ParseEnvelope(msg, payload.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for id, key := range shared {
			if job, err := protocol.OpenPublish(e, key, from, true); err == nil {
				who = append(who, id)
				fun, _ = payload.Text(job["fun"])
			}
		}
		if len(who) != 1 {
			t.Errorf("a message of %s is decrypted by %q, want one", fun, who)
		}
		return fun, who
	}
	check := func(when string) {
		t.Helper()
		for tenant, view := range views {
			if _, err := view.Publish(within(t), master.Job{Fun: "job." + tenant, Tgt: "*"}); err != nil {
				t.Fatal(err)
			}
		}
		for _, fun := range []string{"job.all", "job.end"} {
			if _, err := r.Publish(within(t), master.Job{Fun: fun, Tgt: "*"}); err != nil {
				t.Fatal(err)
			}
		}
		got := map[string][]string{}
		for ended := 0; ended < len(ids); {
			select {
			case msg := <-wire:
				fun, who := readers(msg)
				if fun == "job.end" {
					ended++
				}
				if strings.HasPrefix(fun, "job.") {
					got[fun] = append(got[fun], who...)
				}
			case <-within(t).Done():
				t.Fatalf("%s: %d messages of the last job; before it: %v", when, ended, got)
			}
		}
		for _, who := range got {
			slices.Sort(who)
		}
		all := []string{"blue", "free", "red"}
		if diff := cmp.Diff(map[string][]string{"job.red": {"red"}, "job.blue": {"blue"}, "job.all": all, "job.end": all}, got); diff != "" {
			t.Errorf("%s: who decrypts each job:\n%s", when, diff)
		}
	}
	check("at first")
	if err := r.Rotate(within(t)); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		key := r.accepted(id, i+1).signed.AES
		for of, other := range shared {
			if key.Equal(other) {
				t.Errorf("%s has the key of %s", id, of)
			}
		}
		shared["former "+id] = shared[id]
		shared[id] = key
	}
	check("after Rotate")
}

// TestEqualMastersHaveTheTenantsKeys checks that all masters of a database use the same shared key for the minions of
// a tenant.
func TestEqualMastersHaveTheTenantsKeys(t *testing.T) {
	all := equals(t, 2, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Network: master.NetworkOptions{Advertise: []string{"salt.example"}}})
	for i, id := range []string{"red", "blue"} {
		if _, err := all[i].EnsureMinion(within(t), master.MinionSpec{ID: id, Tenant: id, PublicKey: testKey(t, i+1).Public().Text()}); err != nil {
			t.Fatal(err)
		}
	}
	var keys [2][]string
	for i, r := range all {
		for k, id := range []string{"red", "blue"} {
			keys[i] = append(keys[i], r.accepted(id, k+1).signed.AES.Text())
		}
	}
	if diff := cmp.Diff(keys[0], keys[1]); diff != "" || keys[0][0] == keys[0][1] {
		t.Error("the masters' keys differ, or the tenants' do not:", diff)
	}
	blue := all[1].accepted("blue", 2)
	blue.mayMiss = true
	blue.subscribe()
	eventually(t, "the subscriber is known", func() bool { return all[1].Named() == 1 })
	view, err := all[0].Tenant("blue")
	if err != nil {
		t.Fatal(err)
	}
	if res, err := view.Run(within(t), master.Job{Fun: "job.blue", Tgt: "*"}); err != nil || res["blue"].Status != master.Returned {
		t.Fatal(res, err)
	}
}
