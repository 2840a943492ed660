package minion

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// connectedRig is a minion that has finished everything it does after a sign-in.
func connectedRig(t *testing.T, n *mem.Network, f *fakeMaster, opts map[string]any) *rig {
	t.Helper()
	r := newRig(t, n, opts)
	r.start()
	r.until(Connected)
	f.subscribed(1)
	f.await("start event", isEvent("salt/minion/alpha/start"))
	f.await("pillar", func(m map[string]any) bool { return m["cmd"] == "_pillar" })
	time.Sleep(time.Second)
	return r
}

// wantNoRun checks that none of the jobs ran, and that the minion still answers.
func wantNoRun(t *testing.T, f *fakeMaster, probe string, jids ...string) {
	t.Helper()
	time.Sleep(2 * time.Minute)
	for _, jid := range jids {
		if f.count(isReturn(jid)) > 0 {
			t.Errorf("job %s was run", jid)
		}
	}
	f.publish(jobMap(probe, "test.ping", nil))
	f.await("return of the probe", isReturn(probe))
}

func TestTargets(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		f.pillar = map[string]any{"color": "blue", "a": map[string]any{"b": "c"}}
		connectedRig(t, n, f, map[string]any{"grains": map[string]any{"os": "Debian", "ipv4": []any{"10.1.2.3"}},
			"nodegroups": map[string]any{"web": "alpha or beta"}})
		cases := []struct {
			kind string
			tgt  any
			want bool
		}{
			{"glob", "al*", true}, {"glob", "be*", false},
			{"list", []any{"beta", "alpha"}, true}, {"list", "beta,alpha", true}, {"list", "beta", false},
			{"pcre", "a.p", true}, {"pcre", "b", false},
			{"grain", "os:Deb*", true}, {"grain", "os:Red*", false},
			{"grain_pcre", "os:^D", true}, {"pillar", "color:bl*", true}, {"pillar", "color:red", false},
			{"pillar_pcre", "color:b.ue", true}, {"pillar_exact", "a:b:c", true},
			{"ipcidr", "10.1.0.0/16", true}, {"ipcidr", "10.2.0.0/16", false},
			{"compound", "G@os:Debian and I@color:blue and not E@beta", true}, {"compound", "G@os:Debian and I@color:red", false},
			{"compound", "N@web", true}, {"compound", "G@os:Debian and (", false},
			{"nodegroup", "web", true}, {"range", "%web", false}, {"data", "x:y", false}, {"nonsense", "*", false},
		}
		for i, c := range cases {
			f.publish(jobMap(jidAt(i), "test.ping", map[string]any{"tgt_type": c.kind, "tgt": c.tgt}))
		}
		time.Sleep(time.Minute)
		for i, c := range cases {
			if got := f.count(isReturn(jidAt(i))) == 1; got != c.want {
				t.Errorf("%s %v: ran = %v", c.kind, c.tgt, got)
			}
		}
	})
}

// CVE-2016-1866: what comes in clear on the publish channel is never run.
func TestT9ClearPublish(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		connectedRig(t, n, f, nil)
		load := jobMap(jidAt(1), "test.ping", nil)
		for _, v := range []any{
			map[string]any{"enc": "clear", "load": load}, map[string]any{"load": load}, map[string]any{"enc": "none", "load": load},
			map[string]any{"enc": "aes", "load": load}, map[string]any{"enc": "aes", "load": []any{load}}, []any{load}, load,
			map[string]any{"enc": "clear", "load": pack(load)}, map[string]any{"enc": []any{"aes"}, "load": load}, "x", nil,
		} {
			f.send(pack(v))
		}
		f.send([]byte{0xc1, 0xff})
		f.send(nil)
		wantNoRun(t, f, jidAt(2), jidAt(1))
	})
}

