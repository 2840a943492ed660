package master_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// TestWhole checks the main functions of a master together, over the in-memory transport and over ZeroMQ.
func TestWhole(t *testing.T) {
	for name, o := range map[string]master.Options{"mem": {},
		"zeromq": {Network: master.NetworkOptions{Listen: zeromq.Listen}}} {
		t.Run(name, func(t *testing.T) {
			o.Files.FS = fstest.MapFS{"top.sls": {Data: []byte("base: {}\n")}}
			o.Pillar.Func = pillar.Static(map[string]any{"a": int64(1)})
			o.Keys.AutoAccept = true
			o.CacheDir = filepath.Join(t.TempDir(), "cache")
			r := serve(t, o)
			a := r.accepted("web1", 1).subscribe()
			b := r.accepted("web2", 2).subscribe()
			if p, err := a.pillar(nil); err != nil || p["a"] != int64(1) {
				t.Fatal(p, err)
			}
			if v := a.must(map[string]any{"cmd": "_serve_file", "path": "top.sls", "saltenv": "base", "loc": 0}); !cmp.Equal(v, any(map[string]any{"data": "base: {}\n", "dest": "top.sls"})) {
				t.Fatal(v)
			}
			res, err := r.Run(t.Context(), master.Job{Fun: "job.ping", Tgt: "web*"})
			if err != nil || len(res) != 2 || res["web1"].Return != true || !res["web2"].Success || res["web2"].Status != master.Returned {
				t.Fatal(res, err)
			}
			if res, err = r.Run(t.Context(), master.Job{Fun: "job.ping", Tgt: []string{"web2", "gone"}, TgtType: "list"}); err != nil || len(res) != 2 || res["gone"].Status != master.Missing {
				t.Fatal(res, err)
			}
			if len(a.ran()) != 1 || len(b.ran()) != 2 {
				t.Fatal(a.ran(), b.ran())
			}
			if err := r.Rotate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if res, err = r.Run(t.Context(), master.Job{Fun: "test.ping", Tgt: "*"}); err != nil || len(res) != 2 {
				t.Fatal(res, err)
			}
		})
	}
}

func TestSignInDecisions(t *testing.T) {
	r := serve(t, master.Options{})
	ev := r.Events().Subscribe(events.SubscribeOptions{Prefix: "salt/auth"})
	defer ev.Close()
	a := r.newMinion("a", 1)
	if st := a.signIn(); st != protocol.Pending {
		t.Fatal(st)
	}
	if st := a.signIn(); st != protocol.Pending {
		t.Fatal(st)
	}
	if err := r.Keys().Accept("a", false, false); err != nil {
		t.Fatal(err)
	}
	if st := a.signIn(); st != protocol.Accepted {
		t.Fatal(st)
	}
	if st := r.newMinion("a", 2).signIn(); st != protocol.Denied {
		t.Fatal("denied:", st)
	}
	if k, err := r.Keys().Get("a", keys.Denied); err != nil || k.Text != testKey(t, 2).Public().Text() {
		t.Fatal(k, err)
	}
	if st := a.signIn(); st != protocol.Accepted {
		t.Fatal("the right key after a wrong one:", st)
	}
	if err := r.Keys().Reject("a", true, false); err != nil {
		t.Fatal(err)
	}
	if st := a.signIn(); st != protocol.Rejected {
		t.Fatal(st)
	}
	var acts []string
	for range 6 {
		e, err := ev.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		acts = append(acts, fmt.Sprint(e.Data["act"], e.Data["result"]))
	}
	if d := cmp.Diff("pendtrue pendtrue accepttrue deniedfalse accepttrue rejectfalse", strings.Join(acts, " ")); d != "" {
		t.Error(d)
	}
}

func TestSignInAlgorithms(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	m := r.newMinion("m", 1)
	if st := m.signInWith(protocol.Signin{EncAlgo: "OAEP-SHA224", SigAlgo: "PKCS1v15-SHA224"}); st != protocol.Accepted {
		t.Fatal(st)
	}
	for field, want := range map[string]string{"sig_algo": "bad sig algo", "enc_algo": "bad enc algo"} {
		load := map[string]any{"cmd": "_auth", "id": "m", "nonce": protocol.NewNonce(), "pub": testKey(t, 1).Public().Text(), field: "ROT13"}
		v, err := m.sendValue(map[string]any{"enc": "clear", "load": load, "version": 3})
		if d := cmp.Diff(any(map[string]any{"enc": "clear", "load": map[string]any{"ret": want}}), v); d != "" || err != nil {
			t.Error(d, err)
		}
	}
}

func TestMasterSignsItsKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "master_sign.pem"), testKey(t, 3).PEM(), 0o400); err != nil {
		t.Fatal(err)
	}
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true, SignPubkey: true},
		PKIDir: dir})
	m := r.newMinion("m", 1)
	if st := m.signInWith(protocol.Signin{VerifyPubkeySign: true, VerifyKey: testKey(t, 3).Public()}); st != protocol.Accepted {
		t.Fatal(st)
	}
}

