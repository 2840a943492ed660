package minion

import (
	"maps"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

func TestHotMasters(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		one, two := newFake(t, n, "one:4506"), newFake(t, n, "two:4506")
		two.stop() // a dead master delays the other by nothing
		r := newRig(t, n, map[string]any{"master": []any{"one:4506", "two:4506"}})
		begin := time.Now()
		r.start()
		r.until(Connected)
		if d := time.Since(begin); d > time.Second {
			t.Errorf("connected after %v", d)
		}
		one.subscribed(1)
		one.publish(jobMap(jidAt(1), "test.ping", nil))
		one.await("return", isReturn(jidAt(1)))
		two.start()
		two.subscribed(1)
		two.publish(jobMap(jidAt(2), "test.ping", nil))
		two.await("return", isReturn(jidAt(2)))
		if one.count(isReturn(jidAt(2))) != 0 {
			t.Error("a return went to another master than the one that published the job")
		}
		// Job ids are shared.
		two.publish(jobMap(jidAt(1), "test.ping", nil))
		time.Sleep(time.Minute)
		if two.count(isReturn(jidAt(1))) != 0 {
			t.Error("a job of one master ran again for the other")
		}
	})
}

func TestHotMasterRejectsWhileAnotherWorks(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		one, two := newFake(t, n, "one:4506"), newFake(t, n, "two:4506")
		two.verdict = false
		r := newRig(t, n, map[string]any{"master": []any{"one:4506", "two:4506"}})
		r.start()
		r.until(Rejected)
		time.Sleep(5 * time.Minute)
		one.subscribed(1)
		one.publish(jobMap(jidAt(1), "test.ping", nil))
		one.await("return", isReturn(jidAt(1)))
	})
}

// D7: for every sequence of up and down, the minion is at a live master within 15 s of there being one.
func TestFailoverSequences(t *testing.T) {
	names := []string{"one:4506", "two:4506", "three:4506"}
	bubble(t, func(t *testing.T, n *mem.Network) {
		fakes := make([]*fakeMaster, len(names))
		list := make([]any, len(names))
		for i, name := range names {
			fakes[i], list[i] = newFake(t, n, name), name
		}
		r := newRig(t, n, map[string]any{"master": list, "master_type": "failover", "auth_timeout": int64(2), "acceptance_wait_time": int64(2)})
		r.start()
		jid := 1
		// All subsets of live masters, in an order that changes one or more at a time; the empty one too.
		for _, up := range []int{7, 6, 4, 5, 1, 0, 2, 3, 1, 4, 0, 6, 0, 1, 2, 4, 7} {
			for i, f := range fakes {
				if want := up>>i&1 == 1; want && f.srv == nil {
					f.restart()
				} else if !want {
					f.stop()
				}
			}
			if up == 0 {
				time.Sleep(10 * time.Minute)
				continue
			}
			begin := time.Now()
			found := func() *fakeMaster {
				for _, f := range fakes {
					if f.srv != nil && f.srv.Subscribers() > 0 {
						return f
					}
				}
				return nil
			}
			for found() == nil && time.Since(begin) < time.Hour {
				time.Sleep(100 * time.Millisecond)
			}
			if d := time.Since(begin); d > 15*time.Second {
				t.Errorf("masters %03b: connected after %v", up, d)
			}
			jid++
			f := found()
			if f == nil {
				r.log.dump(t, 30)
				t.Fatalf("masters %03b: never connected", up)
			}
			f.publish(jobMap(jidAt(jid), "test.ping", nil))
			f.await("return", isReturn(jidAt(jid)))
			if got := len(r.m.eachLink()[0].masterList()); got != len(names) {
				t.Fatalf("the list of masters shrank to %d", got)
			}
		}
	})
}

func TestFailback(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		one, two := newFake(t, n, "one:4506"), newFake(t, n, "two:4506")
		one.stop()
		r := newRig(t, n, map[string]any{"master": []any{"one:4506", "two:4506"}, "master_type": "failover", "master_failback": true,
			"master_failback_interval": int64(30), "auth_timeout": int64(1)})
		r.start()
		r.until(Connected)
		two.subscribed(1)
		time.Sleep(10 * time.Minute)
		begin := time.Now()
		one.start()
		one.subscribed(1)
		if d := time.Since(begin); d > 35*time.Second {
			t.Errorf("back at the first master after %v", d)
		}
		one.publish(jobMap(jidAt(1), "test.ping", nil))
		one.await("return", isReturn(jidAt(1)))
	})
}

