package master_test

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/swarm"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// crowded is a store in which SaveReturn of a large return blocks until the gate is open. most is the largest number of
// such calls at the same time.
type crowded struct {
	store.Store
	gate      chan struct{}
	came      chan struct{} // holds a token for each call
	now, most atomic.Int64
}

func (c *crowded) SaveReturn(ctx context.Context, r store.Return) (bool, error) {
	if text, ok := r.Load["return"].(string); !ok || len(text) < 1<<20 {
		return c.Store.SaveReturn(ctx, r)
	}
	n := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	c.came <- struct{}{}
	<-c.gate
	return c.Store.SaveReturn(ctx, r)
}

// TestLargeReturnsTakeTurns checks that the master opens only some megabytes of simultaneous returns at a time,
// however slow the store is, that small requests of other minions are answered meanwhile, and that all returns are
// stored.
func TestLargeReturnsTakeTurns(t *testing.T) {
	const n, size, most = 40, 1 << 20, 15
	var network mem.Network
	received := make(chan struct{}, n)
	listen := func(o transport.ServerOptions) (transport.Server, error) {
		handle := o.Handler
		o.Handler = func(ctx context.Context, peer string, body []byte) []byte {
			if len(body) > size {
				received <- struct{}{}
			}
			return handle(ctx, peer, body)
		}
		return network.Listen(o)
	}
	db := &crowded{Store: store.NewMemory(), gate: make(chan struct{}), came: make(chan struct{}, n)}
	m, err := master.New(master.Options{Keys: master.KeyOptions{AutoAccept: true, Size: 2048},
		Security: master.SecurityOptions{AuthRate: -1}, PKIDir: filepath.Join(t.TempDir(), "pki"),
		Network: master.NetworkOptions{Listen: listen,
			Interface: "127.0.0.1", PublishPort: 4505, RetPort: 4506}, Store: db}) // ports of the in-memory network
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- m.Serve(ctx) }()
	<-m.Ready()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	s, err := swarm.New(swarm.Options{Masters: []swarm.Addr{{Request: m.RequestAddr().String()}}, Dialer: network.Dialer(),
		Minions: n + 1, KeepConns: n + 1, RequestTime: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	lived := make(chan struct{})
	go func() { defer close(lived); s.Run(ctx) }()
	open := sync.OnceFunc(func() { close(db.gate) })
	defer func() { open(); cancel(); <-lived }()
	within, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	if err := s.Wait(within, func(st swarm.Stats) bool { return st.Ready == n+1 }); err != nil {
		t.Fatal(err)
	}
	large := make([]any, n)
	for i := range large {
		large[i] = s.ID(i)
	}
	job, err := m.Publish(within, master.Job{Tgt: large, TgtType: "list", Fun: "swarm.text", Args: []any{size}})
	if err != nil {
		t.Fatal(err)
	}
	await := func(what string, c <-chan struct{}, n int) {
		t.Helper()
		for i := range n {
			select {
			case <-c:
			case <-within.Done():
				t.Fatalf("%d of %d returns %s", i, n, what)
			}
		}
	}
	await("are received", received, n)
	await("are opened", db.came, most)
	// Without the limit, the store gets the others while these jobs run.
	small := s.ID(n)
	for range 50 {
		res, err := m.Run(within, master.Job{Tgt: small, Fun: "test.ping"})
		if err != nil || res[small].Return != true {
			t.Fatal(res, err)
		}
	}
	if now := db.now.Load(); now != most {
		t.Errorf("%d large returns are open, want %d", now, most)
	}
	open()
	if err := s.Wait(within, func(st swarm.Stats) bool { return st.Returns >= n+50 }); err != nil {
		t.Fatal(err)
	}
	if got, err := db.Returns(t.Context(), job.JID); len(got) != n || err != nil {
		t.Fatal(len(got), err)
	}
	if got := db.most.Load(); got != most {
		t.Errorf("%d large returns were open at the same time, want %d", got, most)
	}
}
