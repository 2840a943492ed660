package minion

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/mem"
	"github.com/brine-salt/brine/protocol/transport/tcp"
)

func TestSignInAndAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, map[string]any{"start_event_grains": []any{"os"}})
		r.start()
		r.until(Connected)
		f.subscribed(1)
		start := f.await("start event", isEvent("salt/minion/alpha/start"))
		if g, _ := payload.Map(start["grains"]); g["os"] != "Debian" {
			t.Errorf("start event has grains %v", start["grains"])
		}
		if data, _ := start["data"].(string); !strings.HasPrefix(data, "Minion alpha started at ") {
			t.Errorf("start event says %q", data)
		}
		f.await("legacy start event", isEvent("minion_start"))
		p := f.await("pillar", func(m map[string]any) bool { return m["cmd"] == "_pillar" })
		if p["ver"] != "2" {
			t.Errorf("pillar request %v", p)
		}
		f.publish(jobMap(jidAt(1), "test.echo", map[string]any{"arg": []any{"žluť"}, "metadata": map[string]any{"a": int64(1)}}))
		got := f.await("return", isReturn(jidAt(1)))
		delete(got, "ts")
		want := map[string]any{"cmd": "_return", "id": "alpha", "jid": jidAt(1), "fun": "test.echo", "fun_args": []any{"žluť"},
			"return": "žluť", "retcode": int64(0), "success": true, "user": "root", "metadata": map[string]any{"a": int64(1)}}
		equal(t, want, got)
		cached, err := os.ReadFile(filepath.Join(r.dir, "pki", "minion_master.pub"))
		if err != nil || string(cached) != f.key.Public().Text() {
			t.Errorf("cached master key: %v %.30q", err, cached)
		}
		if !r.log.has("Minion is ready to receive requests!") || !r.log.has("Returning information for job: "+jidAt(1)) ||
			!r.log.has("User root Executing command test.echo with jid "+jidAt(1)) {
			t.Error("a log line that people grep for is missing")
		}
		for _, line := range r.log.all() {
			if strings.Count(line, jidAt(1)) > 1 {
				t.Errorf("the job id is twice in a line: %s", line)
			}
		}
		if err := r.stop(); err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}

func TestPendingThenAccepted(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		f.verdict = true
		r := newRig(t, n, map[string]any{"acceptance_wait_time": int64(10), "acceptance_wait_time_max": int64(40)})
		var at []time.Time
		f.onAuth = func(protocol.AuthRequest) { f.set(func() { at = append(at, time.Now()) }) }
		r.start()
		r.until(Pending)
		time.Sleep(3 * time.Minute)
		if _, err := os.Stat(filepath.Join(r.dir, "pki", "minion_master.pub")); err == nil {
			t.Error("a pending reply, which nobody can verify, left a master key behind")
		}
		f.set(func() { f.verdict = nil })
		r.until(Connected)
		f.mu.Lock()
		defer f.mu.Unlock()
		for i, want := range []float64{10, 20, 40, 40, 40} {
			if gap := at[i+1].Sub(at[i]).Seconds(); gap < want*0.89 || gap > want*1.11 {
				t.Errorf("wait %d was %.1f s, want about %.0f", i, gap, want)
			}
		}
		if !r.log.has("The Salt Master has cached the public key for this node") {
			t.Error("the pending line is missing")
		}
	})
}

// A minion whose join token does not help asks every five minutes in the end; one that merely waits for an operator goes on every ten seconds.
func TestRevokedBacksOff(t *testing.T) {
	for name, want := range map[string][]float64{"join_token": {10, 20, 40, 80, 160, 300, 300}, "other": {10, 10, 10, 10, 10, 10}} {
		bubble(t, func(t *testing.T, n *mem.Network) {
			f := newFake(t, n, "one:4506")
			f.verdict = true
			r := newRig(t, n, map[string]any{name: "used"})
			var at []time.Time
			f.onAuth = func(protocol.AuthRequest) { f.set(func() { at = append(at, time.Now()) }) }
			r.start()
			r.until(Pending)
			time.Sleep(20 * time.Minute)
			f.set(func() { f.verdict = nil })
			r.until(Connected)
			f.mu.Lock()
			defer f.mu.Unlock()
			for i, want := range want {
				if gap := at[i+1].Sub(at[i]).Seconds(); gap < want*0.89 || gap > want*1.11 {
					t.Errorf("%s: wait %d was %.1f s, want about %.0f", name, i, gap, want)
				}
			}
			l := r.m.eachLink()[0]
			for v, want := range map[verdicts]time.Duration{{pending: 1}: revokedWaitMax, {rejected: 1}: revokedWaitMax, {full: 1}: 0, {failed: 1}: 0} {
				if got := l.signinPatience(v, r.m.settings()); got != want {
					t.Errorf("%s: accepted, then %+v: %v", name, v, got)
				}
			}
		})
	}
}

