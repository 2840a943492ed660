package serve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

func group(t *testing.T, mod func(*transport.ServerOptions)) *Group {
	t.Helper()
	o := transport.ServerOptions{Handler: func(context.Context, string, []byte) []byte { return nil }}
	if mod != nil {
		mod(&o)
	}
	o, err := o.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	g := NewGroup(o)
	t.Cleanup(g.Close)
	return g
}

// failing is a listener without free descriptors.
type failing struct {
	calls atomic.Int32
	done  chan struct{}
	once  sync.Once
}

func (f *failing) Accept() (net.Conn, error) {
	select {
	case <-f.done:
		return nil, net.ErrClosed
	default:
		f.calls.Add(1)
		return nil, errors.New("too many open files")
	}
}
func (f *failing) Close() error   { f.once.Do(func() { close(f.done) }); return nil }
func (f *failing) Addr() net.Addr { return &net.TCPAddr{} }

// TestAcceptErrors: pauses grow, and Close does not wait for them.
func TestAcceptErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, nil)
		f := &failing{done: make(chan struct{})}
		g.Accept(f, false, nil, 0)
		time.Sleep(200 * time.Millisecond)
		if n := f.calls.Load(); n != 6 { // after 5, 10, 20, 40 and 80 ms
			t.Errorf("%d attempts in 200 ms", n)
		}
		start := time.Now()
		g.Close()
		if d := time.Since(start); d > 0 {
			t.Errorf("close took %v", d)
		}
		g.Accept(&failing{done: make(chan struct{})}, false, nil, 0) // refused, no goroutine
		if g.Begin() || g.Go(func() {}) || g.Work(nil, nil) {
			t.Error("work begun after close")
		}
	})
}

// TestRoom: when the queue is full a new connection waits for a place. The oldest loses its place after its grace.
func TestRoom(t *testing.T) {
	c, _ := net.Pipe()
	p := &pending{max: 1, freed: make(chan struct{}, 1)}
	if got := p.awaitRoom(t.Context()); got != nil {
		t.Error("put out of an empty line:", got)
	}
	el := p.l.PushBack(shaking{c, time.Now().Add(time.Hour)})
	waited := make(chan net.Conn)
	go func() { waited <- p.awaitRoom(t.Context()) }()
	p.remove(el)
	if got := <-waited; got != nil {
		t.Error("put out of the line before its time:", got)
	}
	p.l.PushBack(shaking{c, time.Now().Add(time.Hour)})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { waited <- p.awaitRoom(ctx) }()
	cancel()
	if got := <-waited; got != nil || p.l.Len() != 1 {
		t.Error("put out of the line at the end:", got)
	}
	p.l.Init()
	p.l.PushBack(shaking{c, time.Now().Add(-time.Hour)})
	if got := p.awaitRoom(t.Context()); got != c || p.l.Len() != 0 {
		t.Error("not put out of the line:", got)
	}
}

// session is a Session of functions; nil ones do nothing.
type session struct {
	begin, await, answer, end func() error
}

func call(f func() error) error {
	if f == nil {
		return nil
	}
	return f()
}

func (s *session) Begin()       { _ = call(s.begin) }
func (s *session) Await() error { return call(s.await) }
func (s *session) Serve() (func() error, error) {
	return s.answer, nil
}
func (s *session) End() { _ = call(s.end) }

// panicking is a Session whose Serve panics.
type panicking struct{ session }

func (*panicking) Serve() (func() error, error) { panic("hostile") }

