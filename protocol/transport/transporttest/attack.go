package transporttest

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

// Attack sends byte streams to both ports of a server. After each stream it checks that old and new clients are
// served; at the end, that no memory is held for the streams. A stream may also be a valid one.
func Attack(t *testing.T, i Impl, streams map[string][]byte) {
	NoLeaks(t)
	// The heap is compared at the end: what peers sent must not stay in memory.
	before := heapBytes()
	s := i.StartServer(t, func(o *transport.ServerOptions) {
		// Small limits, which a stream reaches quickly.
		o.MaxMessage, o.MaxUnauthenticated = 4<<20, 4<<20
		o.WriteTimeout = 2 * time.Second
		o.Presence = func(string, []byte) (string, bool) { return "", false }
	})
	// Two clients stay connected all the time.
	sub, r := i.NewSubscriber(t, s, nil), i.NewRequester(t, s, nil)
	WaitSubscribers(t, s, 1)
	n := 0
	// served checks both ports with the old clients and one new client.
	served := func(t *testing.T) {
		t.Helper()
		n++
		MustRequest(t, r, "still there")
		MustPublish(t, s, fmt.Sprint(n), nil)
		if got := Unpack(Receive(t, sub)); got != fmt.Sprint(n) {
			t.Fatalf("got %q, want %d", got, n)
		}
		fresh := i.NewRequester(t, s, nil)
		MustRequest(t, fresh, "new here")
		fresh.Close()
		// A reconnect would mean that the attack closed the connection of another peer.
		if st := sub.State(); st.Reconnects != 0 {
			t.Fatalf("good subscriber lost its connection: %+v", st)
		}
	}
	for name, b := range streams {
		t.Run(name, func(t *testing.T) {
			// The same stream goes to both ports, since an attacker may use either.
			for _, addr := range []net.Addr{s.PublishAddr(), s.RequestAddr()} {
				c, err := net.Dial("tcp", addr.String())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // the server may not read it
				if _, err := c.Write(b); err != nil {
					t.Logf("cut off while writing: %v", err)
				}
			}
			served(t)
		})
	}
	// 64 MiB is far above the noise and far below what the streams could claim.
	if after := heapBytes(); after > before+64<<20 {
		t.Errorf("heap grew from %d to %d MiB", before>>20, after>>20)
	}
}

// heapBytes returns the bytes of live objects.
func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Unread checks that a client that sends a request and never reads the large answer is closed after the write
// deadline, while others are served. request is what such a client writes; its body is Pack("big").
func Unread(t *testing.T, i Impl, request []byte) {
	NoLeaks(t)
	log, logged := Logs()
	s := i.StartServer(t, func(o *transport.ServerOptions) {
		o.Log = log
		// Short, since nothing in this test needs longer.
		o.WriteTimeout = 50 * time.Millisecond
		o.Handler = func(ctx context.Context, peer string, body []byte) []byte {
			if Unpack(body) == "big" {
				return Pack(string(make([]byte, 16<<20)))
			}
			return Echo(ctx, peer, body)
		}
	})
	// A raw connection: our client would read.
	c, err := net.Dial("tcp", s.RequestAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(request); err != nil {
		t.Fatal(err)
	}
	// The blocked write must not block other connections.
	MustRequest(t, i.NewRequester(t, s, nil), "others")
	Eventually(t, "write deadline in the log", func() bool { return strings.Contains(logged(), "i/o timeout") })
	// The connection is closed with part of the answer still unsent.
	_ = c.SetReadDeadline(time.Now().Add(Patience))
	if n, err := io.Copy(io.Discard, c); n >= 16<<20 {
		t.Errorf("read %d bytes, %v: the server waited", n, err)
	}
}

// IdleMemory returns how many bytes of this process one idle subscriber and one idle requester cost the server on
// average. Their clients are raw connections that send pub to the publish port and req to the request port. It
// counts heap and stacks.
func IdleMemory(t testing.TB, i Impl, n int, pub, req []byte) (perConn int) {
	t.Helper()
	s := i.StartServer(t, nil)
	conns := make([]net.Conn, 0, n)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	before := inUse()
	// Half of the connections go to each port.
	for k := range n {
		addr, hello := s.PublishAddr(), pub
		if k%2 == 1 {
			addr, hello = s.RequestAddr(), req
		}
		c, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		if _, err := c.Write(hello); err != nil {
			t.Fatal(err)
		}
	}
	WaitSubscribers(t, s, n/2)
	time.Sleep(100 * time.Millisecond) // the last handshakes of the request port
	after := inUse()
	return int(after-before) / n
}

// inUse returns the bytes of heap and stacks. It collects twice, as finalizers keep objects for one more cycle.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// Crowd checks that idle connections from one address do not keep others out. It opens 300 on each port of a server
// with room for 256. A client that has signed in and one from another address must be served, and a subscriber from
// there must receive what is published. pub and req are what the idle connections send.
func Crowd(t *testing.T, i Impl, pub, req []byte) {
	NoLeaks(t)
	const places = 256
	log, logged := Logs()
	var there atomic.Bool // a subscriber from the other address
	s := i.StartServer(t, func(o *transport.ServerOptions) {
		o.MaxConnections, o.Log = places, log
		// Subscribers from the other address are recognised by it.
		o.Subscriber = func(peer string, up bool) {
			if strings.HasPrefix(peer, "127.0.0.2:") {
				there.Store(up)
			}
		}
		// Approve marks the connection's peer as authenticated.
		o.Handler = func(ctx context.Context, peer string, body []byte) []byte {
			transport.Approve(ctx)
			return Echo(ctx, peer, body)
		}
	})
	// This client signs in before the crowd arrives.
	known := i.NewRequester(t, s, nil)
	MustRequest(t, known, "known from now on")
	for n := range 300 {
		for addr, hello := range map[net.Addr][]byte{s.PublishAddr(): pub, s.RequestAddr(): req} {
			c, err := net.Dial("tcp", addr.String())
			if err != nil {
				t.Fatalf("connection %d: %v", n, err)
			}
			defer c.Close()
			_, _ = c.Write(hello) // the server may have closed it already
		}
	}
	Eventually(t, "too many connections", func() bool {
		return strings.Contains(logged(), "Too many connections")
	})
	// On Linux every address of 127/8 works.
	elsewhere := func(o *transport.ClientOptions) { o.RequestSource, o.PublishSource = "127.0.0.2", "127.0.0.2" }
	// The server makes room by closing idle connections, which must be fast.
	before := time.Now()
	MustRequest(t, i.NewRequester(t, s, elsewhere), "from elsewhere")
	if d := time.Since(before); d > 2*time.Second {
		t.Errorf("a client from another address waited %v", d)
	}
	sub := i.NewSubscriber(t, s, elsewhere)
	Eventually(t, "a subscriber from another address", func() bool { return sub.State().Connected && there.Load() })
	MustPublish(t, s, "to all", nil)
	if got := Unpack(Receive(t, sub)); got != "to all" {
		t.Errorf("got %q", got)
	}
	// The client that has signed in keeps its connection.
	MustRequest(t, known, "still there")
}
