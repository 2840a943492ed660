// Package transporttest is the contract of transports as tests: it checks what package transport promises about a
// Handler, a Subscriber and a Publisher.
//
//	Run          every transport
//	Attack       hostile byte streams, for transports with sockets
//	Recovery     servers that are away or misbehave
//	Crowd        many idle connections
//	Unread       clients that do not read
//	IdleMemory   the cost of an idle connection
//
// A test waits for events, never for a fixed time, and leaves no goroutine behind. The other functions are tools for
// the tests of a single transport.
package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/protocol/transport"
)

// Impl is a transport under test.
type Impl struct {
	Listen transport.Listen
	Dialer transport.Dialer
	// Addr is where to listen on any free port; "127.0.0.1:0" when empty.
	Addr string
	// Topics is set if, with Filter on both sides, a message reaches only its addressees. Presence is set if the
	// transport supports presence frames.
	Topics, Presence bool
	// MaxReply is the largest reply that the transport sends; 0 = MaxMessage.
	MaxReply int
	// Server and Client, if set, change the options of every test, for example to add TLS.
	Server func(*transport.ServerOptions)
	Client func(*transport.ClientOptions)
}

// Patience is how long anything in a test may take. It is long, because machines that run tests are busy.
const Patience = 20 * time.Second

// Run runs the suite.
func Run(t *testing.T, i Impl) {
	if i.Addr == "" {
		i.Addr = "127.0.0.1:0"
	}
	for _, c := range []struct {
		name string
		f    func(*testing.T, Impl)
	}{
		{"request sizes", requestSizes},
		{"requests at once", requestsAtOnce},
		{"late answer", lateAnswer},
		{"no reply", noReply},
		{"handler panic", handlerPanic},
		{"request too big", requestTooBig},
		{"reply too big", replyTooBig},
		{"request waits for server", requestWaits},
		{"request gives up", requestGivesUp},
		{"requester close", requesterClose},
		{"approve", approve},
		{"peer leaves", peerLeaves},
		{"publish in order", publishOrder},
		{"publish sizes", publishSizes},
		{"topics", topics},
		{"presence", presence},
		{"unknown subscribers", unknownSubscribers},
		{"names", namedSubscribers},
		{"slow subscriber", slowSubscriber},
		{"publish too big", publishTooBig},
		{"server restart", serverRestart},
		{"server later", serverLater},
		{"reset", resetReconnects},
		{"subscriber context", subscriberContext},
		{"shutdown", shutdown},
		{"shutdown out of time", shutdownOutOfTime},
		{"closed server", closedServer},
		{"bad options", badOptions},
	} {
		t.Run(c.name, func(t *testing.T) {
			NoLeaks(t)
			c.f(t, i)
		})
	}
}

// NoLeaks fails the test if goroutines remain after its other cleanups. Call it first, since cleanups run in reverse
// order.
func NoLeaks(t testing.TB) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		var n int
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if n = runtime.NumGoroutine(); n <= before {
				return
			}
		}
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines before, %d after:\n%s", before, n, buf[:runtime.Stack(buf, true)])
	})
}

