package zeromq

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/transporttest"
)

var impl = transporttest.Impl{Listen: Listen, Dialer: New(), Topics: true}

func TestSuite(t *testing.T) { transporttest.Run(t, impl) }

func TestRecovery(t *testing.T) {
	pub, router := handshakeBytes("PUB"), handshakeBytes("ROUTER")
	garbage := map[string][]byte{}
	for _, h := range hostile {
		garbage["handshake: "+h.name] = h.bytes
	}
	for _, h := range hostileAfter {
		garbage["PUB: "+h.name] = append(pub[:len(pub):len(pub)], h.bytes...)
		garbage["ROUTER: "+h.name] = append(router[:len(router):len(router)], h.bytes...)
	}
	transporttest.Recovery(t, impl, garbage)
}

// TestIdleMemory checks the memory budget of the server per idle connection, in bytes.
func TestIdleMemory(t *testing.T) {
	const budget = 10 << 10
	n := 5000
	if testing.Short() || raceEnabled {
		n = 200
	}
	got := transporttest.IdleMemory(t, impl, n, append(handshakeBytes("SUB"), appendFrame(nil, 0, []byte{1})...), handshakeBytes("REQ"))
	t.Logf("%d bytes per idle connection, both ends in this process", got)
	if got > budget && !raceEnabled {
		t.Errorf("%d bytes per idle connection, want at most %d", got, budget)
	}
}

// TestNoGrowth: a thousand connections that come and go leave no memory behind.
func TestNoGrowth(t *testing.T) {
	transporttest.NoLeaks(t)
	s := impl.StartServer(t, nil)
	rounds := func(n int) {
		for range n {
			r, err := New().Requester(transport.ClientOptions{RequestAddr: s.RequestAddr().String()})
			if err != nil {
				t.Fatal(err)
			}
			transporttest.MustRequest(t, r, "x")
			r.Close()
			sub, err := New().Subscribe(t.Context(), transport.ClientOptions{PublishAddr: s.PublishAddr().String()})
			if err != nil {
				t.Fatal(err)
			}
			transporttest.WaitSubscribers(t, s, 1)
			sub.Close()
			transporttest.WaitSubscribers(t, s, 0)
		}
	}
	rounds(50)
	before := heap()
	rounds(1000)
	if after := heap(); after > before+1<<20 {
		t.Errorf("heap grew by %d bytes over 1,000 rounds", after-before)
	}
	sv := s.(*server)
	transporttest.Eventually(t, "no connections", func() bool { return sv.Group.Conns() == 0 })
	sv.mu.Lock()
	defer sv.mu.Unlock()
	if len(sv.index) != 0 || sv.subscribers != 0 {
		t.Errorf("index %v, %d subscribers", sv.index, sv.subscribers)
	}
}

// FuzzFollower feeds streams to the limiting connection in pieces, and compares it with a simple model of the
// protocol.
func FuzzFollower(f *testing.F) {
	for _, h := range hostileAfter {
		if len(h.bytes) < 1<<16 {
			f.Add(h.bytes, 3)
		}
	}
	f.Add(appendFrame(appendFrame(nil, flagMore, nil), 0, make([]byte, 300)), 1)
	f.Add(appendFrame(nil, flagCommand, []byte("\x04PING\x00\x00")), 100)
	f.Fuzz(func(t *testing.T, b []byte, step int) {
		const limit = 4096
		fl := follower{limit: limit, cmdLimit: 64}
		step = max(1, step%64)
		var err error
		consumed := 0
		for rest := b; len(rest) > 0 && err == nil; {
			n := min(step, len(rest))
			err = fl.feed(rest[:n])
			rest = rest[n:]
			consumed += n
		}
		// The model: whole frames, one after another.
		frames, total, more := 0, int64(0), false
		model := func() (ok, idle bool) {
			r := bytes.NewReader(b[:consumed])
			for {
				flags, err := r.ReadByte()
				if err != nil {
					return true, !more
				}
				var size uint64
				if flags&flagLong != 0 {
					if binary.Read(r, binary.BigEndian, &size) != nil {
						return true, false
					}
				} else {
					c, err := r.ReadByte()
					if err != nil {
						return true, false
					}
					size = uint64(c)
				}
				cmd := flags&flagCommand != 0
				if flags > 7 || cmd && (more || flags&flagMore != 0) || cmd && size > 64 || size > limit {
					return false, false
				}
				if !more {
					frames, total = 0, 0
				}
				frames++
				total += int64(size)
				more = flags&flagMore != 0
				if frames > maxFrames || total > limit {
					return false, false
				}
				if int64(r.Len()) < int64(size) {
					return true, false
				}
				_, _ = r.Seek(int64(size), io.SeekCurrent)
			}
		}
		ok, idle := model()
		if ok != (err == nil) {
			t.Fatalf("feed says %v, the model %v", err, ok)
		}
		if ok && idle != fl.idle() {
			t.Fatalf("idle is %v, the model says %v", fl.idle(), idle)
		}
	})
}

// FuzzConn feeds arbitrary bytes after a greeting: no panic, no excessive allocation, and the connection ends.
func FuzzConn(f *testing.F) {
	for _, h := range hostile {
		f.Add(h.bytes)
	}
	for _, h := range hostileAfter {
		if len(h.bytes) < 1<<16 {
			f.Add(append(handshakeBytes("REQ"), h.bytes...))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &recorded{r: bytes.NewReader(b)}
		k, err := newConn(c, "ROUTER", true, 1<<16, time.Second, time.Second, nil)
		if err != nil {
			return
		}
		for {
			frames, _, err := k.recv()
			if err != nil {
				return
			}
			_, _, _ = splitRoute(frames)
		}
	})
}

// recorded is a connection that plays r.
type recorded struct {
	net.Conn
	r *bytes.Reader
}

func (c *recorded) Read(p []byte) (int, error)       { return c.r.Read(p) }
func (c *recorded) Write(p []byte) (int, error)      { return len(p), nil }
func (c *recorded) SetReadDeadline(time.Time) error  { return nil }
func (c *recorded) SetWriteDeadline(time.Time) error { return nil }

func BenchmarkRequest(b *testing.B) {
	s := impl.StartServer(b, nil)
	r := impl.NewRequester(b, s, nil)
	body := transporttest.Pack(strings.Repeat("x", 600))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Request(b.Context(), body); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPublish measures one publish of 1 KiB until all of 100 subscribers have received it.
func BenchmarkPublish(b *testing.B) {
	s := impl.StartServer(b, nil)
	var subs []transport.Subscriber
	for range 100 {
		subs = append(subs, impl.NewSubscriber(b, s, nil))
	}
	transporttest.WaitSubscribers(b, s, 100)
	msg := transporttest.Pack(strings.Repeat("x", 1024))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Publish(msg, nil); err != nil {
			b.Fatal(err)
		}
		for _, sub := range subs {
			<-sub.Messages()
		}
	}
}

func TestCrowd(t *testing.T) {
	transporttest.Crowd(t, impl, append(handshakeBytes("SUB"), appendFrame(nil, 0, []byte{1})...), handshakeBytes("REQ"))
}