// TestPanics: a panic ends its own connection, once, and nothing else.
func TestPanics(t *testing.T) {
	g := group(t, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hostile := func() error { panic("hostile") }
	var ends atomic.Int32
	end := func() error { ends.Add(1); return nil }
	next := make(chan func(net.Conn) (Session, error), 1)
	g.Accept(ln, false, func(c net.Conn) (Session, error) { return (<-next)(c) }, 0)
	for i, x := range []struct {
		what string
		s    Session
		ends int32
		said string
	}{
		{what: "handshake"},
		{"begin", &session{begin: hostile, end: end}, 1, ""},
		{"await", &session{await: hostile, end: end}, 1, ""},
		{"serve", &panicking{session{end: end}}, 1, ""},
		{"answer", &session{answer: hostile, end: end}, 1, ""},
		{"end", &session{await: func() error { return io.EOF }, end: func() error { _ = end(); panic("hostile") }}, 1, ""},
		{"none", nil, 1, "hi"},
	} {
		ends.Store(0)
		next <- func(c net.Conn) (Session, error) {
			switch x.what {
			case "handshake":
				panic("hostile")
			case "none":
				return &session{answer: func() error { _, _ = c.Write([]byte("hi")); return io.EOF }, end: end}, nil
			}
			return x.s, nil
		}
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(c)
		c.Close()
		if string(said) != x.said || ends.Load() != x.ends {
			t.Errorf("%d, panic in %s: said %q, ended %d times", i, x.what, said, ends.Load())
		}
	}
	eventually(t, func() bool { return g.Conns() == 0 })
}

// TestSession: messages are served and answered one after another, until an error ends the connection.
func TestSession(t *testing.T) {
	g := group(t, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mine := errors.New("mine")
	var steps []string // each step happens before the next one
	ended := make(chan struct{})
	g.Accept(ln, false, func(net.Conn) (Session, error) {
		n := 0
		step := func(what string) func() error {
			return func() error {
				if steps = append(steps, what); what == "await" {
					n++
				}
				if n == 3 {
					return mine
				}
				return nil
			}
		}
		return &session{step("begin"), step("await"), step("answer"), func() error { steps = append(steps, "end"); close(ended); return nil }}, nil
	}, 0)
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	<-ended
	if got := strings.Join(steps, " "); got != "begin await answer await answer await end" {
		t.Error(got)
	}
	eventually(t, func() bool { return g.Conns() == 0 })
}

// TestAnswersAtOnce: the answer of one connection does not wait for that of another, and Shutdown waits for all of
// them.
func TestAnswersAtOnce(t *testing.T) {
	g := group(t, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const n = 50
	var all sync.WaitGroup
	all.Add(n)
	gate := make(chan struct{})
	var answered atomic.Int32
	g.Accept(ln, false, func(net.Conn) (Session, error) {
		return &session{answer: func() error { all.Done(); <-gate; answered.Add(1); return io.EOF }}, nil
	}, 0)
	for range n {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	all.Wait()
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	over := make(chan error)
	go func() { over <- g.Shutdown(t.Context()) }()
	select {
	case err := <-over:
		t.Error("shutdown did not wait:", err)
	case <-short.Done():
	}
	close(gate)
	if err := <-over; err != nil || answered.Load() != n {
		t.Errorf("%v; %d answered", err, answered.Load())
	}
}

// collect is a Sink that can be blocked.
type collect struct {
	mu     sync.Mutex
	gate   chan struct{} // nil = open
	got    []string
	sends  int
	err    error
	closed bool
}

func (c *collect) Send(_ time.Duration, parts ...[]byte) error {
	if c.gate != nil {
		<-c.gate
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sends++
	for i := 0; i < len(parts); i += 2 {
		c.got = append(c.got, string(parts[i])+string(parts[i+1]))
	}
	return c.err
}

func (c *collect) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return nil
}

func (c *collect) state() (got string, sends int, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.got, ","), c.sends, c.closed
}

func eventually(t *testing.T, f func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never happened")
		}
	}
}

// TestOutboxBatches: waiting messages are sent together, in order.
func TestOutboxBatches(t *testing.T) {
	c := &collect{gate: make(chan struct{})}
	o := NewOutbox(group(t, nil), c, nil)
	o.Put([]byte("a"), []byte("1"))
	eventually(t, func() bool { o.mu.Lock(); defer o.mu.Unlock(); return len(o.queue) == 0 }) // the first message is being written
	o.Put([]byte("b"), nil)
	o.Put([]byte("c"), []byte("3"))
	o.Put([]byte("d"), make([]byte, writeChunk))
	o.Put([]byte("e"), nil)
	close(c.gate)
	eventually(t, func() bool { o.mu.Lock(); defer o.mu.Unlock(); return !o.writing })
	got, sends, closed := c.state()
	if want := "a1,b,c3,d" + string(make([]byte, writeChunk)) + ",e"; got != want || sends != 4 || closed {
		t.Errorf("%d bytes in %d sends, closed %v; want %d in 4", len(got), sends, closed, len(want))
	}
	if o.msgs != 0 || o.bytes != 0 {
		t.Errorf("%d messages and %d bytes left on the books", o.msgs, o.bytes)
	}
}

func TestOutboxLimits(t *testing.T) {
	for _, c := range []struct {
		name string
		hwm  int
		size int64
		put  []int // sizes
		drop bool
	}{
		{"messages", 3, 1000, []int{1, 1, 1}, false},
		{"too many messages", 3, 1000, []int{1, 1, 1, 1}, true},
		{"bytes", 100, 100, []int{50, 50}, false},
		{"too many bytes", 100, 100, []int{50, 51}, true},
		{"one of any size", 100, 100, []int{1000}, false},
		{"one of any size, but no more", 100, 100, []int{1000, 1}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &collect{gate: make(chan struct{})}
			drops := 0
			o := NewOutbox(group(t, func(o *transport.ServerOptions) { o.PubHWM, o.PubBytes = c.hwm, c.size }), s, func() { drops++ })
			for _, n := range c.put {
				o.Put(make([]byte, n), nil)
			}
			o.mu.Lock()
			dead := o.dead
			o.mu.Unlock()
			if dead != c.drop || (drops == 1) != c.drop {
				t.Errorf("dead %v, %d drops; want %v", dead, drops, c.drop)
			}
			if dead {
				o.Put([]byte("late"), nil) // never an error, never a second drop
			}
			close(s.gate)
			if _, _, closed := s.state(); closed != c.drop || drops > 1 {
				t.Errorf("closed %v, %d drops", closed, drops)
			}
		})
	}
}

