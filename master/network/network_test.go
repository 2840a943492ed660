package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/internal/requesttest"
	"github.com/brine-salt/brine/master/tenants"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/transport"
)

// server is a transport without sockets.
type server struct {
	transport.Server
	port   int
	opts   transport.ServerOptions
	before []byte // what a request was answered that came before the master knew of the server
	closed bool
	asked  chan struct{} // closed when that request was answered

	mu      sync.Mutex
	minions []string // guarded by mu; whose connections are known
}

// connect has the connections of some minions in place of those before.
func (s *server) connect(minions ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.minions = minions
}

func (s *server) PublishAddr() net.Addr          { return &net.TCPAddr{Port: s.port} }
func (s *server) RequestAddr() net.Addr          { return &net.TCPAddr{Port: s.port + 1} }
func (s *server) Subscribers() int               { return len(s.Present()) + 1 }
func (s *server) Dropped() int64                 { return 2 }
func (s *server) Shutdown(context.Context) error { return context.DeadlineExceeded }

func (s *server) MinionAt(string) bool { return false }

func (s *server) Present() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.minions
}

func (s *server) Close() error {
	s.closed = true
	return nil
}

// listen implements transport.Listen. A request arrives before it returns.
func (s *server) listen(o transport.ServerOptions) (transport.Server, error) {
	s.opts, s.asked = o, make(chan struct{})
	go func() {
		s.before = o.Handler(context.Background(), "192.0.2.1:9", []byte("early"))
		close(s.asked)
	}()
	return s, nil
}

// house is the rest of a master.
type house struct{ paths []bool }

func (*house) Handle(_ context.Context, peer string, body []byte, publishPort int) []byte {
	return fmt.Appendf(nil, "%s from %s, jobs at %d", body, peer, publishPort)
}
func (h *house) PathChanged(up bool) { h.paths = append(h.paths, up) }
func (*house) Busy() bool            { return false }
func (*house) AllSignIns() int64     { return 0 }

// newNetwork returns a Network that may listen, of some minions with accepted keys.
func newNetwork(t *testing.T, h *house, minions ...string) *Network {
	t.Helper()
	n, log := New(), slog.New(slog.DiscardHandler)
	n.Prepare(Options{Tenants: tenants.New(nil, log), Keys: requesttest.Keys(t, minions...), SignIns: h, Counts: h, Paths: h,
		Key:       requesttest.Key(),
		Algorithm: crypt.PKCS1v15SHA224, Clock: new(protocol.JIDClock), Events: events.New(nil),
		Log: log})
	return n
}

// TestTransports: a request waits until its transport is known, and each transport has its own publish port. Those that
// were open are closed when another one cannot listen.
func TestTransports(t *testing.T) {
	h := new(house)
	n := newNetwork(t, h)
	one, two := &server{port: 4505, minions: []string{"a", "b"}},
		&server{port: 14505, minions: []string{"b"}}
	where := transport.ServerOptions{PublishAddr: ":1", Filter: true}
	if err := n.Listen(h, Transport{one.listen, where}, Transport{two.listen, where}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*server{one, two} {
		<-s.asked
		if want := fmt.Sprintf("early from 192.0.2.1:9, jobs at %d",
			s.port); string(s.before) != want {
			t.Errorf("answer %q, want %q", s.before, want)
		}
		if s.opts.PublishAddr != ":1" || !s.opts.Filter {
			t.Errorf("the options are lost: %+v", s.opts)
		}
	}
	if PortOf(n.PublishAddr()) != 4505 || PortOf(n.RequestAddr()) != 4506 || n.Named() != 2 {
		t.Error(n.PublishAddr(), n.RequestAddr(), n.Named())
	}
	if open, dropped := n.Subscribers(); open != 5 || dropped != 4 {
		t.Error(open, dropped)
	}
	if err := n.Stop(t.Context()); err != nil || !one.closed || !two.closed {
		t.Error("a transport stays open", err)
	}

	n, one = newNetwork(t, h), &server{}
	refused := errors.New("in use")
	err := n.Listen(h, Transport{one.listen, where},
		Transport{func(transport.ServerOptions) (transport.Server, error) { return nil, refused },
			where})
	if !errors.Is(err, refused) {
		t.Error(err)
	}
	if err := n.Stop(t.Context()); err != nil || !one.closed {
		t.Error("the first transport stays open", err)
	}
	if err := newNetwork(t, h).Listen(h, Transport{}); err == nil {
		t.Error("a transport without Listen")
	}
}

// TestPresenceEvents: the event with the minions that connected and disconnected follows soon after a subscription
// begins or ends. Minions whose keys are not accepted do not count.
func TestPresenceEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(house)
		n := newNetwork(t, h, "a", "b")
		s := &server{minions: []string{"a", "stranger"}}
		if err := n.Listen(h, Transport{Listen: s.listen}); err != nil {
			t.Fatal(err)
		}
		<-s.asked
		sub := n.o.Events.Subscribe(events.SubscribeOptions{})
		defer sub.Close()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			n.TellChanges(ctx)
			close(ended)
		}()
		next := func() string {
			e, err := sub.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			delete(e.Data, "_stamp")
			return fmt.Sprint(e.Tag, " ", e.Data)
		}
		began := time.Now()
		s.opts.Subscriber("192.0.2.1:9", true)
		got := []string{next()}
		if took := time.Since(began); took != presencePause {
			t.Errorf("it took %v", took)
		}
		s.connect("b")
		got = append(got, next())
		n.TellPresence()
		got = append(got, next())
		want := []string{"salt/presence/change map[lost:[] new:[a]]",
			"salt/presence/change map[lost:[a] new:[b]]",
			"salt/presence/present map[present:[b]]"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]bool{true}, h.paths); diff != "" {
			t.Error(diff)
		}
		stop()
		<-ended
	})
}

// TestPatience: silent minions that are not connected are awaited for a second, but not one that has just lost its connection.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, new(house), "a", "b")
		n.Sender.Isolate = true
		n.Presence.Saw("a", time.Now())
		const usual = 10 * time.Second
		if got := n.Patience([]any{"a", "b"}, usual, false); got != usual {
			t.Errorf("%v for a minion between two connections, want %v", got, usual)
		}
		if got := n.Patience([]any{"b"}, usual, false); got != absentPatience {
			t.Errorf("%v for an absent minion, want %v", got, absentPatience)
		}
		if got := n.Patience([]any{"b"}, usual, true); got != usual {
			t.Errorf("%v with peer masters, want %v", got, usual)
		}
	})
}
