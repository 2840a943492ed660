package zeromq

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/internal/serve"
	"github.com/brine-salt/brine/protocol/transport/transporttest"
)

// greetingBytes returns a greeting with the NULL mechanism.
func greetingBytes(minor byte) []byte {
	g := make([]byte, 64)
	g[0], g[9], g[10], g[11] = 0xff, 0x7f, 3, minor
	copy(g[12:], "NULL")
	return g
}

// ready returns a READY command with raw properties.
func ready(props []byte) []byte {
	return appendFrame(nil, flagCommand, append([]byte("\x05READY"), props...))
}

func property(k, v string) []byte {
	b := append([]byte{byte(len(k))}, k...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
	return append(b, v...)
}

func handshakeBytes(typ string) []byte {
	return append(greetingBytes(1), ready(property("Socket-Type", typ))...)
}

func frameHeader(flags byte, size uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{flags | flagLong}, size)
}

// hostile are byte streams that a peer may send. After each, the connection must end or be ignored, and other peers
// be served.
var hostile = []struct {
	name  string
	bytes []byte
}{
	{"silence", nil},
	{"greeting then silence", greetingBytes(0)},
	{"half a greeting", greetingBytes(0)[:11]},
	{"http", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n" + strings.Repeat("x", 100))},
	{"zmtp 1", append([]byte{1, 0}, bytes.Repeat([]byte{0}, 100)...)},
	{"plain mechanism", bytes.Replace(greetingBytes(0), []byte("NULL"), []byte("PLAI"), 1)},
	{"ready length 2^62", append(greetingBytes(0), frameHeader(flagCommand, 1<<62)...)},
	{"ready length 2^64-1", append(greetingBytes(0), frameHeader(flagCommand, 1<<64-1)...)},
	{"ready length 8 GiB", append(greetingBytes(0), frameHeader(flagCommand, 8<<30)...)},
	{"ready of 9 KiB", append(greetingBytes(0), ready(bytes.Repeat([]byte("\x01a\x00\x00\x00\x00"), 1500))...)},
	{"empty command", append(greetingBytes(0), flagCommand, 0)},
	{"other command", append(greetingBytes(0), appendFrame(nil, flagCommand, []byte("\x05HELLO"))...)},
	{"command name too long", append(greetingBytes(0), appendFrame(nil, flagCommand, []byte("\xffREADY"))...)},
	{"message instead of ready", append(greetingBytes(0), appendFrame(nil, 0, []byte("hello"))...)},
	{"ready: short property", append(greetingBytes(0), ready([]byte("\x0bSock"))...)},
	{"ready: no value", append(greetingBytes(0), ready([]byte("\x0bSocket-Type"))...)},
	{"ready: value too long", append(greetingBytes(0), ready([]byte("\x0bSocket-Type\x7f\xff\xff\xffREQ"))...)},
	{"ready: value 4 GiB", append(greetingBytes(0), ready([]byte("\x0bSocket-Type\xff\xff\xff\xffREQ"))...)},
	{"ready: empty name", append(greetingBytes(0), ready([]byte("\x00\x00\x00\x00\x00"))...)},
	{"ready: one byte", append(greetingBytes(0), ready([]byte("\x01"))...)},
	{"ready: nothing", append(greetingBytes(0), ready(nil)...)},
	{"socket type empty", handshakeBytes("")},
	{"socket type CLIENT", handshakeBytes("CLIENT")},
	{"socket type RADIO", handshakeBytes("RADIO")},
	{"socket type PUSH", handshakeBytes("PUSH")},
	{"socket type twice", append(greetingBytes(0), ready(append(property("Socket-Type", "REQ"), property("socket-type", "\xff")...))...)},
}

// hostileAfter are byte streams that follow a valid handshake.
var hostileAfter = []struct {
	name  string
	bytes []byte
}{
	{"reserved flags", []byte{0xf8, 3, 1, 2, 3}},
	{"length 2^62", frameHeader(0, 1<<62)},
	{"length 2^63", frameHeader(0, 1<<63)},
	{"length 8 GiB", frameHeader(flagMore, 8<<30)},
	{"200 frames of 1 MiB-1", bytes.Repeat(append(frameHeader(flagMore, 1<<20-1), make([]byte, 1<<20-1)...), 200)},
	{"a million empty frames", bytes.Repeat([]byte{flagMore, 0}, 1_000_000)},
	{"command inside of a message", append(appendFrame(nil, flagMore, nil), appendFrame(nil, flagCommand, []byte("\x04PING\x00\x00"))...)},
	{"command with more", appendFrame(nil, flagCommand|flagMore, []byte("\x04PING\x00\x00"))},
	{"command of 5 KiB", appendFrame(nil, flagCommand, append([]byte("\x04PING\x00\x00"), make([]byte, 5<<10)...))},
	{"empty command", []byte{flagCommand, 0}},
	{"empty command name", []byte{flagCommand, 1, 0}},
	{"unknown command", appendFrame(nil, flagCommand, []byte("\x05HELLOx"))},
	{"ping flood", bytes.Repeat(appendFrame(nil, flagCommand, []byte("\x04PING\x00\x00ctx")), 100_000)},
	{"no delimiter", appendFrame(nil, 0, []byte("hello"))},
	{"only a delimiter", appendFrame(nil, 0, nil)},
	{"two delimiters", append(append(appendFrame(nil, flagMore, nil), appendFrame(nil, flagMore, nil)...), appendFrame(nil, 0, nil)...)},
	{"two bodies", append(append(appendFrame(nil, flagMore, nil), appendFrame(nil, flagMore, []byte("a"))...), appendFrame(nil, 0, []byte("b"))...)},
	{"half a message", append(appendFrame(nil, flagMore, nil), frameHeader(0, 1000)...)},
	{"long topic", appendFrame(nil, 0, append([]byte{1}, make([]byte, 1000)...))},
	{"topics without end", manyTopics()},
	{"cancel what was not asked", appendFrame(nil, 0, []byte("\x00topic"))},
}

func manyTopics() []byte {
	var b []byte
	for i := range 10_000 {
		b = appendFrame(b, 0, fmt.Appendf(nil, "\x01topic %d", i))
	}
	return b
}

func tcpDial(t testing.TB, addr net.Addr) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// attacked is a server with a well-behaved subscriber and requester, and functions that check that they are served.
type attacked struct {
	transport.Server
	sub transport.Subscriber
	req transport.Requester
	n   int
}

func startAttacked(t *testing.T, mod func(*transport.ServerOptions)) *attacked {
	t.Helper()
	transporttest.NoLeaks(t)
	a := &attacked{Server: impl.StartServer(t, mod)}
	a.sub, a.req = impl.NewSubscriber(t, a, nil), impl.NewRequester(t, a, nil)
	transporttest.Eventually(t, "subscribed", func() bool { return a.Subscribers() >= 1 && a.sub.State().Connected })
	return a
}

// served checks that the existing clients and a new one are served.
func (a *attacked) served(t *testing.T) {
	t.Helper()
	a.connected(t)
	fresh := impl.NewRequester(t, a, nil)
	transporttest.MustRequest(t, fresh, "new here")
	fresh.Close()
}

// servedInFlood is like served while thousands of connections per second come from the new client's address. Its
// handshake may be closed as the oldest of too many. Like a minion, the client retries.
func (a *attacked) servedInFlood(t *testing.T) {
	t.Helper()
	a.connected(t)
	transporttest.Eventually(t, "a newcomer is served", func() bool {
		fresh := impl.NewRequester(t, a, nil)
		defer fresh.Close()
		ctx, cancel := context.WithTimeout(t.Context(), transporttest.Patience)
		defer cancel()
		_, err := fresh.Request(ctx, transporttest.Pack("new here"))
		return err == nil
	})
}

// connected checks that the clients from before the attack are served on their existing connections.
func (a *attacked) connected(t *testing.T) {
	t.Helper()
	a.n++
	transporttest.MustRequest(t, a.req, "still there")
	transporttest.MustPublish(t, a, fmt.Sprint(a.n), nil)
	if got := transporttest.Unpack(transporttest.Receive(t, a.sub)); got != fmt.Sprint(a.n) {
		t.Fatalf("got %q, want %d", got, a.n)
	}
	if st := a.sub.State(); st.Reconnects != 0 {
		t.Fatalf("good subscriber lost its connection: %+v", st)
	}
}

func TestHostileHandshakes(t *testing.T) {
	a := startAttacked(t, nil)
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			for _, addr := range []net.Addr{a.PublishAddr(), a.RequestAddr()} {
				c := tcpDial(t, addr)
				if _, err := c.Write(h.bytes); err != nil {
					t.Logf("cut off while writing: %v", err)
				}
			}
			a.served(t)
		})
	}
}

