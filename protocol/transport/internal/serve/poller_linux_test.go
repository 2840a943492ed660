package serve

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

// echo is a Session that sends back what it reads, byte by byte.
type echo struct {
	net.Conn
	b          [1]byte
	began, end *atomic.Int32
}

func (e *echo) Begin()       { e.began.Add(1) }
func (e *echo) Await() error { _, err := e.Read(e.b[:]); return err }
func (e *echo) Sleep() bool  { return true }
func (e *echo) End()         { e.end.Add(1) }
func (e *echo) Serve() (func() error, error) {
	return func() error { _, err := e.Write(e.b[:]); return err }, nil
}

// TestPoller: connections wait without a goroutine, and each continues with a message, with the end of its peer, or when
// it is closed here. The end of the poller is no error.
func TestPoller(t *testing.T) {
	const n = 300
	var log bytes.Buffer
	g := group(t, func(o *transport.ServerOptions) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	var began, ended atomic.Int32
	g.Accept(ln, false, func(c net.Conn) (Session, error) { return &echo{Conn: c, began: &began, end: &ended}, nil }, 0)
	peers := make([]net.Conn, n)
	for i := range peers {
		if peers[i], err = net.Dial("tcp", ln.Addr().String()); err != nil {
			t.Fatal(err)
		}
		defer peers[i].Close()
	}
	few := func() bool { return runtime.NumGoroutine() < before+n/4 }
	for round := range 3 {
		for i, c := range peers {
			want := []byte{byte(i), byte(round)} // the second comes while the first is answered, or later
			if _, err := c.Write(want); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(want))
			if _, err := io.ReadFull(c, got); err != nil || string(got) != string(want) {
				t.Fatalf("%q, want %q: %v", got, want, err)
			}
		}
		eventually(t, few)
	}
	waiting := func() int {
		g.poller.mu.Lock()
		defer g.poller.mu.Unlock()
		return len(g.poller.waiting)
	}
	eventually(t, func() bool { return waiting() == n })
	for _, c := range peers[:n/3] {
		c.Close()
	}
	eventually(t, func() bool { return ended.Load() == n/3 && waiting() == n-n/3 && g.Conns() == n-n/3 })
	g.mu.Lock()
	var some []net.Conn
	for c := range g.conns {
		if some = append(some, c); len(some) == n/3 {
			break
		}
	}
	g.mu.Unlock()
	for _, c := range some {
		c.Close()
	}
	eventually(t, func() bool { return ended.Load() == 2*n/3 && waiting() == n/3 && g.Conns() == n/3 })
	g.Close()
	if log.Len() > 0 {
		t.Errorf("the log has %s", log.String())
	}
	if b, e := began.Load(), ended.Load(); b != n || e != n {
		t.Errorf("%d connections began and %d ended, want %d", b, e, n)
	}
	eventually(t, func() bool { return runtime.NumGoroutine() <= before })
}

// TestPollerCloses: a connection that is closed while it begins to wait is never forgotten.
func TestPollerCloses(t *testing.T) {
	g := group(t, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var came, began, ended atomic.Int32
	g.Accept(ln, false, func(c net.Conn) (Session, error) {
		came.Add(1)
		go c.Close()
		return &echo{Conn: c, began: &began, end: &ended}, nil
	}, 0)
	const n = 500
	for range n {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	eventually(t, func() bool { return came.Load() == n && g.Conns() == 0 && began.Load() == ended.Load() })
}

// stuck is a Session whose answers to the byte 1 wait for hold.
type stuck struct {
	echo
	hold    chan struct{}
	running *atomic.Int32
}

func (s *stuck) Serve() (func() error, error) {
	if s.b[0] != 1 {
		return s.echo.Serve()
	}
	return func() error { s.running.Add(1); <-s.hold; return nil }, nil
}

// TestPollerReadsOn: more answers than manyAnswers that wait for something do not keep others from being read, and hold
// back the round trips of another peer only once.
func TestPollerReadsOn(t *testing.T) {
	const n = manyAnswers + 2*pollBatch
	g := group(t, func(*transport.ServerOptions) {})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var began, ended, running atomic.Int32
	hold := make(chan struct{})
	g.Accept(ln, false, func(c net.Conn) (Session, error) {
		return &stuck{echo{Conn: c, began: &began, end: &ended}, hold, &running}, nil
	}, 0)
	t.Cleanup(func() { close(hold) })
	dial := func() net.Conn {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	for range n {
		if _, err := dial().Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() bool { return running.Load() == n })
	const trips = 200
	c, begun := dial(), time.Now()
	for range trips {
		b := []byte{2}
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, b); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begun); took > trips*answersPause/2 {
		t.Errorf("%d round trips took %v, as if most of them had waited", trips, took)
	}
}