func TestMaxMinions(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true, MaxMinions: 1}})
	// As in Salt, a minion is refused when more than MaxMinions minions are connected.
	a, b := r.accepted("a", 1), r.accepted("b", 2)
	if st := r.newMinion("c", 3).signIn(); st != protocol.Full {
		t.Fatal(st)
	}
	if a.signIn() != protocol.Accepted || b.signIn() != protocol.Accepted {
		t.Fatal("a connected minion was turned away")
	}
}

func TestKeyDeletionShutsOut(t *testing.T) {
	r := serve(t, master.Options{CacheDir: t.TempDir()})
	m := r.newMinion("m", 1)
	m.signIn()
	if err := r.Keys().Accept("m", false, false); err != nil {
		t.Fatal(err)
	}
	m.signIn()
	m.must(map[string]any{"cmd": "_file_envs"})
	before := m.signed.AES
	other := r.newMinion("other", 2)
	other.signIn()
	if err := r.Keys().Accept("other", false, false); err != nil {
		t.Fatal(err)
	}
	if err := r.Keys().Delete("m"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.call(map[string]any{"cmd": "_file_envs"}); !errors.Is(err, protocol.ErrReauth) {
		t.Fatal(err)
	}
	if st := m.signIn(); st != protocol.Pending {
		t.Fatal(st)
	}
	eventually(t, "a new shared key", func() bool {
		other.signIn()
		return !other.signed.AES.Equal(before)
	})
}

func TestDropFile(t *testing.T) {
	dir := t.TempDir()
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}, CacheDir: dir,
		LoopInterval: 20 * time.Millisecond})
	ev := r.Events().Subscribe(events.SubscribeOptions{Prefix: "key"})
	defer ev.Close()
	m := r.accepted("m", 1)
	before := m.signed.AES
	path := filepath.Join(dir, ".dfn")
	if err := os.WriteFile(path, nil, 0o644); err != nil { // salt-key creates it with mode 0400
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	if m.signIn(); !m.signed.AES.Equal(before) {
		t.Fatal("a drop file of any mode counts")
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if e, err := ev.Next(t.Context()); err != nil || e.Data["rotate_aes_key"] != true {
		t.Fatal(e, err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Fatal("drop file is still there")
	}
	m.must(map[string]any{"cmd": "_file_envs"}) // sessions stay valid
	if m.signIn(); m.signed.AES.Equal(before) {
		t.Fatal("the shared key is the same")
	}
}

// TestLostKeyIsNoticed checks that a minion whose key is deleted while it is connected gets no more jobs. Instead it
// gets a message that it cannot decrypt, so that it signs in again and waits to be accepted.
func TestLostKeyIsNoticed(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: false}})
	var both [2]*minion
	for i, id := range []string{"stays", "lost"} {
		m := r.newMinion(id, i+1)
		m.signIn()
		if err := r.Keys().Accept(id, false, false); err != nil {
			t.Fatal(err)
		}
		m.signIn()
		both[i] = m.subscribe()
	}
	eventually(t, "both are known", func() bool { return r.Named() == 2 })
	if err := r.Keys().Delete("lost"); err != nil {
		t.Fatal(err)
	}
	if err := r.Rotate(within(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the key waits for acceptance", func() bool { return r.Keys().State("lost") == keys.Pending })
	both[1].sub.Close()
	both[1].wg.Wait() // until its sign-in is answered
}

func TestSessionsSurviveACleanRestart(t *testing.T) {
	o := master.Options{Keys: master.KeyOptions{AutoAccept: true}, CacheDir: t.TempDir(),
		PKIDir: filepath.Join(t.TempDir(), "pki")}
	r := serve(t, o)
	m := r.accepted("m", 1)
	m.must(map[string]any{"cmd": "_file_envs"})
	e, nonce, err := m.requester.Pack(map[string]any{"cmd": "_file_envs"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	recorded, _ := e.Marshal()
	if v, err := m.send(recorded); err != nil {
		t.Fatal(err)
	} else if _, err := m.requester.OpenReply(v, nonce); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(o.CacheDir, "sessions", "m")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || info.Size() != 76 {
		t.Fatal(info, err)
	}
	r.end()
	r2 := serve(t, o)
	m2 := r2.newMinion("m", 1)
	m2.requester = m.requester
	if v, err := m2.send(recorded); err != nil || v != "bad load" {
		t.Fatal("recorded request after restart:", v, err)
	}
	// Because it has refused the recorded request, the master gives the minion a new session at its next sign-in.
	// Without such a request the session stays valid.
	r2.end()
	r3 := serve(t, o)
	m3 := r3.newMinion("m", 1)
	if st := m3.signIn(); st != protocol.Accepted {
		t.Fatal(st)
	}
	if m3.requester.Session.Equal(m.requester.Session) {
		t.Fatal("a session under suspicion was kept")
	}
	r3.end()
	r4 := serve(t, o)
	m4 := r4.newMinion("m", 1)
	m4.requester = m3.requester
	later, nonce, err := m4.requester.Pack(map[string]any{"cmd": "_file_envs"}, time.Now().Add(2*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := later.Marshal()
	v, err := m4.send(b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m4.requester.OpenReply(v, nonce); err != nil {
		t.Fatal("session after a clean restart:", err)
	}
}

func TestSessionsEndWithACrash(t *testing.T) {
	o := master.Options{Keys: master.KeyOptions{AutoAccept: true}, CacheDir: t.TempDir(),
		PKIDir: filepath.Join(t.TempDir(), "pki")}
	r := serve(t, o)
	m := r.accepted("m", 1)
	r.end()
	if err := os.Remove(filepath.Join(o.CacheDir, "sessions", ".seen")); err != nil { // as after a crash
		t.Fatal(err)
	}
	r2 := serve(t, o)
	m2 := r2.newMinion("m", 1)
	m2.requester = m.requester
	if _, err := m2.call(map[string]any{"cmd": "_file_envs"}); !errors.Is(err, protocol.ErrReauth) {
		t.Fatal(err)
	}
}

func TestAnIDWithAnotherKeyGetsAnotherSession(t *testing.T) {
	o := master.Options{Keys: master.KeyOptions{AutoAccept: true}, CacheDir: t.TempDir(),
		PKIDir: filepath.Join(t.TempDir(), "pki")}
	r := serve(t, o)
	m := r.accepted("m", 1)
	// The operator replaces the key file by hand.
	if err := os.WriteFile(filepath.Join(o.PKIDir, "minions", "m"), testKey(t, 2).Public().PEM(), 0o644); err != nil {
		t.Fatal(err)
	}
	n := r.accepted("m", 2)
	if n.requester.Session.Equal(m.requester.Session) {
		t.Fatal("two owners of an id share a session key")
	}
}

func TestSessionKeysAge(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true,
		PublishSession: 150 * time.Millisecond}})
	m := r.accepted("m", 1)
	first := m.requester.Session
	eventually(t, "session too old", func() bool {
		_, err := m.call(map[string]any{"cmd": "_file_envs"})
		return errors.Is(err, protocol.ErrReauth)
	})
	if m.signIn(); m.requester.Session.Equal(first) {
		t.Fatal("the old session key was issued again")
	}
	eventually(t, "the new session is good, for as long as it lasts", func() bool {
		_, err := m.call(map[string]any{"cmd": "_file_envs"})
		if err != nil {
			m.signIn()
		}
		return err == nil
	})
}

func TestServeEndsWithAllGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 3 {
		r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
			CacheDir: t.TempDir(), Network: master.NetworkOptions{Listen: zeromq.Listen}})
		m := r.accepted("m", 1).subscribe()
		if _, err := r.Run(t.Context(), master.Job{Fun: "test.ping", Tgt: "*"}); err != nil {
			t.Fatal(err)
		}
		s := r.Events().Subscribe(events.SubscribeOptions{})
		run, err := r.Submit(t.Context(), master.Job{Fun: "x", Tgt: "*"})
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = run.Next(t.Context())
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		r.end()
		if _, err := s.Next(t.Context()); err == nil {
			for err == nil {
				_, err = s.Next(t.Context())
			}
		}
		if _, err := r.Publish(t.Context(), master.Job{Fun: "test.ping", Tgt: "*"}); !errors.Is(err, master.ErrNotServing) {
			t.Fatal(err)
		}
		m.close()
	}
	eventually(t, "all goroutines gone", func() bool { return runtime.NumGoroutine() <= before })
}