func TestHostileMessages(t *testing.T) {
	before := heap()
	a := startAttacked(t, func(o *transport.ServerOptions) {
		o.MaxMessage, o.MaxUnauthenticated = 4<<20, 4<<20
		o.WriteTimeout = 2 * time.Second
	})
	for _, h := range hostileAfter {
		t.Run(h.name, func(t *testing.T) {
			for typ, addr := range map[string]net.Addr{"SUB": a.PublishAddr(), "REQ": a.RequestAddr()} {
				c := tcpDial(t, addr)
				_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // the server may not read it
				if _, err := c.Write(append(handshakeBytes(typ), h.bytes...)); err != nil {
					t.Logf("cut off while writing: %v", err)
				}
			}
			a.served(t)
		})
	}
	if after := heap(); after > before+64<<20 {
		t.Errorf("heap grew from %d to %d MiB", before>>20, after>>20)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestHandshakeDeadline: a silent peer is disconnected.
func TestHandshakeDeadline(t *testing.T) {
	a := startAttacked(t, func(o *transport.ServerOptions) { o.HandshakeTimeout = 30 * time.Millisecond })
	for _, addr := range []net.Addr{a.PublishAddr(), a.RequestAddr()} {
		c := tcpDial(t, addr)
		_ = c.SetReadDeadline(time.Now().Add(transporttest.Patience))
		if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("not closed: %v", err)
		}
	}
	a.served(t)
}

// TestHandshakeCap: silent peers beyond the limit displace the oldest silent peer, not the good clients.
func TestHandshakeCap(t *testing.T) {
	a := startAttacked(t, func(o *transport.ServerOptions) { o.MaxHandshakes, o.HandshakeTimeout = 10, time.Hour })
	var silent []net.Conn
	for range 50 {
		silent = append(silent, tcpDial(t, a.RequestAddr()))
	}
	a.served(t)
	_ = silent[0].SetReadDeadline(time.Now().Add(transporttest.Patience))
	if _, err := io.Copy(io.Discard, silent[0]); isTimeout(err) {
		t.Errorf("oldest silent connection still open: %v", err)
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// TestMutatedHandshakes sends 10,000 handshakes with random errors.
func TestMutatedHandshakes(t *testing.T) {
	a := startAttacked(t, func(o *transport.ServerOptions) { o.HandshakeTimeout = 200 * time.Millisecond })
	n := 10_000
	if testing.Short() {
		n = 1_000
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(w)))
			for k := range n / 4 {
				addr, typ := a.RequestAddr(), "REQ"
				if k%2 == 0 {
					addr, typ = a.PublishAddr(), "SUB"
				}
				c, err := net.Dial("tcp", addr.String())
				if err != nil {
					t.Error(err)
					return
				}
				c.(*net.TCPConn).SetLinger(0) // keep the port table small
				_, _ = c.Write(mutate(rnd, typ))
				c.Close()
			}
		})
	}
	for range 20 {
		a.servedInFlood(t)
	}
	wg.Wait()
	a.served(t)
}

