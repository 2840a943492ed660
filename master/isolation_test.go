package master_test

import (
	"context"
	"slices"
	"testing"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// TestIsolationOfMinions checks that an attacker with the keys of one minion cannot read another minion's pillar,
// publish a job that another minion runs, or return under another id.
func TestIsolationOfMinions(t *testing.T) {
	o := orderOptions()
	o.Pillar.Func = func(_ context.Context, r pillar.Request) (map[string]any, error) {
		return object{"secret": "of " + r.ID}, nil
	}
	r := serve(t, o)
	evil, victim := r.accepted("evil", 1), r.accepted("victim", 2)

	t.Run("reads", func(t *testing.T) {
		for _, load := range []map[string]any{{"id": "victim"}, {"grains": object{"id": "victim", "os": "Debian"}}} {
			if got, err := evil.pillar(load); err == nil && got["secret"] != "of evil" {
				t.Errorf("%v: %v", load, got)
			}
		}
		// The request names the victim outside the encrypted load, but the load is encrypted with the attacker's
		// session.
		e, _, err := evil.requester.Pack(object{"cmd": "_pillar", "id": "victim", "grains": object{}, "ver": "2"}, nowUTC())
		if err != nil {
			t.Fatal(err)
		}
		e.ID = "victim"
		b, err := e.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if v, err := evil.send(b); err == nil && v != "bad load" {
			t.Errorf("%v", v)
		}
	})
	t.Run("publishes", func(t *testing.T) {
		job := func() map[string]any {
			return object{"fun": "cmd.run", "arg": []any{"id"}, "tgt": "victim", "tgt_type": "glob", "jid": "20260101000000000001", "ret": "", "serial": int64(1) << 60}
		}
		// Every minion knows the shared key, so a publish is accepted only with the master's signature.
		for name, key := range map[string]*crypt.PrivateKey{"its own": evil.key, "the victim's": victim.key} {
			msg, err := protocol.SealPublish(job(), evil.signed.AES, key, crypt.PKCS1v15SHA1)
			if err != nil {
				t.Fatal(err)
			}
			e, err := protocol.ParseEnvelope(msg, payload.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := protocol.OpenPublish(e, victim.signed.AES, victim.signed.MasterKey, true); err == nil {
				t.Errorf("signed with %s: %v", name, got)
			}
			e.Sig = nil
			if got, err := protocol.OpenPublish(e, victim.signed.AES, victim.signed.MasterKey, true); err == nil {
				t.Errorf("not signed: %v", got)
			}
		}
		// The master does not publish a job for the attacker either.
		if v, err := evil.call(object{"cmd": "minion_pub", "id": "evil", "fun": "cmd.run", "arg": []any{"id"}, "tgt": "victim", "ret": "", "tok": ""}); err == nil {
			if m, _ := v.(object); len(m) > 0 {
				t.Error(v)
			}
		}
	})
	t.Run("returns", func(t *testing.T) {
		out := cast(t, r, order("o", "job.a", "victim"))
		for _, id := range []string{"victim", "evil"} {
			load := protocol.Return{JID: protocol.JID(out.JID), ID: id, Fun: "job.a", Return: "forged", Retcode: 0, Success: true}.Load()
			load["id"] = id
			_, _ = evil.call(load)
		}
		rets, err := r.Store().Returns(within(t), out.JID)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range rets {
			if x.ID == "victim" {
				t.Errorf("a return in the name of another minion is stored: %v", x)
			}
		}
		if now, err := r.OrderOutcome(within(t), "o"); err != nil || now.Results["victim"].Status != master.Queued || len(now.Results) != 1 {
			t.Error(now, err)
		}
	})
}

// TestIsolationOfPublishes checks that a job for one minion reaches no other minion once both subscribers are
// identified, even on transports that do not carry the id. An answer to a probe counts only if it comes from the
// minion that was probed.
func TestIsolationOfPublishes(t *testing.T) {
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
				Network: master.NetworkOptions{Listen: tr.listen}})
			r.dialer = tr.dialer
			evil, victim := r.accepted("evil", 1).subscribe(), r.accepted("victim", 2).subscribe()
			// An answer to a probe with a guessed link must have no effect.
			forged := protocol.Return{JID: "20260101000000000001", ID: "evil", Fun: "test.ping", Return: true, Success: true}.Load()
			forged["metadata"] = object{"brine": "knock", "link": "guessed"}
			evil.must(forged)
			eventually(t, "both subscribers are known", func() bool { return r.Named() == 2 })
			for _, j := range []master.Job{
				{Fun: "job.secret", Args: []any{"hunter2"}, Tgt: "victim"},
				{Fun: "job.secret", Args: []any{"hunter2"}, Tgt: []any{"victim"}, TgtType: "list"},
			} {
				if res, err := r.Run(within(t), j); err != nil || res["victim"].Status != master.Returned {
					t.Fatal(res, err)
				}
			}
			if res, err := r.Run(within(t), master.Job{Fun: "job.all", Tgt: "*"}); err != nil || len(res) != 2 {
				t.Fatal(res, err)
			}
			if got := evil.got(); slices.Contains(got, "job.secret") || !slices.Contains(got, "job.all") {
				t.Error(got)
			}
			evil.mu.Lock()
			defer evil.mu.Unlock()
			for _, job := range evil.read {
				if job["fun"] == "job.secret" {
					t.Errorf("read what was for another: %v", job)
				}
			}
			victim.mu.Lock()
			defer victim.mu.Unlock()
			if n := len(victim.jobs); n < 3 {
				t.Error("the victim was kept from its jobs:", n)
			}
		})
	}
}

// TestIsolate checks that with Isolate a minion that does not identify itself receives nothing, and that a job
// reaches only the minions that its target matches, for targets of any kind.
func TestIsolate(t *testing.T) {
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
				Network: master.NetworkOptions{Listen: tr.listen, Isolate: true}})
			r.dialer = tr.dialer
			silent := r.accepted("silent", 1)
			silent.run = func(protocol.Job) (any, error) { return nil, errSilent }
			silent.subscribe()
			victim, other := r.accepted("victim", 2).subscribe(), r.accepted("other", 3).subscribe()
			if _, err := victim.pillar(nil); err != nil {
				t.Fatal(err)
			}
			eventually(t, "two of three subscribers are known", func() bool { return r.Named() == 2 })
			for _, j := range []master.Job{
				{Fun: "job.id", Args: []any{"hunter2"}, Tgt: "victim"},
				{Fun: "job.grain", Args: []any{"hunter2"}, Tgt: "os:Debian", TgtType: "grain"},
				{Fun: "job.compound", Args: []any{"hunter2"}, Tgt: "G@os:Debian and v*", TgtType: "compound"},
			} {
				if res, err := r.Run(within(t), j); err != nil || res["victim"].Status != master.Returned {
					t.Fatal(res, err)
				}
			}
			if _, err := r.Publish(within(t), master.Job{Fun: "job.all", Tgt: "*"}); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the others got it", func() bool {
				return slices.Contains(victim.got(), "job.all") && slices.Contains(other.got(), "job.all")
			})
			for _, m := range []*minion{silent, other} {
				m.mu.Lock()
				for _, job := range m.read {
					if fun := job["fun"]; fun != "test.ping" && (m == silent || fun != "job.all") {
						t.Errorf("%s read %v", m.id, job)
					}
				}
				m.mu.Unlock()
			}
		})
	}
}