func TestRejectedEndsWith77AfterAPause(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		f.verdict = false
		r := newRig(t, n, nil)
		begin := time.Now()
		r.start()
		err := r.wait()
		wantExit(t, err, ExitRejected, ErrRejected)
		if d := time.Since(begin); d < 10*time.Second || d > 21*time.Second {
			t.Errorf("ended after %v", d)
		}
		if !r.log.has("The Salt Master has rejected this minion's public key!") {
			t.Error("the rejection line is missing")
		}
		finger, err := r.m.key.Public().Fingerprint("sha256")
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"salt-key -d alpha", "fingerprint=" + finger} {
			if !r.log.has(text) {
				t.Errorf("the log does not have %q", text)
			}
		}
	})
}

// TestDeniedKey: brine's master says that another key has the id, a stock master does not know the difference.
func TestDeniedKey(t *testing.T) {
	for cause, verdict := range map[string]any{
		`="another key is accepted for this id"`:                       protocol.Denied,
		"the key was rejected, or another key is accepted for this id": false,
	} {
		bubble(t, func(t *testing.T, n *mem.Network) {
			f := newFake(t, n, "one:4506")
			f.verdict = verdict
			r := newRig(t, n, nil)
			r.start()
			wantExit(t, r.wait(), ExitRejected, ErrRejected)
			if !r.log.has("The Salt Master has rejected this minion's public key!") || !r.log.has(cause) {
				r.log.dump(t, 20)
				t.Errorf("the log does not have %q", cause)
			}
		})
	}
}

func TestRejectedRetry(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		f.verdict = false
		r := newRig(t, n, map[string]any{"rejected_retry": true})
		r.start()
		r.until(Rejected)
		time.Sleep(time.Minute)
		f.set(func() { f.verdict = nil })
		r.until(Connected)
	})
}

func TestFullIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		f.verdict = "full"
		r := newRig(t, n, nil)
		r.start()
		r.until(Full)
		f.set(func() { f.verdict = nil })
		r.until(Connected)
	})
}

func TestChangedMasterKeyIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, nil)
		r.writeKey("minion_master.pub", testKey(t, otherKey).Public().PEM())
		r.start()
		time.Sleep(2 * time.Minute)
		if r.m.eachLink()[0].session() != nil {
			t.Fatal("signed in to a master with another key")
		}
		if !r.log.has("The master key has changed, the salt master could have been subverted, verify salt master's public key") {
			t.Error("the changed key line is missing")
		}
		r.wantCached(testKey(t, otherKey).Public())
		if all, _ := f.signIns(); all > 60 {
			t.Errorf("%d sign-ins in two minutes", all)
		}
		// The operator removes the old key: no restart is needed.
		if err := os.Remove(filepath.Join(r.dir, "pki", "minion_master.pub")); err != nil {
			t.Fatal(err)
		}
		r.until(Connected)
	})
}

func TestOpenModeTakesAnyKey(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		newFake(t, n, "one:4506")
		r := newRig(t, n, map[string]any{"open_mode": true})
		r.writeKey("minion_master.pub", testKey(t, otherKey).Public().PEM())
		r.start()
		r.until(Connected)
		r.wantCached(testKey(t, masterKey).Public())
	})
}

func TestMasterFinger(t *testing.T) {
	right, err := testKey(t, masterKey).Public().Fingerprint("sha256")
	if err != nil {
		t.Fatal(err)
	}
	bubble(t, func(t *testing.T, n *mem.Network) {
		newFake(t, n, "one:4506")
		r := newRig(t, n, map[string]any{"master_finger": strings.Repeat("ab:", 31) + "ab"})
		r.start()
		wantExit(t, r.wait(), ExitFinger, ErrFinger)
		if _, err := os.Stat(filepath.Join(r.dir, "pki", "minion_master.pub")); err == nil {
			t.Error("the key of a master with the wrong fingerprint was cached")
		}
		if !r.log.has("The specified fingerprint in the master configuration file") {
			t.Error("the fingerprint line is missing")
		}
		r = newRig(t, n, map[string]any{"master_finger": right})
		r.start()
		r.until(Connected)
	})
}

