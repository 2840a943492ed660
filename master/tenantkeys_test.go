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

// TestTenantsKeysOnTheWire checks that a publish for a tenant cannot be decrypted with the shared key of any other
// minion, and that Rotate gives each tenant a new shared key.
func TestTenantsKeysOnTheWire(t *testing.T) {
	o := orderOptions()
	o.Keys.AutoAccept, o.Network.Advertise = true, []string{"salt.example"}
	r := serve(t, o)
	for i, id := range []string{"red", "blue"} {
		if _, err := r.EnsureMinion(within(t), master.MinionSpec{ID: id, Tenant: id, PublicKey: testKey(t, i+1).Public().Text()}); err != nil {
			t.Fatal(err)
		}
	}
	red, blue, free := r.accepted("red", 1), r.accepted("blue", 2), r.accepted("free", 3)
	msg, err := protocol.SealPublish(object{"fun": "cmd.run", "arg": []any{"id"}, "tgt": "*", "tgt_type": "glob", "jid": "20260101000000000001", "ret": ""},
		blue.signed.AES, testKey(t, 0), crypt.PKCS1v15SHA1)
	if err != nil {
		t.Fatal(err)
	}
	e, err := protocol.ParseEnvelope(msg, payload.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*minion{red, free} {
		if got, err := protocol.OpenPublish(e, m.signed.AES, m.signed.MasterKey, false); err == nil {
			t.Errorf("%s reads %v", m.id, got)
		}
	}
	keys := []*crypt.Key{red.signed.AES, blue.signed.AES, free.signed.AES}
	if err := r.Rotate(within(t)); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*minion{red, blue, free} {
		if got := m.signIn(); got != protocol.Accepted || slices.ContainsFunc(keys, m.signed.AES.Equal) {
			t.Errorf("%s: %v, or a key of before", m.id, got)
		}
	}
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
