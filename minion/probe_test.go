package minion

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/brine-salt/brine/minion/connections"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// TestConnections: the daemon says through its event sockets how it is connected.
func TestConnections(t *testing.T) {
	f, r, _ := busRig(t)
	ask, err := New(Options{Opts: r.m.settings().options})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pid, list, err := ask.Connections(ctx)
	if err != nil || pid != os.Getpid() || len(list) != 1 {
		t.Fatalf("%d, %+v, %v", pid, list, err)
	}
	if c := list[0]; c.Master != "one:4506" || c.State != connections.Connected || c.Err != "" || time.Since(time.Unix(c.Since, 0)) > time.Hour || c.Pinged != 0 {
		t.Errorf("%+v", c)
	}
	// A test.ping counts as answered once the master has taken its return; no other job does.
	f.subscribed(1)
	for i, fun := range []string{"test.echo", "test.ping"} {
		jid := jidAt(i + 1)
		f.publish(jobMap(jid, fun, map[string]any{"arg": []any{}}))
		f.await("return", isReturn(jid))
	}
	for at := time.Now(); ; {
		if _, list, err = ask.Connections(ctx); err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		if got := list[0].Pinged; got != 0 {
			if got < at.Unix()-60 || got > time.Now().Unix() {
				t.Errorf("answered the ping at %d", got)
			}
			break
		}
	}
	nobody, err := New(Options{Opts: map[string]any{"id": "alpha", "sock_dir": t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := nobody.Connections(ctx); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a daemon: %v", err)
	}
}

// TestSignInOnce: one sign-in tells the state of the key and the master's time, and leaves no trace on the host.
func TestSignInOnce(t *testing.T) {
	n := &mem.Network{}
	f := newFake(t, n, "one:4506")
	now := time.Unix(1_800_000_000, 0)
	f.identity.PromptReturns, f.identity.Now = true, func() time.Time { return now }
	r := newRig(t, n, nil)
	r.o.Opts = r.opts
	m, err := New(r.o)
	if err != nil {
		t.Fatal(err)
	}
	pki := m.settings().pkiDir
	key := filepath.Join(pki, "minion.pem")
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.SignIn(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := os.Stat(key); err == nil {
		t.Error("a key was made")
	}
	if err := errors.Join(os.Rename(key+".away", key), os.Chmod(key, 0o440)); err != nil {
		t.Fatal(err)
	}
	finger := func(n int) string {
		s, err := testKey(t, n).Public().Fingerprint("sha256")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	once := func() SignInReport {
		t.Helper()
		own, list, err := m.SignIn(t.Context())
		if err != nil || len(list) != 1 || own != finger(minionKey) {
			t.Fatalf("%s, %+v, %v", own, list, err)
		}
		return list[0]
	}
	if got := once(); got.Status != protocol.Accepted || got.Known || got.Fingerprint != finger(masterKey) || !got.Time.Equal(now) || got.Err != nil {
		t.Errorf("accepted: %+v", got)
	}
	f.verdict = true
	if got := once(); got.Status != protocol.Pending {
		t.Errorf("pending: %+v", got)
	}
	f.verdict = false
	if got := once(); got.Status != protocol.Rejected {
		t.Errorf("rejected: %+v", got)
	}
	f.verdict = nil
	if files, err := os.ReadDir(pki); err != nil || len(files) != 1 {
		t.Errorf("files in pki_dir: %v, %v", files, err)
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o440 {
		t.Errorf("the key's mode was changed: %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(pki, "minion_master.pub"), testKey(t, otherKey).Public().PEM(), 0o644); err != nil {
		t.Fatal(err)
	}
	got := once()
	if !errors.Is(got.Err, protocol.ErrMasterKeyChanged) {
		t.Fatalf("another master: %+v", got)
	}
	want := "it shows a key with the fingerprint " + finger(masterKey) + ", the cached one has " + finger(otherKey)
	if text := got.Err.Error(); len(text) < len(want) || text[len(text)-len(want):] != want {
		t.Errorf("%s, want %s", text, want)
	}
}