func TestSignedMasters(t *testing.T) {
	sign := testKey(t, signKey)
	cases := []struct {
		name     string
		verify   bool
		master   *crypt.PrivateKey // signing key of the master, nil: it does not sign
		local    *crypt.PrivateKey // its public half here, nil: none
		cached   int
		accepted bool
	}{
		{"first contact", true, sign, sign, -1, true},
		{"changed key", true, sign, sign, otherKey, true},
		{"same key", true, sign, sign, masterKey, true},
		{"signed by another", true, testKey(t, otherKey), sign, -1, false},
		{"no key to verify with", true, sign, nil, -1, false},
		{"master does not sign", true, nil, sign, -1, false},
		{"minion does not verify", false, sign, sign, -1, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *mem.Network) {
				f := newFake(t, n, "one:4506")
				f.identity.SignKey = c.master
				r := newRig(t, n, map[string]any{"verify_master_pubkey_sign": c.verify, "always_verify_signature": true})
				if c.local != nil {
					r.writeKey("master_sign.pub", c.local.Public().PEM())
				}
				if c.cached >= 0 {
					r.writeKey("minion_master.pub", testKey(t, c.cached).Public().PEM())
				}
				r.start()
				if !c.accepted {
					time.Sleep(time.Minute)
					if r.m.eachLink()[0].session() != nil {
						t.Error("signed in")
					}
					return
				}
				r.until(Connected)
				r.wantCached(testKey(t, masterKey).Public())
			})
		})
	}
}

// CVE-2022-22935: a sign-in reply with a stripped, foreign or replayed signature must not be believed, nor touch the pin.
func TestT21MangledSignInReplies(t *testing.T) {
	other := testKey(t, otherKey)
	var old map[string]any
	inner := func(m map[string]any, change func(map[string]any)) map[string]any {
		v, err := payload.Unmarshal(m["load"].([]byte))
		if err != nil {
			t.Fatal(err)
		}
		in, _ := payload.Map(v)
		change(in)
		m["load"] = pack(in)
		return m
	}
	resign := func(m map[string]any, k *crypt.PrivateKey) map[string]any {
		sig, err := k.Sign(crypt.PKCS1v15SHA1, m["load"].([]byte))
		if err != nil {
			t.Fatal(err)
		}
		m["sig"] = sig
		return m
	}
	cases := map[string]func(m map[string]any) any{
		"no signature":      func(m map[string]any) any { delete(m, "sig"); return m },
		"foreign signature": func(m map[string]any) any { return resign(m, other) },
		"other nonce": func(m map[string]any) any {
			return resign(inner(m, func(in map[string]any) { in["nonce"] = protocol.NewNonce() }), testKey(t, masterKey))
		},
		"other key": func(m map[string]any) any {
			return resign(inner(m, func(in map[string]any) { in["pub_key"] = other.Public().Text() }), other)
		},
		"replayed": func(m map[string]any) any {
			if old == nil {
				old = m
			}
			return old
		},
		"no session key": func(m map[string]any) any {
			return resign(inner(m, func(in map[string]any) { delete(in, "session") }), testKey(t, masterKey))
		},
		"text":    func(map[string]any) any { return "bad load" },
		"rubbish": func(map[string]any) any { return []any{int64(1), nil} },
		"unsigned refusal": func(map[string]any) any {
			return map[string]any{"enc": "clear", "load": map[string]any{"ret": false}}
		},
	}
	for name, mangle := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *mem.Network) {
				f := newFake(t, n, "one:4506")
				r := newRig(t, n, nil)
				r.writeKey("minion_master.pub", testKey(t, masterKey).Public().PEM())
				f.mangle = mangle
				if name == "replayed" {
					mangle(f.auth(authFrom(t, r)).(map[string]any))
				}
				r.start()
				time.Sleep(time.Minute)
				if r.m.eachLink()[0].session() != nil {
					t.Fatal("signed in")
				}
				r.wantCached(testKey(t, masterKey).Public())
				if all, _ := f.signIns(); all == 0 || all > 120 {
					t.Errorf("%d sign-ins in a minute", all)
				}
				f.set(func() { f.mangle = nil })
				r.until(Connected)
			})
		})
	}
}

// authFrom is a sign-in request of the rig's minion.
func authFrom(t *testing.T, r *rig) protocol.Envelope {
	s := protocol.Signin{ID: "alpha", Key: testKey(t, minionKey), MasterKey: testKey(t, masterKey).Public()}
	e, err := s.Request()
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if e, err = protocol.ParseEnvelope(b, payload.Limits{}); err != nil {
		t.Fatal(err)
	}
	return e
}