// CVE-2017-7893: an accepted minion knows the shared key; it must not be able to speak as the master.
func TestT10ForgedPublish(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := connectedRig(t, n, f, nil)
		forge := func(jid string, key *crypt.PrivateKey) {
			var aes *crypt.Key
			f.set(func() { aes = f.aes })
			b, err := protocol.SealPublish(jobMap(jid, "test.ping", map[string]any{"serial": int64(1 << 40)}), aes, key, "")
			if err != nil {
				t.Fatal(err)
			}
			f.send(b)
		}
		forge(jidAt(1), testKey(t, otherKey)) // wrong signature: refused even before anything was pinned
		f.publish(jobMap(jidAt(2), "test.ping", nil))
		f.await("return", isReturn(jidAt(2)))
		forge(jidAt(3), nil)
		forge(jidAt(4), testKey(t, otherKey))
		wantNoRun(t, f, jidAt(5), jidAt(1), jidAt(3), jidAt(4))
		// The pin survives a restart of the minion and of the master.
		r.stop()
		f.restart()
		r.start()
		r.until(Connected)
		f.subscribed(1)
		forge(jidAt(6), nil)
		wantNoRun(t, f, jidAt(7), jidAt(6))
	})
}

func TestUnsignedMasters(t *testing.T) {
	for _, c := range []struct {
		opt  any
		want bool
	}{{nil, true}, {false, true}, {true, false}, {"never", true}} {
		bubble(t, func(t *testing.T, n *mem.Network) {
			f := newFake(t, n, "one:4506")
			f.unsigned = true
			connectedRig(t, n, f, map[string]any{"sign_pub_messages": c.opt})
			f.publish(jobMap(jidAt(1), "test.ping", nil))
			time.Sleep(time.Minute)
			if got := f.count(isReturn(jidAt(1))) == 1; got != c.want {
				t.Errorf("sign_pub_messages %v: ran = %v", c.opt, got)
			}
		})
	}
}

// CVE-2022-22936: a publish is honoured once: not again in the same process, after a restart, or after a rotation.
func TestT22ReplayedPublish(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := connectedRig(t, n, f, nil)
		first := f.publish(jobMap(jidAt(1), "test.ping", nil))
		f.await("return", isReturn(jidAt(1)))
		f.publish(jobMap(jidAt(2), "test.ping", nil))
		f.await("return", isReturn(jidAt(2)))
		again := func(when string) {
			t.Helper()
			f.send(first)
			// The same job under a new serial, as a second master would have it.
			f.publish(jobMap(jidAt(1), "test.ping", nil))
			time.Sleep(time.Minute)
			if got := f.count(isReturn(jidAt(1))); got != 1 {
				t.Errorf("%s: job ran %d times", when, got)
			}
		}
		again("same process")
		r.stop()
		r.start()
		r.until(Connected)
		f.subscribed(1)
		again("after a restart")
		f.rotate()
		f.publish(jobMap(jidAt(3), "test.ping", nil))
		f.await("return", isReturn(jidAt(3)))
		again("after a rotation")
	})
}

// A publish for somebody else raises the serial too: it cannot be played again once this minion has changed its grains.
func TestT22ReplayAfterTheTargetChanged(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := connectedRig(t, n, f, nil)
		old := f.publish(jobMap(jidAt(1), "test.ping", map[string]any{"tgt_type": "grain", "tgt": "os:RedHat"}))
		time.Sleep(time.Minute)
		r.stop()
		r.opts["grains"] = map[string]any{"os": "RedHat"}
		r.start()
		r.until(Connected)
		f.subscribed(1)
		f.send(old)
		wantNoRun(t, f, jidAt(2), jidAt(1))
	})
}

// CVE-2025-22242 and friends: a job id becomes a file name.
func TestT31HostileJobs(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		connectedRig(t, n, f, nil)
		for i, change := range []map[string]any{
			{"jid": "../../../etc/passwd"}, {"jid": "/etc/passwd"}, {"jid": ""}, {"jid": nil}, {"jid": uint64(17260102030405000001)},
			{"jid": strings.Repeat("2", 4096)}, {"jid": "req"}, {"jid": jidAt(9) + "/x"}, {"jid": jidAt(9) + "\x00"},
			{"fun": nil}, {"fun": int64(1)}, {"fun": []any{}}, {"fun": []any{"test.ping"}, "arg": []any{}}, {"fun": map[string]any{}},
			{"arg": nil}, {"arg": "x"}, {"arg": map[string]any{}}, {"tgt": nil}, {"tgt": int64(7)}, {"tgt": map[string]any{"a": "b"}},
			{"serial": "x"}, {"serial": -1.5},
		} {
			m := jobMap(jidAt(100+i), "test.ping", change)
			f.publish(m)
		}
		time.Sleep(time.Minute)
		if got := f.count(func(m map[string]any) bool { return m["cmd"] == "_return" }); got != 0 {
			t.Errorf("%d malformed jobs were run", got)
		}
		wantNoRun(t, f, jidAt(1))
	})
}