func TestNewThatIsNotServed(t *testing.T) {
	m, err := master.New(master.Options{PKIDir: t.TempDir(), Keys: master.KeyOptions{Size: 2048}})
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	m.Close()
	if err := m.Serve(context.Background()); err == nil {
		t.Fatal("a closed master serves")
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	for name, o := range map[string]master.Options{
		"algorithm": {Security: master.SecurityOptions{SigningAlgorithm: "ROT13"}},
		"push":      {Files: master.FileOptions{Recv: true}},
		"local":     {Local: &master.Local{}},
		"peer":      {Minions: master.MinionOptions{Peer: map[string][]any{"(": {".*"}}}},
		"mine":      {Minions: master.MinionOptions{MineGet: map[string][]string{".*": {"("}}}},
		"hash":      {Files: master.FileOptions{HashType: "crc32"}},
		"ignore":    {Files: master.FileOptions{IgnoreRegex: []string{"("}}},
		"backend":   {Files: master.FileOptions{Backends: []fileserver.Backend{nil}}},
		"interval":  {LoopInterval: -time.Second},
		"transport": {Network: master.NetworkOptions{More: []master.Listener{{}}}},
	} {
		if m, err := master.New(o); err == nil {
			m.Close()
			t.Errorf("%s: no error", name)
		} else if !strings.HasPrefix(err.Error(), "cannot make master: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
