package ipc_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/events/ipc"
)

func serve(t *testing.T) (*events.Bus, string, *ipc.Server) {
	t.Helper()
	// The path of a unix socket is short; TempDir's may not be.
	dir, err := os.MkdirTemp("", "ipc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	bus := events.New(nil)
	s, err := ipc.Listen(bus, ipc.Options{Sockets: ipc.Master(dir)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return bus, dir, s
}

func dial(t *testing.T, s *ipc.Server, dir string) *ipc.Client {
	t.Helper()
	c, err := ipc.Dial(t.Context(), ipc.Master(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s.Admit()
	return c
}

func next(t *testing.T, c *ipc.Client) events.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := c.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEventsGoBothWays(t *testing.T) {
	bus, dir, s := serve(t)
	c := dial(t, s, dir)
	bus.Publish("salt/auth", map[string]any{"id": "m1", "raw": []byte{0xff, 0x00}})
	e := next(t, c)
	if e.Tag != "salt/auth" || e.Data["id"] != "m1" || string(e.Data["raw"].([]byte)) != "\xff\x00" {
		t.Fatalf("%+v", e)
	}
	if err := ipc.Fire(t.Context(), ipc.Master(dir), "salt/key", map[string]any{"act": "accept"}); err != nil {
		t.Fatal(err)
	}
	if e := next(t, c); e.Tag != "salt/key" || e.Data["act"] != "accept" || e.Data["_stamp"] == nil {
		t.Fatalf("%+v", e)
	}
}

// TestListenerGetsWhatItFiresAtOnce: programs connect, fire a request and wait for its answer, without a pause
// between.
func TestListenerGetsWhatItFiresAtOnce(t *testing.T) {
	_, dir, _ := serve(t)
	for range 300 {
		c, err := ipc.Dial(t.Context(), ipc.Master(dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := ipc.Fire(t.Context(), ipc.Master(dir), "request", nil); err != nil {
			t.Fatal(err)
		}
		if e := next(t, c); e.Tag != "request" {
			t.Fatalf("%+v", e)
		}
		c.Close()
	}
}

func TestModes(t *testing.T) {
	_, dir, s := serve(t)
	for name, want := range map[string]os.FileMode{ipc.PubName: 0o660, ipc.PullName: 0o600, ipc.MarkerName: 0o600, ipc.WorkersName: 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	list, _ := os.ReadDir(dir)
	if len(list) != 0 {
		t.Fatalf("left behind: %v", list)
	}
}

func TestSecondMasterIsRefused(t *testing.T) {
	_, dir, _ := serve(t)
	if s, err := ipc.Listen(events.New(nil), ipc.Options{Sockets: ipc.Master(dir)}); err == nil {
		s.Close()
		t.Fatal("two masters share a socket")
	}
}

func TestDeadSocketIsReplaced(t *testing.T) {
	dir, err := os.MkdirTemp("", "ipc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, ipc.PubName), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	s, err := ipc.Listen(events.New(nil), ipc.Options{Sockets: ipc.Master(dir)})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func TestHostileWriterHarmsOnlyItself(t *testing.T) {
	_, dir, s := serve(t)
	c := dial(t, s, dir)
	for _, bytes := range []string{"\xc1", "garbage", "\x81\xa4body\xc4\x03abc", "\xdd\xff\xff\xff\xff", "\x82\xa4head\x80\xa4body\x01"} {
		w, err := net.Dial("unix", filepath.Join(dir, ipc.PullName))
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(bytes))
		w.(*net.UnixConn).CloseWrite()
		w.SetReadDeadline(time.Now().Add(60 * time.Second))
		if _, err := w.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatalf("%q: %v", bytes, err)
		}
		w.Close()
	}
	if err := ipc.Fire(t.Context(), ipc.Master(dir), "fine", nil); err != nil {
		t.Fatal(err)
	}
	if e := next(t, c); e.Tag != "fine" {
		t.Fatalf("%+v", e)
	}
}

func TestClientSeesTheEnd(t *testing.T) {
	bus, dir, s := serve(t)
	c := dial(t, s, dir)
	s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.Next(ctx); err == nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	if bus.Subscribers() != 0 {
		t.Fatal("a subscription is left")
	}
}

// TestBothFramings: writers may put a length before their frames or not; readers get the framing that Options
// promise.
func TestBothFramings(t *testing.T) {
	dir, err := os.MkdirTemp("", "ipc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	bus := events.New(nil)
	s, err := ipc.Listen(bus, ipc.Options{Sockets: ipc.Master(dir), Framing: ipc.Prefixed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c := dial(t, s, dir) // our client reads either
	w, err := net.Dial("unix", filepath.Join(dir, ipc.PullName))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	frame := "\x82\xa4head\x80\xa4body\xc4\x09tag\n\n\x81\xa1a\x01"
	if _, err := w.Write([]byte("\x00\x00\x00" + string(rune(len(frame))) + frame)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("\x00\x00\x00" + string(rune(len(frame))) + frame)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if e := next(t, c); e.Tag != "tag" || e.Data["a"] != int64(1) {
			t.Fatalf("%+v", e)
		}
	}
	raw, err := net.Dial("unix", filepath.Join(dir, ipc.PubName))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	s.Admit()
	bus.Publish("x", map[string]any{"_stamp": ""})
	head := make([]byte, 5)
	raw.SetReadDeadline(time.Now().Add(60 * time.Second))
	if _, err := io.ReadFull(raw, head); err != nil || string(head[:3]) != "\x00\x00\x00" || head[4] != 0x82 {
		t.Fatalf("%q %v", head, err)
	}
}