// mutate corrupts a handshake and the message after it.
func mutate(rnd *rand.Rand, typ string) []byte {
	b := append(handshakeBytes(typ), appendFrame(appendFrame(nil, flagMore, nil), 0, []byte("body"))...)
	for range 1 + rnd.IntN(4) {
		switch i := rnd.IntN(len(b)); rnd.IntN(4) {
		case 0:
			b[i] = byte(rnd.Uint32())
		case 1:
			b[i] ^= 1 << rnd.IntN(8)
		case 2:
			b = append(b[:i:i], b[i+1:]...)
		case 3:
			b = b[:i+1]
		}
		if len(b) == 0 {
			return b
		}
	}
	return b
}

// TestSubscriberStopsReading: 400 messages of 64 KiB for a raw peer that subscribes and reads nothing.
func TestSubscriberStopsReading(t *testing.T) {
	a := startAttacked(t, func(o *transport.ServerOptions) { o.PubBytes = 4 << 20 })
	c := tcpDial(t, a.PublishAddr())
	if _, err := c.Write(append(handshakeBytes("SUB"), appendFrame(nil, 0, []byte{1})...)); err != nil {
		t.Fatal(err)
	}
	transporttest.WaitSubscribers(t, a, 2)
	msg := strings.Repeat("m", 64<<10)
	for range 400 {
		transporttest.MustPublish(t, a, msg, nil)
		if got := transporttest.Receive(t, a.sub); len(got) != len(msg)+5 {
			t.Fatalf("got %d bytes", len(got))
		}
	}
	transporttest.Eventually(t, "one dropped", func() bool { return a.Dropped() == 1 && a.Subscribers() == 1 })
	a.served(t)
}