func TestMasterAliveInterval(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		one, two := newFake(t, n, "one:4506"), newFake(t, n, "two:4506")
		r := newRig(t, n, map[string]any{"master": []any{"one:4506", "two:4506"}, "master_type": "failover", "master_alive_interval": int64(10)})
		r.start()
		r.until(Connected)
		one.subscribed(1)
		// The master's request side dies while its publish side stands: only a round trip shows it.
		one.set(func() { one.deaf = true })
		begin := time.Now()
		two.subscribed(1)
		if d := time.Since(begin); d > 25*time.Second {
			t.Errorf("at the next master after %v", d)
		}
	})
}

func TestFailoverPendingGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		one, two := newFake(t, n, "one:4506"), newFake(t, n, "two:4506")
		one.verdict = true
		r := newRig(t, n, map[string]any{"master": []any{"one:4506", "two:4506"}, "master_type": "failover"})
		r.start()
		r.until(Connected)
		two.subscribed(1)
	})
}

func TestReturnFollowsFailover(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		one, two := newFake(t, n, "one:4506"), newFake(t, n, "two:4506")
		r := newRig(t, n, map[string]any{"master": []any{"one:4506", "two:4506"}, "master_type": "failover", "auth_timeout": int64(1)})
		r.start()
		r.until(Connected)
		one.subscribed(1)
		one.publish(jobMap(jidAt(1), "test.sleep", map[string]any{"arg": []any{int64(30)}}))
		time.Sleep(time.Second)
		one.stop()
		two.await("return", isReturn(jidAt(1)))
	})
}

func TestRandomMaster(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		names := []any{"a:1", "b:1", "c:1", "d:1"}
		for _, failback := range []bool{false, true} {
			firsts := map[string]int{}
			for range 200 {
				r := newRig(t, n, map[string]any{"master": names, "master_type": "failover", "random_master": true, "master_failback": failback})
				r.o.Opts = r.opts
				m, err := New(r.o)
				if err != nil {
					t.Fatal(err)
				}
				l := newLink(m, m.settings().masters)
				l.shuffleMasters(m.settings())
				firsts[l.masterList()[0].name]++
				if len(l.masterList()) != len(names) {
					t.Fatal("masters are lost")
				}
				l.close()
			}
			if want := map[bool]int{false: 4, true: 1}[failback]; len(firsts) != want {
				t.Errorf("failback %v: first masters %v", failback, firsts)
			}
		}
	})
}

func TestMasterTypes(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		for _, c := range []struct {
			opts map[string]any
			ok   bool
		}{
			{map[string]any{"master_type": "func"}, false}, {map[string]any{"master_type": "nonsense"}, false},
			{map[string]any{"master": ""}, false}, {map[string]any{"master": "a b"}, false}, {map[string]any{"master": "[::1"}, false},
			{map[string]any{"master": "x:y"}, false}, {map[string]any{"master": "x:0"}, false}, {map[string]any{"master": "x:99999"}, false},
			{map[string]any{"master": "a:b:c"}, false}, {map[string]any{"master": "x", "master_uri_format": "ip_only"}, false},
			{map[string]any{"id": "../x"}, false}, {map[string]any{"pki_dir": "relative"}, false},
			{map[string]any{"encryption_algorithm": "ROT13"}, false}, {map[string]any{"master": "::1"}, true},
			{map[string]any{"master": "[fe80::1%eth0]:45"}, true}, {map[string]any{"master_type": "distributed", "master": []any{"a", "b"}}, true},
		} {
			r := newRig(t, n, c.opts)
			r.o.Opts = r.opts
			if _, err := New(r.o); (err == nil) != c.ok {
				t.Errorf("%v: %v", c.opts, err)
			}
		}
	})
}

func TestMasterAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"salt": "salt:4506", "salt:1234": "salt:1234", "10.0.0.1": "10.0.0.1:4506", "10.0.0.1:99": "10.0.0.1:99",
		"::1": "[::1]:4506", "[::1]": "[::1]:4506", "[::1]:77": "[::1]:77", "fe80::a00:27ff:fedc:ba98": "[fe80::a00:27ff:fedc:ba98]:4506",
		"salt.example.org.": "salt.example.org.:4506", " salt ": "salt:4506", "[fe80::1%eth0]:7": "[fe80::1%eth0]:7", "SALT": "SALT:4506",
	} {
		s, err := newSettings(map[string]any{"id": "a", "master": in}, nil)
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if got := s.masters[0].requestAddr(); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestDisabledMasterRunsWithout(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		r := newRig(t, n, map[string]any{"master_type": "disable"})
		r.start()
		time.Sleep(time.Hour)
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestReloadChangesMasters(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		one, two := newFake(t, n, "one:4506"), newFake(t, n, "two:4506")
		r := newRig(t, n, nil)
		next := maps.Clone(r.opts)
		next["master"] = []any{"two:4506"}
		r.o.Load = func() (map[string]any, error) { return next, nil }
		r.start()
		r.until(Connected)
		one.subscribed(1)
		if err := r.m.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		two.subscribed(1)
		for range 1000 {
			if one.srv.Subscribers() == 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if got := one.srv.Subscribers(); got != 0 {
			t.Errorf("%d subscriptions at the master that was removed", got)
		}
		two.publish(jobMap(jidAt(1), "test.ping", nil))
		two.await("return", isReturn(jidAt(1)))
		next = maps.Clone(next)
		next["id"] = "beta"
		if err := r.m.Reload(t.Context()); err == nil {
			t.Error("a reload changed the id")
		}
	})
}

func TestIntervals(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		connectedRig(t, n, f, map[string]any{"ping_interval": int64(1)})
		time.Sleep(5*time.Minute + 30*time.Second)
		if got := f.count(isEvent("minion_ping")); got != 5 {
			t.Errorf("%d pings in five and a half minutes", got)
		}
		if got := f.await("ping", isEvent("minion_ping")); got["data"] != "ping" {
			t.Errorf("ping event %v", got)
		}
	})
}

func TestSessionKeyHealsWithoutLoss(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		connectedRig(t, n, f, nil)
		for i := range 3 {
			time.Sleep(time.Minute)
			f.set(func() { f.session = newKey(t) })
			ask(f, i, "test.ping")
		}
		if all, _ := f.signIns(); all != 4 {
			t.Errorf("%d sign-ins, want 4", all)
		}
	})
}

// A master that refuses requests although it accepts the key is not asked to sign in without end.
func TestRefusedRequestsDoNotFloodTheMaster(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := connectedRig(t, n, f, nil)
		f.set(func() {
			f.auths = 0
			f.raw = func(protocol.Verified) []byte { return pack(protocol.BadLoad) }
		})
		l := r.m.eachLink()[0]
		for range 200 {
			if err := l.fire(t.Context(), "x", "y", nil); err == nil {
				t.Fatal("a refused request succeeded")
			}
			time.Sleep(100 * time.Millisecond)
		}
		if all, _ := f.signIns(); all == 0 || all > 10 {
			t.Errorf("%d sign-ins in 20 s", all)
		}
		f.set(func() { f.raw = nil })
		if err := l.fire(t.Context(), "x", "y", nil); err != nil {
			t.Error(err)
		}
	})
}

// An answer to another question is no answer.
func TestT22ReplayedReply(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := connectedRig(t, n, f, nil)
		var old []byte
		f.set(func() {
			f.raw = func(v protocol.Verified) []byte {
				if v.Cmd() != "_file_hash" {
					return nil
				}
				b, err := v.Reply(map[string]any{"hsum": "evil"})
				if err != nil {
					t.Error(err)
				}
				if old == nil {
					old = pack(b)
				}
				return old
			}
		})
		l := r.m.eachLink()[0]
		if _, err := l.fileRequest(t.Context(), map[string]any{"cmd": "_file_hash"}, false); err != nil {
			t.Fatal(err)
		}
		if v, err := l.fileRequest(t.Context(), map[string]any{"cmd": "_file_hash"}, false); err == nil {
			t.Errorf("a replayed answer was taken: %v", v)
		}
	})
}

// TestFunctionsSeeHostAndPort: config.get and templates have the host of host:port as master, and its port as master_port, as in stock
// (salt/minion.py: prep_ip_port). What the caller gave stays.
func TestFunctionsSeeHostAndPort(t *testing.T) {
	for _, c := range []struct {
		opts   map[string]any
		master any
		port   any
	}{
		{map[string]any{"master": "one:4510"}, "one", int64(4510)},
		{map[string]any{"master": "[::1]:4510", "master_port": int64(1)}, "::1", int64(4510)},
		{map[string]any{"master": "one", "master_port": int64(4511)}, "one", int64(4511)},
		{map[string]any{"master": "one:4510", "file_client": "local"}, "one:4510", nil},
		{map[string]any{"master": []any{"one:4510"}, "master_type": "failover"}, []any{"one:4510"}, nil},
	} {
		c.opts["id"] = "a"
		given := c.opts["master"]
		s, err := newSettings(c.opts, nil)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, c.master, s.options["master"])
		equal(t, c.port, s.options["master_port"])
		equal(t, given, c.opts["master"])
	}
}
