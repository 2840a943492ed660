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
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// crowded is a store in which each SaveReturn blocks until a given number of calls is waiting. most is the largest
// number of calls at the same time.
type crowded struct {
	store.Store
	until     int64
	gate      chan struct{}
	open      sync.Once
	now, most atomic.Int64
}

func (c *crowded) SaveReturn(ctx context.Context, r store.Return) (bool, error) {
	n := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	if n == c.until {
		c.open.Do(func() { close(c.gate) })
	}
	<-c.gate
	return c.Store.SaveReturn(ctx, r)
}

// TestLargeReturnsTakeTurns checks that the master opens only some megabytes of simultaneous returns at a time,
// however slow the store is, and that all returns are stored.
func TestLargeReturnsTakeTurns(t *testing.T) {
	const n, size = 40, 1 << 20
	var network mem.Network
	db := &crowded{Store: store.NewMemory(), until: 15, gate: make(chan struct{})}
	m, err := master.New(master.Options{Keys: master.KeyOptions{AutoAccept: true, Size: 2048},
		Security: master.SecurityOptions{AuthRate: -1}, PKIDir: filepath.Join(t.TempDir(), "pki"),
		Network: master.NetworkOptions{Listen: network.Listen,
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
	s, err := swarm.New(swarm.Options{Masters: []swarm.Addr{{Request: m.RequestAddr().String()}}, Dialer: network.Dialer(), Minions: n, KeepConns: n,
		RequestTime: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	lived := make(chan struct{})
	go func() { defer close(lived); s.Run(ctx) }()
	defer func() { cancel(); <-lived }()
	within, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	if err := s.Wait(within, func(st swarm.Stats) bool { return st.Ready == n }); err != nil {
		t.Fatal(err)
	}
	job, err := m.Publish(within, master.Job{Tgt: "*", Fun: "swarm.text", Args: []any{size}})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-db.gate: // 15 returns are open at the same time
	case <-within.Done():
		t.Fatal("returns do not come")
	}
	if err := s.Wait(within, func(st swarm.Stats) bool { return st.Returns == n }); err != nil {
		t.Fatal(err)
	}
	if got, err := db.Returns(t.Context(), job.JID); len(got) != n || err != nil {
		t.Fatal(len(got), err)
	}
	if most := db.most.Load(); most != 15 {
		t.Fatalf("%d returns were open at the same time", most)
	}
}