// CVE-2025-62349: masters that speak an older dialect are refused unless the operator allows them.
func TestT32OldMasterNeedsPermission(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		f.mangle = func(m map[string]any) any {
			v, _ := payload.Unmarshal(m["load"].([]byte))
			in, _ := payload.Map(v)
			delete(in, "session")
			m["load"] = pack(in)
			m["sig"], _ = testKey(t, masterKey).Sign(crypt.PKCS1v15SHA1, m["load"].([]byte))
			return m
		}
		f.session = f.aes
		r := newRig(t, n, nil)
		r.start()
		time.Sleep(time.Minute)
		if r.m.eachLink()[0].session() != nil {
			t.Error("signed in to a master of version 2")
		}
		r.stop()
		r.opts["minimum_auth_version"] = int64(2)
		r.start()
		r.until(Connected)
		if v := r.m.eachLink()[0].session().requester.Version; v != 2 {
			t.Errorf("speaks version %d", v)
		}
	})
}

func TestNeverTwoSignInsAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, nil)
		r.start()
		r.until(Connected)
		f.await("pillar", func(m map[string]any) bool { return m["cmd"] == "_pillar" })
		time.Sleep(time.Minute)
		f.set(func() {
			f.session = newKey(t) // silently, as a master does after publish_session
			f.onAuth = func(protocol.AuthRequest) { time.Sleep(time.Second) }
			f.auths = 0
		})
		l := r.m.eachLink()[0]
		errs := make(chan error, 20)
		for range cap(errs) {
			go func() { errs <- l.fire(t.Context(), "x/y", "z", nil) }()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if all, together := f.signIns(); together != 1 || all != 1 {
			t.Errorf("%d sign-ins, %d at a time", all, together)
		}
		if got := f.count(isEvent("x/y")); got != cap(errs) {
			t.Errorf("%d events, want %d", got, cap(errs))
		}
	})
}

func TestKeyDeletedAndAcceptedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, nil)
		r.start()
		r.until(Connected)
		f.subscribed(1)
		f.set(func() { f.pub, f.verdict = nil, true })
		f.rotate()
		f.publish(jobMap(jidAt(1), "test.ping", nil))
		r.until(Pending)
		f.set(func() { f.verdict = nil })
		r.until(Connected)
		f.subscribed(1)
		f.publish(jobMap(jidAt(2), "test.ping", nil))
		f.await("return", isReturn(jidAt(2)))
	})
}

func TestRotationLosesNoPublish(t *testing.T) {
	for _, delay := range []int64{0, 10} {
		bubble(t, func(t *testing.T, n *mem.Network) {
			f := newFake(t, n, "one:4506")
			r := newRig(t, n, map[string]any{"random_reauth_delay": delay})
			r.start()
			r.until(Connected)
			f.subscribed(1)
			time.Sleep(time.Minute)
			f.rotate()
			begin := time.Now()
			f.publish(jobMap(jidAt(1), "test.ping", nil))
			f.publish(jobMap(jidAt(2), "test.ping", nil))
			f.await("return", isReturn(jidAt(1)))
			f.await("return", isReturn(jidAt(2)))
			if d := time.Since(begin); d > 4*time.Second {
				t.Errorf("answered after %v, too late for a salt command", d)
			}
		})
	}
}

func TestMasterRestart(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, map[string]any{"random_reauth_delay": int64(10)})
		r.start()
		r.until(Connected)
		f.subscribed(1)
		f.stop()
		r.until(Connecting)
		time.Sleep(10 * time.Minute)
		f.rotate()
		begin := time.Now()
		f.start()
		f.subscribed(1)
		if d := time.Since(begin); d > 10*time.Second {
			t.Errorf("back after %v", d)
		}
		f.publish(jobMap(jidAt(1), "test.ping", nil))
		f.await("return", isReturn(jidAt(1)))
	})
}

func TestAutosignGrains(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		var got map[string]any
		f.onAuth = func(r protocol.AuthRequest) { f.set(func() { got = r.AutosignGrains }) }
		r := newRig(t, n, map[string]any{"autosign_grains": []any{"os", "uuid"}})
		r.start()
		r.until(Connected)
		f.set(func() { equal(t, map[string]any{"os": "Debian", "uuid": nil}, got) })
	})
}

// noDNS cannot resolve names for a while.
type noDNS struct {
	transport.Dialer
	lookups *atomic.Int64
	fail    int64
}

type noDNSRequester struct {
	transport.Requester
	d *noDNS
}

func (d *noDNS) Requester(o transport.ClientOptions) (transport.Requester, error) {
	r, err := d.Dialer.Requester(o)
	return noDNSRequester{r, d}, err
}