// Eventually waits until f returns true, and fails the test after Patience. what names the event.
func Eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); ; time.Sleep(time.Millisecond) {
		if f() {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// Echo returns a Handler that answers "echo:" and the body.
func Echo(_ context.Context, _ string, body []byte) []byte {
	return wrap(append([]byte("echo:"), body...))
}

// wrap returns b as a packed text, since tcp needs whole msgpack values.
func wrap(b []byte) []byte {
	n := len(b)
	return append([]byte{0xdb, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, b...)
}

// Pack returns text as a msgpack value, which stands for an envelope.
func Pack(s string) []byte { return wrap([]byte(s)) }

// Unpack returns the text of Pack's result.
func Unpack(b []byte) string {
	if len(b) < 5 {
		return fmt.Sprintf("not packed: %q", b)
	}
	return string(b[5:])
}

// StartServer starts a server, which is closed at the end of the test. mod changes its options and may be nil.
func (i Impl) StartServer(t testing.TB, mod func(*transport.ServerOptions)) transport.Server {
	t.Helper()
	if i.Addr == "" {
		i.Addr = "127.0.0.1:0"
	}
	o := transport.ServerOptions{PublishAddr: i.Addr, RequestAddr: i.Addr, Handler: Echo}
	if i.Server != nil {
		i.Server(&o)
	}
	if mod != nil {
		mod(&o)
	}
	s, err := i.Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// options returns a client's options for a server, which may be nil. The backoff is short, as tests wait for it.
func (i Impl) options(s transport.Server, mod func(*transport.ClientOptions)) transport.ClientOptions {
	o := transport.ClientOptions{ReconDefault: time.Millisecond, ReconMax: 20 * time.Millisecond, ReconRandomize: true}
	if s != nil {
		o.PublishAddr, o.RequestAddr = s.PublishAddr().String(), s.RequestAddr().String()
	}
	if i.Client != nil {
		i.Client(&o)
	}
	if mod != nil {
		mod(&o)
	}
	return o
}

// NewRequester creates a requester, which is closed at the end of the test.
func (i Impl) NewRequester(t testing.TB, s transport.Server, mod func(*transport.ClientOptions)) transport.Requester {
	t.Helper()
	r, err := i.Dialer.Requester(i.options(s, mod))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// NewSubscriber creates a subscriber, which is closed at the end of the test.
func (i Impl) NewSubscriber(t testing.TB, s transport.Server, mod func(*transport.ClientOptions)) transport.Subscriber {
	t.Helper()
	sub, err := i.Dialer.Subscribe(t.Context(), i.options(s, mod))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sub.Close() })
	return sub
}

// Receive returns the next message, or fails the test with the subscriber's state.
func Receive(t testing.TB, s transport.Subscriber) []byte {
	t.Helper()
	select {
	case b, ok := <-s.Messages():
		if !ok {
			t.Fatal("subscriber closed")
		}
		return b
	case <-time.After(Patience):
		t.Fatalf("no message; state %+v", s.State())
	}
	return nil
}

// MustRequest sends a request and checks that the answer is Echo's.
func MustRequest(t testing.TB, r transport.Requester, body string) {
	t.Helper()
	mustRequest(t, r, body, false)
}

// MustRequestAnew is like MustRequest for a server that replaced another at the same address. The request may be sent
// before the end of the old connection is noticed; it then fails, as Requester documents, and is repeated.
func MustRequestAnew(t testing.TB, r transport.Requester, body string) {
	t.Helper()
	mustRequest(t, r, body, true)
}

func mustRequest(t testing.TB, r transport.Requester, body string, again bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	b, err := r.Request(ctx, Pack(body))
	for again && errors.Is(err, transport.ErrNoReply) {
		b, err = r.Request(ctx, Pack(body))
	}
	if err != nil {
		t.Fatal(err)
	}
	if want := append([]byte("echo:"), Pack(body)...); !bytes.Equal(b[5:], want) {
		t.Fatalf("reply of %d bytes %.40q, want %d bytes %.40q", len(b), b, len(want)+5, want)
	}
}

// WaitSubscribers waits until s has n subscribers.
func WaitSubscribers(t testing.TB, s transport.Server, n int) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%d subscribers", n), func() bool { return s.Subscribers() == n })
}

// MustPublish publishes a message to topics, nil for all.
func MustPublish(t testing.TB, s transport.Server, msg string, topics []string) {
	t.Helper()
	if err := s.Publish(Pack(msg), topics); err != nil {
		t.Fatal(err)
	}
}

// PublishAgain publishes until a subscriber that has reconnected receives the message. The server may still have its
// former connection and send there.
func PublishAgain(t testing.TB, s transport.Server, sub transport.Subscriber, msg string) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%q received", msg), func() bool {
		MustPublish(t, s, msg, nil)
		select {
		case b := <-sub.Messages():
			if got := Unpack(b); got != msg {
				t.Fatalf("got %.20q", got)
			}
			return true
		case <-time.After(20 * time.Millisecond):
			return false
		}
	})
}

// Logs returns a logger and a function that returns what was logged.
func Logs() (*slog.Logger, func() string) {
	b := &lockedBuffer{}
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})), b.String
}

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// requestSizes: requests and replies of all sizes pass, including sizes around the limits of the length fields.
func requestSizes(t *testing.T, i Impl) {
	s := i.StartServer(t, nil)
	r := i.NewRequester(t, s, nil)
	for _, n := range []int{0, 1, 100, 240, 255, 256, 600, 65_535, 65_536, 1 << 20, 4<<20 - 100, 8 << 20} {
		if i.MaxReply > 0 && n > i.MaxReply-100 {
			continue
		}
		MustRequest(t, r, strings.Repeat("x", n))
	}
}

