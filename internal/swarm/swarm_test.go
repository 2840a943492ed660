package swarm_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/swarm"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/tcp"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// serve starts a master. It returns the master and a function that stops it.
func serve(t *testing.T, o master.Options) (*master.Master, func()) {
	t.Helper()
	o.Network.Interface, o.Network.PublishPort, o.Network.RetPort, o.Security.AuthRate,
		o.Keys.AutoAccept = "127.0.0.1", master.AnyPort, master.AnyPort, -1, true
	m, err := master.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Serve(ctx) }()
	end := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	select {
	case <-m.Ready():
	case err := <-done:
		t.Fatal(err)
	}
	return m, end
}

// run starts a swarm and waits until all its minions are ready.
func run(t *testing.T, o swarm.Options) *swarm.Swarm {
	t.Helper()
	s, err := swarm.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	wait(t, s, func(st swarm.Stats) bool { return st.Ready == int64(o.Minions) })
	return s
}

func wait(t *testing.T, s *swarm.Swarm, holds func(swarm.Stats) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := s.Wait(ctx, holds); err != nil {
		t.Fatal(err)
	}
}

// subscribed waits until a master has n subscribers: minions are ready a moment earlier.
func subscribed(t *testing.T, m *master.Master, n int) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); m.Subscribers() != n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d are subscribed", m.Subscribers(), n)
		}
	}
}

func TestPing(t *testing.T) {
	for _, c := range []struct {
		name   string
		dialer transport.Dialer
		listen transport.Listen
	}{{"zeromq", zeromq.New(), zeromq.Listen}, {"tcp", tcp.New(), tcp.Listen}} {
		t.Run(c.name, func(t *testing.T) {
			const n = 30
			m, _ := serve(t, master.Options{Network: master.NetworkOptions{Listen: c.listen}})
			s := run(t, swarm.Options{Masters: []swarm.Addr{{Request: m.RequestAddr().String()}}, Dialer: c.dialer, Presence: c.name == "tcp",
				Minions: n, Spread: true, Pillar: true, StartEvent: true, Grains: map[string]any{"role": "load"}})
			subscribed(t, m, n)
			for _, j := range []master.Job{{Fun: "test.ping", Tgt: "*"}, {Fun: "swarm.text", Args: []any{1000}, Tgt: "role:load", TgtType: "grain"}} {
				j.Timeout = time.Minute
				if j.TgtType != "" {
					for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
						if ids, err := m.Match(j.TgtType, j.Tgt); err == nil && len(ids) == n {
							break // all pillars have been requested
						}
					}
				}
				res, err := m.Run(t.Context(), j)
				if err != nil || len(res) != n {
					t.Fatal(j.Fun, len(res), err)
				}
				for id, r := range res {
					text, _ := r.Return.(string)
					if r.Status != master.Returned || j.Fun == "test.ping" && r.Return != true || j.Fun == "swarm.text" && len(text) != 1000 {
						t.Errorf("%s: %v", id, r)
					}
				}
			}
			if st := s.Stats(); st.Refused != 0 || st.Repeated != 0 || st.Jobs != 2*n {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestMovesOn: when a master ends, its minions switch to the other one, and a duplicate of a job is dropped.
func TestMovesOn(t *testing.T) {
	const n = 20
	path := filepath.Join(t.TempDir(), "db")
	var masters []*master.Master
	var ends []func()
	var addrs []swarm.Addr
	for range 2 {
		db, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		m, end := serve(t, master.Options{Store: db, Shared: &master.Shared{Key: []byte("0123456789abcdef")}})
		masters, ends, addrs = append(masters, m), append(ends, end), append(addrs, swarm.Addr{Request: m.RequestAddr().String()})
	}
	s := run(t, swarm.Options{Masters: addrs, Dialer: zeromq.New(), Minions: n, KeepConns: n / 2})
	subscribed(t, masters[0], n/2)
	ends[0]()
	subscribed(t, masters[1], n)
	wait(t, s, func(st swarm.Stats) bool { return st.Ready == n })
	jid := string(protocol.NewJID(time.Now()))
	for range 2 {
		if _, err := masters[1].Publish(t.Context(), master.Job{Fun: "test.ping", Tgt: "*", JID: jid}); err == nil {
			wait(t, s, func(st swarm.Stats) bool { return st.Returns == n })
		}
	}
	if st := s.Stats(); st.Jobs != n {
		t.Errorf("%+v", st)
	}
}