// TestAnswerNotRead: a REQ that never reads its reply of 8 MiB is disconnected after the write deadline.
func TestAnswerNotRead(t *testing.T) {
	a := startAttacked(t, func(o *transport.ServerOptions) {
		o.WriteTimeout = 50 * time.Millisecond
		o.Handler = func(ctx context.Context, peer string, body []byte) []byte {
			if string(body) == "big" {
				return make([]byte, 8<<20)
			}
			return transporttest.Echo(ctx, peer, body)
		}
	})
	c := tcpDial(t, a.RequestAddr())
	if _, err := c.Write(append(handshakeBytes("REQ"), appendFrame(appendFrame(nil, flagMore, nil), 0, []byte("big"))...)); err != nil {
		t.Fatal(err)
	}
	a.served(t)
	g := a.Server.(*server).Group
	transporttest.Eventually(t, "closed", func() bool { return g.Conns() <= 2 })
	_ = c.SetReadDeadline(time.Now().Add(transporttest.Patience))
	n, err := io.Copy(io.Discard, c)
	if n >= 8<<20 || isTimeout(err) {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

// TestUnapprovedMemory: peers that announce large messages and send nothing get no more than the budget, and lose it
// to others after the grace. Approved peers do not need the budget.
func TestUnapprovedMemory(t *testing.T) {
	a := startAttacked(t, func(o *transport.ServerOptions) {
		o.MaxMessage, o.MaxUnauthenticated = 8<<20, 8<<20
		o.Handler = func(ctx context.Context, peer string, body []byte) []byte {
			transport.Approve(ctx)
			return transporttest.Echo(ctx, peer, body)
		}
	})
	a.Server.(*server).Budget.SetGrace(50 * time.Millisecond)
	transporttest.MustRequest(t, a.req, "approved now")
	claim := append(handshakeBytes("REQ"), append(appendFrame(nil, flagMore, nil), frameHeader(0, 8<<20)...)...)
	var claims []net.Conn
	for range 5 {
		c := tcpDial(t, a.RequestAddr())
		if _, err := c.Write(claim); err != nil {
			t.Fatal(err)
		}
		claims = append(claims, c)
	}
	transporttest.MustRequest(t, a.req, strings.Repeat("x", 6<<20))
	// A new client gets its turn. On a slow machine it may lose its place to another announced message that waits;
	// there are only so many of these.
	fresh := impl.NewRequester(t, a, nil)
	transporttest.Eventually(t, "a request of a newcomer", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), transporttest.Patience)
		defer cancel()
		_, err := fresh.Request(ctx, transporttest.Pack(strings.Repeat("x", 6<<20)))
		return err == nil
	})
	for _, c := range claims {
		c.Close()
	}
	a.served(t)
}

