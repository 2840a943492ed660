package master_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/swarm"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// TestMinionsFollowANewMasterKey checks that 1,000 minions that verify the master's signed key (master_sign_pubkey)
// accept a new key without an operator. Minions that trust only the first key refuse it: see TestMasterKeyChange in
// package protocol.
func TestMinionsFollowANewMasterKey(t *testing.T) {
	n := 1000
	if raceEnabled || testing.Short() {
		n = 50
	}
	var network mem.Network
	o := master.Options{Keys: master.KeyOptions{AutoAccept: true, SignPubkey: true, Size: 2048},
		Security: master.SecurityOptions{AuthRate: -1}, PKIDir: filepath.Join(t.TempDir(), "pki"),
		Network: master.NetworkOptions{Listen: network.Listen,
			Interface: "127.0.0.1", PublishPort: 4505, RetPort: 4506}} // ports of the in-memory network
	var m *master.Master
	up := func() (down func()) {
		t.Helper()
		var err error
		if m, err = master.New(o); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- m.Serve(ctx) }()
		<-m.Ready()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	key := func(name string) *crypt.PublicKey {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(o.PKIDir, name))
		if err != nil {
			t.Fatal(err)
		}
		k, err := crypt.ParsePublicKey(b)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	down := up()
	vouched, old := key("master_sign.pub"), key("master.pub")
	s, err := swarm.New(swarm.Options{Masters: []swarm.Addr{{Request: m.RequestAddr().String()}}, Dialer: network.Dialer(), Minions: n, Parallel: 200,
		SignKey: vouched, RequestTime: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	lived := make(chan struct{})
	go func() { defer close(lived); s.Run(ctx) }()
	defer func() { cancel(); <-lived }()
	within, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	if err := s.Wait(within, func(st swarm.Stats) bool { return st.Ready == int64(n) }); err != nil {
		t.Fatal(err)
	}
	answered := func() int {
		t.Helper()
		res, err := m.Run(within, master.Job{Tgt: "*", TgtType: "glob", Fun: "test.ping", Timeout: 20 * time.Second})
		if err != nil && within.Err() != nil {
			t.Fatal(err)
		}
		count := 0
		for _, r := range res {
			if r.Status == master.Returned {
				count++
			}
		}
		return count
	}
	for got := 0; got < n; got = answered() {
		if within.Err() != nil {
			t.Fatalf("%d of %d answer the first key", got, n)
		}
	}

	down()
	for _, name := range []string{"master.pem", "master.pub"} {
		if err := os.Remove(filepath.Join(o.PKIDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	down = up()
	defer func() { down() }()
	if key("master.pub").Equal(old) || !key("master_sign.pub").Equal(vouched) {
		t.Fatal("the master's key is not new, or the signing key is")
	}
	for got := 0; got < n; got = answered() {
		if within.Err() != nil {
			t.Fatalf("%d of %d answer the new key", got, n)
		}
	}
	if st := s.Stats(); st.SignIns < int64(2*n) {
		t.Errorf("%d sign-ins of %d minions", st.SignIns, n)
	}
}
