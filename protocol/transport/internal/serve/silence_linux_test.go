package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/protocol/transport"
)

// reader is a Session that reads until the end.
type reader struct {
	b *Base
	c net.Conn
	m *Member
}

func (r *reader) Begin() {
	r.m = r.b.Join(r.c.RemoteAddr().String(), r.b.Outbox(Stream{r.c}, r.c.RemoteAddr()), r.c, nil)
	r.b.Roster.Name(r.m, "web1")
}

func (r *reader) Await() error                 { _, err := r.c.Read(make([]byte, 1)); return err }
func (r *reader) Serve() (func() error, error) { return nil, nil }
func (r *reader) End()                         { r.b.Leave(r.m) }

// deaf makes the kernel discard all packets for a connection, so that nothing is acknowledged, or undoes that.
func deaf(t *testing.T, c net.Conn, on bool) {
	t.Helper()
	rc, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	drop := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	if cerr := rc.Control(func(fd uintptr) {
		if on {
			err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop[0]})
		} else {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0)
		}
	}); cerr != nil || err != nil {
		t.Fatal(cerr, err)
	}
}

// TestSilence: a subscriber that does not acknowledge counts as silent, and counts again when it acknowledges on the
// same connection. Bytes that stay unacknowledged for too long are discarded.
func TestSilence(t *testing.T) {
	t.Parallel()
	told := make(chan string, 10)
	var b *Base
	b, err := Listen(transport.ServerOptions{
		PublishAddr: "127.0.0.1:0", RequestAddr: "127.0.0.1:0", Handler: func(context.Context, string, []byte) []byte { return nil },
		KeepAlive:  transport.KeepAlive{Idle: time.Second, Interval: time.Second, Count: 100, UserTimeout: time.Hour},
		Subscriber: func(peer string, up bool) { told <- fmt.Sprintln(peer, up) },
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	b.silence = silence{look: 20 * time.Millisecond, after: 3 * time.Second, bytes: 5 * time.Second}
	b.Accept(func(c net.Conn) (Session, error) { return &reader{b: b, c: c}, nil }, func(net.Conn) (Session, error) { return nil, io.EOF }, 0)
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second}}
	peer, err := dialer.Dial("tcp", b.PublishAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	expect := func(up bool) {
		t.Helper()
		select {
		case got := <-told:
			if want := fmt.Sprintln(peer.LocalAddr(), up); got != want {
				t.Fatalf("told %q, want %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatal("nobody was told that it is", up)
		}
	}
	here := func() string {
		named, nameless := b.Reach("web1")
		return fmt.Sprint(b.Subscribers(), named, nameless, b.Present())
	}
	publish := func(s string) { b.Roster.Each(nil, 0, func(m *Member, _ bool) { m.Box.Put([]byte(s), nil) }) }
	expect(true)
	eventually(t, func() bool { return here() == "1 1 0 [web1]" })

	deaf(t, peer, true)
	expect(false)
	if got := here(); got != "0 0 0 []" || b.Roster.Silent() != 1 {
		t.Error("out of reach:", got, b.Roster.Silent())
	}
	publish("lost")
	deaf(t, peer, false)
	expect(true)
	if got := here(); got != "1 1 0 [web1]" || b.Roster.Silent() != 0 {
		t.Error("back:", got, b.Roster.Silent())
	}
	publish("heard")
	got := make([]byte, 5)
	if _, err := io.ReadFull(peer, got); err != nil || string(got) != "heard" {
		t.Errorf("after it was back: %q, %v", got, err)
	}

	deaf(t, peer, true)
	publish("late")
	expect(false)
	eventually(t, func() bool { return b.Group.Conns() == 0 })
	deaf(t, peer, false)
	if got, err := io.ReadAll(peer); len(got) > 0 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after the end: %q, %v", got, err)
	}
}
