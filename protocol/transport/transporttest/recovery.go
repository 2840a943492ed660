package transporttest

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

// Recovery checks what the client of a stream transport must survive: servers that are unavailable, close, stay
// silent or send garbage, and names that move. garbage holds further byte streams for a false server to send.
func Recovery(t *testing.T, i Impl, garbage map[string][]byte) {
	// Each behaviour handles one connection.
	behaviours := map[string]func(net.Conn){
		"closes at once": func(c net.Conn) {},
		"resets at once": func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) },
		"stays silent":   func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
		"reads nothing":  func(c net.Conn) { _, _ = c.Read(nil); time.Sleep(300 * time.Millisecond) },
		"echoes":         func(c net.Conn) { _, _ = io.Copy(c, c) },
		"answers zeros":  func(c net.Conn) { _, _ = c.Write(make([]byte, 4096)) },
		"answers ones": func(c net.Conn) {
			_, _ = c.Write([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
		},
		"answers a telegram": func(c net.Conn) { _, _ = c.Write([]byte("220 mail.example.com ESMTP\r\n")) },
	}
	// The client's bytes are read, since unread data would turn the close into a reset.
	for name, b := range garbage {
		behaviours[name] = func(c net.Conn) {
			go func() { _, _ = io.Copy(io.Discard, c) }()
			_, _ = c.Write(b)
			time.Sleep(20 * time.Millisecond) // let it be read before the end
		}
	}
	for name, b := range behaviours {
		t.Run(name, func(t *testing.T) { recoverFrom(t, i, b) })
	}
	t.Run("away for many attempts", func(t *testing.T) { awayLong(t, i) })
	t.Run("name moves", func(t *testing.T) { nameMoves(t, i) })
}

// falseServer accepts connections at addr and passes them to behave. stop closes everything and waits for the end.
func falseServer(t *testing.T, addr string, behave func(net.Conn)) (conns *atomic.Int32, stop func()) {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	// stop closes the open connections, since some behaviours never end.
	conns = new(atomic.Int32)
	var mu sync.Mutex
	var open []net.Conn
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				behave(c)
			})
		}
	})
	return conns, func() {
		ln.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	}
}

// recoverFrom points clients at false servers, then replaces these with a good one.
func recoverFrom(t *testing.T, i Impl, behave func(net.Conn)) {
	NoLeaks(t)
	pub, req := freeAddr(t, i)
	pubConns, stopPub := falseServer(t, pub, behave)
	reqConns, stopReq := falseServer(t, req, behave)
	mod := func(o *transport.ClientOptions) {
		o.PublishAddr, o.RequestAddr = pub, req
		// Short, since most behaviours end only by a timeout.
		o.HandshakeTimeout, o.ReadTimeout = 30*time.Millisecond, 30*time.Millisecond
	}
	sub, r := i.NewSubscriber(t, nil, mod), i.NewRequester(t, nil, mod)
	good := make(chan struct{})
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		met := false
		for b := range sub.Messages() { // a false publisher may send messages that look genuine
			if Unpack(b) == "good" && !met {
				met = true
				close(good)
			}
		}
	}()
	defer func() { sub.Close(); <-drained }()
	// Both clients must have connected to the false servers, or nothing was tested.
	Eventually(t, "false publisher met", func() bool { return pubConns.Load() > 0 })
	// Requests fail or time out, but must not hang.
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
		if b, err := r.Request(ctx, Pack("hello")); err == nil {
			// An echoed frame looks like a reply.
			t.Logf("false server answered %q", b)
		}
		cancel()
	}
	if reqConns.Load() == 0 {
		t.Error("false server never met")
	}
	// The good server listens at the same addresses.
	stopPub()
	stopReq()
	s := i.serveAt(t, pub, req)
	WaitSubscribers(t, s, 1)
	Eventually(t, "a good message", func() bool {
		MustPublish(t, s, "good", nil)
		select {
		case <-good:
			return true
		case <-time.After(20 * time.Millisecond):
			return false
		}
	})
	MustRequestAnew(t, r, "good")
}

// awayLong: clients never stop retrying. zmq4's own reconnecting stops after ten attempts, which is one reason why it
// is not used.
func awayLong(t *testing.T, i Impl) {
	NoLeaks(t)
	pub, req := freeAddr(t, i)
	// Each failed attempt is one state.
	var failures atomic.Int32
	sub := i.NewSubscriber(t, nil, func(o *transport.ClientOptions) {
		o.PublishAddr = pub
		o.OnState = func(st transport.State) {
			if !st.Connected {
				failures.Add(1)
			}
		}
	})
	Eventually(t, "60 attempts", func() bool { return failures.Load() > 60 })
	s := i.serveAt(t, pub, req)
	WaitSubscribers(t, s, 1)
	MustPublish(t, s, "back", nil)
	if got := Unpack(Receive(t, sub)); got != "back" {
		t.Errorf("got %q", got)
	}
}

// nameMoves: a name is resolved for every connection, so clients follow a master that moves.
func nameMoves(t *testing.T, i Impl) {
	NoLeaks(t)
	const name = "localhost"
	var where atomic.Pointer[transport.Server]
	// move starts a server at another address, to which the name then resolves.
	move := func() transport.Server {
		s := i.StartServer(t, nil)
		where.Store(&s)
		return s
	}
	s := move()
	mod := func(o *transport.ClientOptions) {
		o.PublishAddr, o.RequestAddr = name+":4505", name+":4506"
		// The dialer replaces the resolver: it must be called with the name, not with an address.
		o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			s := *where.Load()
			var d net.Dialer
			switch addr {
			case o.PublishAddr:
				return d.DialContext(ctx, network, s.PublishAddr().String())
			case o.RequestAddr:
				return d.DialContext(ctx, network, s.RequestAddr().String())
			}
			return nil, fmt.Errorf("dialled %q, which is not the name", addr)
		}
	}
	sub, r := i.NewSubscriber(t, nil, mod), i.NewRequester(t, nil, mod)
	for k := range 3 {
		WaitSubscribers(t, s, 1)
		MustPublish(t, s, fmt.Sprint("from ", k), nil)
		if got := Unpack(Receive(t, sub)); got != fmt.Sprint("from ", k) {
			t.Errorf("got %q", got)
		}
		MustRequestAnew(t, r, "x")
		old := s
		s = move()
		// The old server closes after the new one listens.
		old.Close()
	}
	WaitSubscribers(t, s, 1)
	MustRequestAnew(t, r, "x")
}