func (r noDNSRequester) Request(ctx context.Context, b []byte) ([]byte, error) {
	if r.d.lookups.Add(1) <= r.d.fail {
		return nil, fmt.Errorf("cannot connect: %w", &net.DNSError{Err: "no such host", Name: "one", IsNotFound: true})
	}
	return r.Requester.Request(ctx, b)
}

// D2: the network is late at boot.
func TestNamesThatCannotBeResolvedYet(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		newFake(t, n, "one:4506")
		r := newRig(t, n, map[string]any{"auth_tries": int64(1)})
		d := &noDNS{Dialer: n.Dialer(), lookups: new(atomic.Int64), fail: 20}
		r.o.Dialers = map[string]transport.Dialer{"mem": d}
		begin := time.Now()
		r.start()
		r.until(Connected)
		if gap := time.Since(begin); gap > 20*10*time.Second {
			t.Errorf("connected after %v", gap)
		}
		if !r.log.has("DNS lookup or connection check of 'one' failed.") || !r.log.has("Master hostname: 'one' not found or not responsive.") {
			t.Error("the lines about DNS are missing")
		}
		r.stop()
		// retry_dns is the pause.
		r.opts["retry_dns"] = int64(100)
		*d = noDNS{Dialer: n.Dialer(), lookups: new(atomic.Int64), fail: 3}
		begin = time.Now()
		r.start()
		r.until(Connected)
		if gap := time.Since(begin); gap < 270*time.Second || gap > 340*time.Second {
			t.Errorf("with retry_dns: 100 connected after %v", gap)
		}
		r.stop()
		delete(r.opts, "retry_dns")
		// With retry_dns_count the connection is given up, the minion stays.
		r.opts["retry_dns_count"] = int64(3)
		*d = noDNS{Dialer: n.Dialer(), lookups: new(atomic.Int64), fail: 1000}
		r.start()
		r.until(Disconnected)
		if n := d.lookups.Load(); n != 4 {
			t.Errorf("%d look-ups, want 4", n)
		}
		time.Sleep(time.Hour)
		if err := r.stop(); err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}

func TestTransportAbsent(t *testing.T) {
	r := newRig(t, &mem.Network{}, map[string]any{"transport": "pigeon"})
	r.start()
	wantExit(t, r.wait(), 1, nil)
}

func wantExit(t *testing.T, err error, code int, is error) {
	t.Helper()
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Code != code || is != nil && !errors.Is(err, is) {
		t.Fatalf("got %v, want exit code %d (%v)", err, code, is)
	}
}

func (r *rig) writeKey(name string, pem []byte) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, "pki", name), pem, 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) wantCached(key *crypt.PublicKey) {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, "pki", "minion_master.pub"))
	if err != nil {
		r.t.Fatal(err)
	}
	if have, err := crypt.ParsePublicKey(b); err != nil || !have.Equal(key) {
		r.t.Errorf("another master key is cached: %v", err)
	}
}

// nameless knows no name of a host.
type nameless struct{ transport.Dialer }

func (d nameless) Requester(o transport.ClientOptions) (transport.Requester, error) {
	o.Dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "nosuchhost.invalid", IsNotFound: true}}
	}
	return d.Dialer.Requester(o)
}

// TestUnreachableIsToldAtOnce connects to a port where nobody listens, and to a name that does not exist: the log says why long before
// the sign-in gives up, once, and at debug for each attempt.
func TestUnreachableIsToldAtOnce(t *testing.T) {
	addr := fmt.Sprint("127.0.0.1:", freeport.Port(t))
	for _, c := range []struct{ name, master, want string }{
		{"refused", addr, "Cannot connect to the master at " + addr + ": connection refused; trying again until "},
		{"unknown", "nosuchhost.invalid:4506", "Cannot connect to the master at nosuchhost.invalid:4506: no such host; trying again until "},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, &mem.Network{}, map[string]any{"transport": "tcp", "master": c.master, "recon_default": int64(50), "recon_max": int64(100)})
			r.o.Dialers["tcp"] = tcp.New()
			if c.name == "unknown" {
				r.o.Dialers["tcp"] = nameless{tcp.New()}
			}
			begun := time.Now()
			r.start()
			for !r.log.has(c.want) || r.log.times("Cannot connect to the master\"") < 3 {
				if time.Since(begun) > 20*time.Second {
					r.log.dump(t, 20)
					t.Fatal("the log does not say why there is no master")
				}
				time.Sleep(10 * time.Millisecond)
			}
			if n := r.log.times("trying again until"); n != 1 {
				t.Errorf("the warning came %d times", n)
			}
			if !r.log.has("The minion's key") || !r.log.has("fingerprint=") {
				t.Error("the log does not have the key's fingerprint")
			}
		})
	}
}