// requestsAtOnce: replies reach the right requests, with many at the same time on each connection.
func requestsAtOnce(t *testing.T, i Impl) {
	s := i.StartServer(t, nil)
	var wg sync.WaitGroup
	for c := range 4 {
		r := i.NewRequester(t, s, nil)
		for k := range 10 {
			wg.Go(func() {
				for n := range 10 {
					ctx, cancel := context.WithTimeout(t.Context(), Patience)
					body := Pack(fmt.Sprintf("%d/%d/%d", c, k, n))
					b, err := r.Request(ctx, body)
					cancel()
					if err != nil || !bytes.Equal(b[5:], append([]byte("echo:"), body...)) {
						t.Errorf("request %q: %q, %v", body, b, err)
					}
				}
			})
		}
	}
	wg.Wait()
}

// lateAnswer: the reply to a request whose context ended is never taken for the reply to the next one.
func lateAnswer(t *testing.T, i Impl) {
	release := make(chan struct{})
	var once sync.Once
	defer once.Do(func() { close(release) })
	s := i.StartServer(t, func(o *transport.ServerOptions) {
		// The handler replies after its client has stopped waiting.
		o.Handler = func(ctx context.Context, peer string, body []byte) []byte {
			if Unpack(body) == "slow" {
				select {
				case <-release:
				case <-ctx.Done():
				}
			}
			return Echo(ctx, peer, body)
		}
	})
	r := i.NewRequester(t, s, nil)
	MustRequest(t, r, "first")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	b, err := r.Request(ctx, Pack("slow"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("slow request: %q, %v; want deadline exceeded", b, err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("gave up after %v, not 50 ms", d)
	}
	// The late replies arrive now, while further requests are sent.
	once.Do(func() { close(release) })
	for n := range 20 {
		MustRequest(t, r, fmt.Sprint("next", n))
	}
}

// noReply: a handler that returns nil sends no reply. The client gets an error and does not send the request again.
func noReply(t *testing.T, i Impl) {
	var calls atomic.Int32
	s := i.StartServer(t, func(o *transport.ServerOptions) {
		o.Handler = func(ctx context.Context, peer string, body []byte) []byte {
			calls.Add(1)
			if Unpack(body) == "none" {
				return nil
			}
			return Echo(ctx, peer, body)
		}
	})
	r := i.NewRequester(t, s, nil)
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	if b, err := r.Request(ctx, Pack("none")); !errors.Is(err, transport.ErrNoReply) {
		t.Errorf("got %q, %v; want ErrNoReply", b, err)
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("handler called %d times, want 1: a request must not be sent twice", n)
	}
	MustRequest(t, r, "after")
}

// handlerPanic: a panic of a handler is logged and ends only its request.
func handlerPanic(t *testing.T, i Impl) {
	log, logged := Logs()
	s := i.StartServer(t, func(o *transport.ServerOptions) {
		o.Log = log
		o.Handler = func(ctx context.Context, peer string, body []byte) []byte {
			if Unpack(body) == "panic" {
				panic("oh no")
			}
			return Echo(ctx, peer, body)
		}
	})
	r := i.NewRequester(t, s, nil)
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	if b, err := r.Request(ctx, Pack("panic")); !errors.Is(err, transport.ErrNoReply) {
		t.Errorf("got %q, %v; want ErrNoReply", b, err)
	}
	MustRequest(t, r, "after")
	Eventually(t, "panic in the log", func() bool { return strings.Contains(logged(), "oh no") })
}

// requestTooBig: a request beyond the server's limit ends the connection; the client reconnects for the next one.
func requestTooBig(t *testing.T, i Impl) {
	s := i.StartServer(t, func(o *transport.ServerOptions) { o.MaxMessage = 100_000 })
	r := i.NewRequester(t, s, nil)
	MustRequest(t, r, strings.Repeat("x", 90_000))
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	if b, err := r.Request(ctx, Pack(strings.Repeat("x", 1<<20))); !errors.Is(err, transport.ErrNoReply) {
		t.Errorf("got %d bytes, %v; want ErrNoReply", len(b), err)
	}
	MustRequest(t, r, "after")
}

// replyTooBig: a reply beyond the client's limit is ErrTooBig.
func replyTooBig(t *testing.T, i Impl) {
	s := i.StartServer(t, func(o *transport.ServerOptions) {
		o.Handler = func(ctx context.Context, peer string, body []byte) []byte {
			if Unpack(body) == "big" {
				return Pack(strings.Repeat("x", 1<<20))
			}
			return Echo(ctx, peer, body)
		}
	})
	r := i.NewRequester(t, s, func(o *transport.ClientOptions) { o.MaxMessage = 100_000 })
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	if b, err := r.Request(ctx, Pack("big")); !errors.Is(err, transport.ErrTooBig) {
		t.Errorf("got %d bytes, %v; want ErrTooBig", len(b), err)
	}
	MustRequest(t, r, "after")
}

// freeAddr returns addresses that are free to listen on.
func freeAddr(t *testing.T, i Impl) (pub, req string) {
	t.Helper()
	s := i.StartServer(t, nil)
	pub, req = s.PublishAddr().String(), s.RequestAddr().String()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The kernel assigns a closed port to the next process that wants any port, so fixed ports are used.
	for _, addr := range []*string{&pub, &req} {
		if host, _, err := net.SplitHostPort(*addr); err == nil && net.ParseIP(host) != nil {
			*addr = net.JoinHostPort(host, strconv.Itoa(freeport.Port(t)))
		}
	}
	return pub, req
}

// serveAt starts a server at the addresses.
func (i Impl) serveAt(t *testing.T, pub, req string) transport.Server {
	t.Helper()
	return i.StartServer(t, func(o *transport.ServerOptions) { o.PublishAddr, o.RequestAddr = pub, req })
}

// requestWaits: a request waits for a server that starts later.
func requestWaits(t *testing.T, i Impl) {
	pub, req := freeAddr(t, i)
	r := i.NewRequester(t, nil, func(o *transport.ClientOptions) { o.RequestAddr = req })
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		if _, err := r.Request(ctx, Pack("early")); err != nil {
			t.Error(err)
		}
	}()
	time.Sleep(30 * time.Millisecond) // some attempts fail meanwhile
	i.serveAt(t, pub, req)
	<-done
}

// requestGivesUp: a request without a server ends with its context, and the error has the reason and the address.
func requestGivesUp(t *testing.T, i Impl) {
	_, req := freeAddr(t, i)
	r := i.NewRequester(t, nil, func(o *transport.ClientOptions) { o.RequestAddr = req })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := r.Request(ctx, Pack("x"))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "refused") || !strings.Contains(err.Error(), req) {
		t.Errorf("error %v; want the deadline, the reason and the address", err)
	}
}