// TestHalfMessage: a message that does not continue ends its connection.
func TestHalfMessage(t *testing.T) {
	a := startAttacked(t, func(o *transport.ServerOptions) { o.ReadTimeout = 50 * time.Millisecond })
	c := tcpDial(t, a.RequestAddr())
	if _, err := c.Write(append(handshakeBytes("REQ"), flagMore)); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(transporttest.Patience))
	if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("not closed: %v", err)
	}
	time.Sleep(100 * time.Millisecond)
	a.served(t) // idle connections have no such deadline
}

// TestPing: heartbeats of libzmq peers are answered, with their context, on both channels.
func TestPing(t *testing.T) {
	a := startAttacked(t, nil)
	for typ, addr := range map[string]net.Addr{"SUB": a.PublishAddr(), "REQ": a.RequestAddr()} {
		c := tcpDial(t, addr)
		if _, err := c.Write(append(handshakeBytes(typ), appendFrame(nil, flagCommand, []byte("\x04PING\x00\x0acontext"))...)); err != nil {
			t.Fatal(err)
		}
		want := appendFrame(nil, flagCommand, []byte("\x04PONGcontext"))
		_ = c.SetReadDeadline(time.Now().Add(transporttest.Patience))
		var got []byte
		buf := make([]byte, 1024)
		for !bytes.HasSuffix(got, want) {
			n, err := c.Read(buf)
			if err != nil {
				t.Fatalf("%s: no PONG in %q: %v", typ, got, err)
			}
			got = append(got, buf[:n]...)
		}
	}
}

// TestSubscriptions: both forms of subscribing work, subscriptions are counted, and a subscription is a prefix.
func TestSubscriptions(t *testing.T) {
	message := func(op byte, topic string) []byte { return appendFrame(nil, 0, append([]byte{op}, topic...)) }
	command := func(name, topic string) []byte {
		return appendFrame(nil, flagCommand, append(append([]byte{byte(len(name))}, name...), topic...))
	}
	for _, c := range []struct {
		name  string
		bytes [][]byte
		want  int
	}{
		{"message", [][]byte{message(1, "broad")}, 1},
		{"command", [][]byte{command("SUBSCRIBE", "broad")}, 1},
		{"everything", [][]byte{message(1, "")}, 1},
		{"other", [][]byte{message(1, "broadcaster")}, 0},
		{"cancelled", [][]byte{message(1, "b"), message(0, "b")}, 0},
		{"cancelled by command", [][]byte{command("SUBSCRIBE", "b"), command("CANCEL", "b")}, 0},
		{"twice, cancelled once", [][]byte{message(1, "b"), message(1, "b"), message(0, "b")}, 1},
		{"twice, cancelled twice", [][]byte{message(1, "b"), message(1, "b"), message(0, "b"), message(0, "b")}, 0},
		{"several that match", [][]byte{message(1, ""), message(1, "b"), message(1, "broadcast")}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			transporttest.NoLeaks(t)
			s := impl.StartServer(t, func(o *transport.ServerOptions) { o.Filter = true })
			conn := tcpDial(t, s.PublishAddr())
			b := append(handshakeBytes("SUB"), bytes.Join(c.bytes, nil)...)
			b = append(b, message(1, topic("marker"))...)
			if _, err := conn.Write(b); err != nil {
				t.Fatal(err)
			}
			sv := s.(*server)
			transporttest.Eventually(t, "marker subscribed", func() bool {
				sv.mu.Lock()
				defer sv.mu.Unlock()
				return len(sv.index[topic("marker")]) == 1
			})
			transporttest.MustPublish(t, s, "hello", nil)
			transporttest.MustPublish(t, s, "marker", []string{"marker"})
			end := transporttest.Pack("marker")
			_ = conn.SetReadDeadline(time.Now().Add(transporttest.Patience))
			var got []byte
			buf := make([]byte, 4096)
			for !bytes.HasSuffix(got, end) {
				n, err := conn.Read(buf)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, buf[:n]...)
			}
			if n := bytes.Count(got, appendFrame(appendFrame(nil, flagMore, []byte("broadcast")), 0, transporttest.Pack("hello"))); n != c.want {
				t.Errorf("got %d copies, want %d", n, c.want)
			}
		})
	}
}