func TestOutboxError(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int32
	}{"reset": {io.ErrClosedPipe, 0}, "deadline": {&net.OpError{Err: context.DeadlineExceeded}, 1}} {
		s := &collect{err: c.err}
		var drops atomic.Int32
		o := NewOutbox(group(t, nil), s, func() { drops.Add(1) })
		o.Put([]byte("x"), nil)
		eventually(t, func() bool { _, _, closed := s.state(); return closed })
		eventually(t, func() bool { return drops.Load() == c.want })
		o.Put([]byte("y"), nil)
		if got, _, _ := s.state(); got != "x" {
			t.Errorf("%s: sent %q", name, got)
		}
	}
}

func TestWrite(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	x, y := bytes.Repeat([]byte("x"), 3*writeChunk+7), []byte("y")
	done := make(chan error, 1)
	go func() { done <- Write(a, time.Second, nil, y, x, nil, y); a.Close() }()
	got, err := io.ReadAll(b)
	if err != nil || string(got) != "y"+string(x)+"y" {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	a, b2 := net.Pipe()
	defer b2.Close()
	if err := Write(a, 10*time.Millisecond, x); !isTimeout(err) {
		t.Errorf("nobody reads: %v", err)
	}
}

type closer struct{ closed atomic.Bool }

func (c *closer) Close() error { c.closed.Store(true); return nil }

func TestBudget(t *testing.T) {
	const unit = transport.SmallMessage + 1 // of large messages
	b := NewBudget(10 * unit)
	b.SetGrace(time.Hour)
	ctx := t.Context()
	old := &closer{}
	first, err := b.Grow(ctx, nil, old, 6*unit)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	if s, err := b.Grow(short, nil, &closer{}, 5*unit); !errors.Is(err, transport.ErrTooBig) || s != nil {
		t.Errorf("beyond the budget: %v, %v", s, err)
	}
	if old.closed.Load() {
		t.Error("holder closed within its grace")
	}
	// The oldest share may grow beyond what is free, so that no two shares wait for each other.
	second, err := b.Grow(ctx, nil, &closer{}, 4*unit)
	if err != nil {
		t.Fatal(err)
	}
	if first, err = b.Grow(ctx, first, old, 3*unit); err != nil {
		t.Fatal(err)
	}
	b.SetGrace(30 * time.Millisecond)
	// A share that waits beyond the grace of the oldest closes it, and gets its memory once it is returned.
	got := make(chan error)
	var third *Share
	go func() {
		var err error
		third, err = b.Grow(ctx, nil, &closer{}, 5*unit)
		got <- err
	}()
	eventually(t, old.closed.Load)
	first.Release()
	first.Release() // the second call does nothing
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	second.Release()
	third.Release()
	(*Share)(nil).Release()
	if b.large.free != 10*unit || b.large.holders.Len() != 0 {
		t.Errorf("%d free, %d holders", b.large.free, b.large.holders.Len())
	}
}

// TestBudgetPools: small messages have a separate pool, and a message that grows moves to the other pool.
func TestBudgetPools(t *testing.T) {
	b := NewBudget(collectFrom)
	ctx := t.Context()
	full, err := b.Grow(ctx, nil, &closer{}, collectFrom)
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.Grow(ctx, nil, &closer{}, transport.SmallMessage)
	if err != nil {
		t.Fatalf("no room for a small message beside large ones: %v", err)
	}
	if b.small.free != smallBudget-transport.SmallMessage {
		t.Errorf("%d free for small messages", b.small.free)
	}
	short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	if _, err := b.Grow(short, s, &closer{}, 1); !errors.Is(err, transport.ErrTooBig) {
		t.Errorf("grew beyond the large pool: %v", err)
	}
	full.Release() // its memory counts until it is collected
	if s, err = b.Grow(ctx, s, &closer{}, 1); err != nil {
		t.Fatal(err)
	}
	if b.small.free != smallBudget || b.large.free != collectFrom-transport.SmallMessage-1 {
		t.Errorf("%d free for small messages, %d for large ones", b.small.free, b.large.free)
	}
	s.Release()
	if b.large.free != collectFrom || b.large.holders.Len() != 0 {
		t.Errorf("%d free, %d holders", b.large.free, b.large.holders.Len())
	}
}
