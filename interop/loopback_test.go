package interop

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/test"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// pair runs a master and a minion in this process, with real sockets between them.
func pair(t testing.TB, opts map[string]any) *master.Master {
	t.Helper()
	dir := t.TempDir()
	m, err := master.New(master.Options{PKIDir: dir + "/pki", CacheDir: dir + "/cache",
		Keys: master.KeyOptions{AutoAccept: true}, Network: master.Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served, ran := make(chan error, 1), make(chan error, 1)
	go func() { served <- m.Serve(ctx) }()
	<-m.Ready()
	home := filepath.Join(dir, "minion")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	port := func(a net.Addr) int64 { return int64(a.(*net.TCPAddr).Port) }
	o := map[string]any{"id": "one", "master": "127.0.0.1", "master_port": port(m.RequestAddr()), "publish_port": port(m.PublishAddr()),
		"pki_dir": home + "/pki", "cachedir": home + "/cache", "mine_enabled": false}
	for k, v := range opts {
		o[k] = v
	}
	connected := make(chan struct{}, 16)
	n, err := minion.New(minion.Options{Opts: o, Log: slog.New(slog.DiscardHandler), Registry: modules.NewRegistry(test.Module),
		Dialers: map[string]transport.Dialer{"zeromq": zeromq.New()}, OnState: func(s minion.Status) {
			if s.State == minion.Connected {
				connected <- struct{}{}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	go func() { ran <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		for _, c := range []chan error{ran, served} {
			if err := <-c; err != nil {
				t.Error(err)
			}
		}
	})
	select {
	case <-connected:
	case err := <-ran:
		ran <- err
		t.Fatalf("the minion ended: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("the minion does not connect")
	}
	// When the minion reports that it is connected, the master may not have its subscription yet.
	for end := time.Now().Add(time.Minute); m.Subscribers() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the minion does not subscribe")
		}
	}
	ping(t, m)
	return m
}

func ping(t testing.TB, m *master.Master) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	res, err := m.Run(ctx, master.Job{Fun: "test.ping", Tgt: "one"})
	if err != nil || res["one"].Return != true {
		t.Fatal(fmt.Sprint(res), err)
	}
}

// TestPromptReturns checks that brine's master informs minions that they need not delay returns, and that brine's
// minion then does not.
func TestPromptReturns(t *testing.T) {
	pair(t, map[string]any{"min_return_age": 300_000.0})
}

// BenchmarkAnswer measures a job from brine's master to its minion, and the return: encrypted, signed, journalled,
// returned and stored, over sockets.
func BenchmarkAnswer(b *testing.B) {
	m := pair(b, nil)
	b.ReportAllocs()
	for b.Loop() {
		ping(b, m)
	}
}