// TestSilentSubscriber: no message is queued for a subscriber whose path is dead, with and without topics. It is not
// counted until it is back.
func TestSilentSubscriber(t *testing.T) {
	for _, filter := range []bool{false, true} {
		s := impl.StartServer(t, func(o *transport.ServerOptions) { o.Filter = filter })
		sv := s.(*server)
		sub := impl.NewSubscriber(t, s, nil)
		transporttest.WaitSubscribers(t, s, 1)
		var m *serve.Member
		sv.mu.Lock()
		for m = range sv.members {
		}
		sv.mu.Unlock()
		transporttest.Eventually(t, "all its topics", func() bool { return sv.Roster.Arriving() == 0 })
		sv.Roster.Silence(m, true)
		if _, nameless := s.Reach("web1"); s.Subscribers() != 0 || nameless != 0 {
			t.Errorf("filter %v: %d subscribers, %d without a name while silent", filter, s.Subscribers(), nameless)
		}
		transporttest.MustPublish(t, s, "lost", nil)
		sv.Roster.Silence(m, false)
		if s.Subscribers() != 1 {
			t.Errorf("filter %v: %d subscribers when it is back", filter, s.Subscribers())
		}
		transporttest.MustPublish(t, s, "heard", nil)
		if got := transporttest.Unpack(transporttest.Receive(t, sub)); got != "heard" {
			t.Errorf("filter %v: got %q", filter, got)
		}
	}
}

// TestArrival: a peer whose handshake is over receives everything that is published from then on, even if its
// subscription comes later: once, in order, and nothing from before or for others.
func TestArrival(t *testing.T) {
	subscribe := func(topic string) []byte { return appendFrame(nil, 0, append([]byte{1}, topic...)) }
	for _, filter := range []bool{false, true} {
		s := impl.StartServer(t, func(o *transport.ServerOptions) { o.Filter = filter })
		early := tcpDial(t, s.PublishAddr()) // its arrival makes the server keep messages
		if _, err := early.Write(greetingBytes(0)); err != nil {
			t.Fatal(err)
		}
		transporttest.Eventually(t, "an arrival", func() bool { _, nameless := s.Reach(); return nameless == 1 })
		transporttest.MustPublish(t, s, "before", nil)

		c := tcpDial(t, s.PublishAddr())
		if _, err := c.Write(handshakeBytes("SUB")); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(greetingBytes(0))+2)
		_ = c.SetReadDeadline(time.Now().Add(transporttest.Patience))
		if _, err := io.ReadFull(c, got); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, c, int64(got[len(got)-1])); err != nil { // the rest of READY
			t.Fatal(err)
		}
		var want []byte
		publish := func(msg string, id string, comes bool) {
			name, topics := "broadcast", []string(nil)
			if id != "" {
				name, topics = topic(id), []string{id}
			}
			transporttest.MustPublish(t, s, msg, topics)
			switch {
			case !comes:
			case filter:
				want = append(want, appendFrame(appendFrame(nil, flagMore, []byte(name)), 0, transporttest.Pack(msg))...)
			default:
				want = append(want, appendFrame(nil, 0, transporttest.Pack(msg))...)
			}
		}
		publish("1", "", true)
		publish("of web2", "web2", !filter) // without topics the connection may be web2
		publish("2", "", true)
		first, second := subscribe(""), []byte(nil)
		if filter {
			first, second = subscribe("broadcast"), subscribe(topic("web1"))
		}
		if _, err := c.Write(first); err != nil {
			t.Fatal(err)
		}
		transporttest.WaitSubscribers(t, s, 1)
		publish("3", "", true)
		publish("4", "web1", true)
		if _, err := c.Write(second); err != nil {
			t.Fatal(err)
		}
		sv := s.(*server)
		transporttest.Eventually(t, "its subscriptions", func() bool { return !filter || sv.Roster.Arriving() == 1 })
		publish("5", "", true)
		got = make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("filter %v: got\n%q\nwant\n%q, %v", filter, got, want, err)
		}
		if n := sv.Roster.Arriving(); n != 1 {
			t.Errorf("%d arrive", n)
		}
		early.Close()
		transporttest.Eventually(t, "no arrival", func() bool { return sv.Roster.Arriving() == 0 })
	}
}