// CVE-2022-22934: a pillar that is not the master's signed answer to this question is not used, not in part either.
func TestT20ForgedPillar(t *testing.T) {
	other := testKey(t, otherKey)
	var replay any
	cases := map[string]func(f *fakeMaster, v protocol.Verified, e protocol.Envelope) any{
		"foreign signature": func(f *fakeMaster, v protocol.Verified, e protocol.Envelope) any {
			m, err := protocol.SealPillar(v, e, map[string]any{"evil": true}, f.pub, other)
			if err != nil {
				t.Error(err)
			}
			return m
		},
		"for another minion": func(f *fakeMaster, v protocol.Verified, e protocol.Envelope) any {
			m, err := protocol.SealPillar(v, e, map[string]any{"evil": true}, other.Public(), f.key)
			if err != nil {
				t.Error(err)
			}
			return m
		},
		"plain":   func(*fakeMaster, protocol.Verified, protocol.Envelope) any { return map[string]any{"evil": true} },
		"no key":  func(*fakeMaster, protocol.Verified, protocol.Envelope) any { return map[string]any{"pillar": "x"} },
		"nothing": func(*fakeMaster, protocol.Verified, protocol.Envelope) any { return nil },
		"replayed": func(f *fakeMaster, v protocol.Verified, e protocol.Envelope) any {
			if replay == nil {
				replay, _ = protocol.SealPillar(v, e, map[string]any{"evil": true}, f.pub, f.key)
				return nil
			}
			return replay
		},
		"flipped bits": func(f *fakeMaster, v protocol.Verified, e protocol.Envelope) any {
			m, err := protocol.SealPillar(v, e, map[string]any{"evil": true}, f.pub, f.key)
			if err != nil {
				t.Error(err)
			}
			b, _ := payload.Bytes(m["pillar"])
			b[len(b)/2] ^= 1
			m["pillar"] = b
			return m
		},
	}
	for name, forge := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *mem.Network) {
				f := newFake(t, n, "one:4506")
				f.pillarer = func(v protocol.Verified, e protocol.Envelope) any { return forge(f, v, e) }
				r := newRig(t, n, nil)
				r.start()
				r.until(Connected)
				f.subscribed(1)
				f.publish(jobMap(jidAt(1), "test.pillar", nil))
				got := f.await("return", isReturn(jidAt(1)))
				equal(t, map[string]any{}, got["return"])
				f.set(func() { f.pillarer = nil })
				time.Sleep(20 * time.Minute)
				f.publish(jobMap(jidAt(2), "test.pillar", nil))
				equal(t, map[string]any{"color": "blue"}, f.await("return", isReturn(jidAt(2)))["return"])
			})
		})
	}
}

// Rubbish on the publish channel must not make the minion sign in without end.
func TestT11RubbishDoesNotFloodTheMaster(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		connectedRig(t, n, f, nil)
		f.set(func() { f.auths = 0 })
		for i := range 600 {
			f.send(pack(map[string]any{"enc": "aes", "load": []byte(fmt.Sprintf("\xffrubbish %d, long enough for a checksum to be there", i))}))
			time.Sleep(time.Second)
		}
		if all, _ := f.signIns(); all == 0 || all > 25 {
			t.Errorf("%d sign-ins because of 600 pieces of rubbish in ten minutes", all)
		}
		f.publish(jobMap(jidAt(1), "test.ping", nil))
		f.await("return", isReturn(jidAt(1)))
	})
}

// forgedPillar is signed by somebody else.
func forgedPillar(v protocol.Verified, e protocol.Envelope) any {
	testKeys.mu.Lock()
	defer testKeys.mu.Unlock()
	m, err := protocol.SealPillar(v, e, map[string]any{"evil": true}, testKeys.list[minionKey].Public(), testKeys.list[otherKey])
	if err != nil {
		panic(err)
	}
	return m
}
