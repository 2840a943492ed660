package zeromq

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/transporttest"
)

// relay forwards bytes until it is frozen. Then its connections stay open and acknowledge, but nothing passes, as
// with a proxy or firewall that has forgotten a connection. It returns its address.
func relay(t *testing.T, to string) (addr string, freeze func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	frozen := map[net.Conn]bool{}
	pass := func(from, to net.Conn) {
		buf := make([]byte, 4096)
		for {
			n, err := from.Read(buf)
			if err != nil {
				to.Close()
				return
			}
			mu.Lock()
			stuck := frozen[from]
			mu.Unlock()
			if !stuck {
				to.Write(buf[:n])
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", to)
			if err != nil {
				c.Close()
				continue
			}
			mu.Lock()
			open = append(open, c, s)
			mu.Unlock()
			go pass(c, s)
			go pass(s, c)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			c.Close()
		}
	})
	return l.Addr().String(), func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			frozen[c] = true
		}
	}
}

// awaitState waits for a state of a subscriber.
func awaitState(t *testing.T, s transport.Subscriber, fits func(transport.State) bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if fits(s.State()) {
			return
		}
	}
	t.Fatalf("the state stays %+v", s.State())
}

// TestProbe: a path that is dead where TCP cannot notice it is replaced by a new connection.
func TestProbe(t *testing.T) {
	t.Parallel()
	s := impl.StartServer(t, nil)
	addr, freeze := relay(t, s.PublishAddr().String())
	sub := impl.NewSubscriber(t, s, func(o *transport.ClientOptions) {
		o.PublishAddr, o.Probe, o.ReconDefault = addr, 4*time.Second, time.Millisecond
	})
	transporttest.WaitSubscribers(t, s, 1)
	time.Sleep(5500 * time.Millisecond) // one answer
	if st := sub.State(); !st.Connected || st.Reconnects != 0 {
		t.Fatalf("a healthy connection was left: %+v", st)
	}
	freeze()
	awaitState(t, sub, func(st transport.State) bool { return st.Connected && st.Reconnects > 0 })
	transporttest.WaitSubscribers(t, s, 1)
}

// TestProbeOfSilentPeer: a peer that never answered a probe is not dropped for not answering.
func TestProbeOfSilentPeer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write(handshakeBytes("PUB"))
			buf := make([]byte, 4096)
			for {
				if _, err := c.Read(buf); err != nil {
					break
				}
			}
		}
	}()
	sub := impl.NewSubscriber(t, nil, func(o *transport.ClientOptions) {
		o.PublishAddr, o.Probe = l.Addr().String(), 20*time.Millisecond
	})
	awaitState(t, sub, func(st transport.State) bool { return st.Connected })
	time.Sleep(300 * time.Millisecond)
	if st := sub.State(); !st.Connected || st.Reconnects != 0 {
		t.Errorf("state %+v", st)
	}
}