// TestHalfMessagesMemory: 2,000 peers that each withhold the last byte of a message of 65,000 bytes use a bounded
// part of the memory, and other peers are served meanwhile.
func TestHalfMessagesMemory(t *testing.T) {
	a := startAttacked(t, nil)
	a.Server.(*server).Budget.SetGrace(50 * time.Millisecond)
	n := 2000
	if raceEnabled {
		n = 700 // still more than fit
	}
	const size = 65000
	before := heap()
	half := append(handshakeBytes("REQ"), appendFrame(nil, flagMore, nil)...)
	half = append(append(half, frameHeader(0, size)...), make([]byte, size-1)...)
	for range n {
		c := tcpDial(t, a.RequestAddr())
		_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // the server may not read it
		_, _ = c.Write(half)
	}
	// The server reads the bytes when its goroutines run, so the heap is judged once it has stopped growing.
	got := int64(0)
	transporttest.Eventually(t, "the half messages are read", func() bool {
		last := got
		got = int64(heap()) - int64(before)
		time.Sleep(100 * time.Millisecond)
		return got-last < 1<<20
	})
	if got > 100<<20 {
		t.Errorf("%d half messages take %d MiB", n, got>>20)
	}
	long := impl.NewRequester(t, a, nil)
	transporttest.MustRequest(t, long, strings.Repeat("x", size))
	a.served(t)
}

// TestAnnouncedMemory: a server that announces a reply of 99 MiB and sends only a part costs a client one megabyte.
func TestAnnouncedMemory(t *testing.T) {
	transporttest.NoLeaks(t)
	ln := transporttest.Listener(t)
	hello := handshakeBytes("ROUTER")
	begun := append(appendFrame(nil, flagMore, nil), frameHeader(0, 99<<20)...)
	begun = append(begun, make([]byte, 64<<10)...)
	measured := make(chan struct{})
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = c.Write(hello)
		_, _ = io.ReadFull(c, make([]byte, greetingSize+20)) // greeting, READY and a request
		_, _ = c.Write(begun)
		<-measured
	}()
	// The client's memory is allocated once it has read everything and waits for more.
	waits := make(chan struct{})
	r := impl.NewRequester(t, nil, func(o *transport.ClientOptions) {
		o.RequestAddr = ln.Addr().String()
		o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &awaited{Conn: c, left: len(hello) + len(begun), waits: waits}, err
		}
	})
	before := heap()
	failed := make(chan error)
	go func() {
		_, err := r.Request(t.Context(), transporttest.Pack("hello"))
		failed <- err
	}()
	select {
	case <-waits:
	case <-time.After(transporttest.Patience):
		t.Fatal("the client does not read")
	}
	if got := int64(heap()) - int64(before); got > 3<<20 {
		t.Errorf("an announced reply takes %d KiB", got>>10)
	}
	close(measured)
	if err := <-failed; err == nil {
		t.Error("the reply was taken")
	}
}

// awaited is a connection that closes waits when its reader wants more than left bytes.
type awaited struct {
	net.Conn
	left  int
	waits chan struct{}
}

func (a *awaited) Read(p []byte) (int, error) {
	if a.left == 0 {
		a.left-- // once
		close(a.waits)
	}
	n, err := a.Conn.Read(p)
	a.left -= n
	return n, err
}

// TestPingFlood: a peer that sends endless PINGs is disconnected. Others do not notice.
func TestPingFlood(t *testing.T) {
	a := startAttacked(t, nil)
	for typ, addr := range map[string]net.Addr{"SUB": a.PublishAddr(), "REQ": a.RequestAddr()} {
		c := tcpDial(t, addr)
		flood := handshakeBytes(typ)
		for range 2 * maxPings {
			flood = append(flood, appendFrame(nil, flagCommand, []byte("\x04PING\x00\x0a"))...)
		}
		if _, err := c.Write(flood); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(transporttest.Patience))
		n, err := io.Copy(io.Discard, c)
		if isTimeout(err) || n > 4096 {
			t.Fatalf("%s: read %d bytes, %v", typ, n, err)
		}
	}
	a.served(t)
}