// requesterClose: Close ends a running request and refuses later ones.
func requesterClose(t *testing.T, i Impl) {
	started := make(chan struct{}, 1)
	s := i.StartServer(t, func(o *transport.ServerOptions) {
		o.Handler = func(ctx context.Context, peer string, body []byte) []byte {
			started <- struct{}{}
			<-ctx.Done()
			return nil
		}
	})
	r := i.NewRequester(t, s, nil)
	errs := make(chan error)
	go func() {
		_, err := r.Request(context.Background(), Pack("x"))
		errs <- err
	}()
	<-started
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := <-errs; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("running request: %v; want ErrClosed", err)
	}
	if _, err := r.Request(t.Context(), Pack("x")); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("later request: %v; want ErrClosed", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// approve: Approve may be called any number of times, and large requests pass before and after it.
func approve(t *testing.T, i Impl) {
	s := i.StartServer(t, func(o *transport.ServerOptions) {
		o.MaxMessage, o.MaxUnauthenticated = 2<<20, 1
		o.Handler = func(ctx context.Context, peer string, body []byte) []byte {
			transport.Approve(ctx)
			transport.Approve(ctx)
			return Echo(ctx, peer, body)
		}
	})
	var wg sync.WaitGroup
	for range 4 {
		r := i.NewRequester(t, s, nil)
		wg.Go(func() {
			for range 4 {
				MustRequest(t, r, strings.Repeat("x", 1<<20))
			}
		})
	}
	wg.Wait()
}

// peerLeaves: a handler can tell that the peer no longer waits for the reply.
func peerLeaves(t *testing.T, i Impl) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells of it while a request is answered")
	}
	began, left := make(chan bool, 1), make(chan bool, 1)
	s := i.StartServer(t, func(o *transport.ServerOptions) {
		o.Handler = func(ctx context.Context, peer string, body []byte) []byte {
			if Unpack(body) != "slow" {
				return Echo(ctx, peer, body)
			}
			began <- transport.Left(ctx)
			end := time.Now().Add(Patience)
			for !transport.Left(ctx) && time.Now().Before(end) {
				time.Sleep(time.Millisecond)
			}
			left <- transport.Left(ctx)
			return nil
		}
	})
	r := i.NewRequester(t, s, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = r.Request(ctx, Pack("slow"))
	}()
	if <-began {
		t.Error("the peer has left while it waits")
	}
	cancel()
	<-done
	_ = r.Close() // tcp keeps a connection when a request's context ends
	if !<-left {
		t.Error("the peer has not left")
	}
}

// Listener returns a loopback listener on a free port, which is closed at the end of the test.
func Listener(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}
