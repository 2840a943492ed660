package transport

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
)

func TestJoinHostPort(t *testing.T) {
	for host, want := range map[string]string{
		"master": "master:4506", "master.example.com": "master.example.com:4506", "192.0.2.1": "192.0.2.1:4506",
		"::1": "[::1]:4506", "[::1]": "[::1]:4506", "2001:db8::5": "[2001:db8::5]:4506", "[2001:db8::5]": "[2001:db8::5]:4506",
		"fe80::1%eth0": "[fe80::1%eth0]:4506", "[fe80::1%eth0]": "[fe80::1%eth0]:4506", "::ffff:192.0.2.1": "[::ffff:192.0.2.1]:4506",
		" master ": "master:4506", "[::]": "[::]:4506",
	} {
		got := JoinHostPort(host, 4506)
		if got != want {
			t.Errorf("%q: got %q, want %q", host, got, want)
		}
		if err := CheckAddr(got); err != nil {
			t.Errorf("%q: %v", got, err)
		}
	}
}

func TestSaltKeepAlive(t *testing.T) {
	for _, c := range []struct {
		name                 string
		enabled              bool
		idle, count, interva int
		want                 KeepAlive
	}{
		{"Salt's defaults", true, 300, -1, -1, KeepAlive{}},
		{"off", false, 300, -1, -1, KeepAlive{Disabled: true, UserTimeout: -1}},
		{"own", true, 30, 3, 10, KeepAlive{Idle: 30 * time.Second, Count: 3, Interval: 10 * time.Second, UserTimeout: -1}},
		{"idle only", true, 60, -1, -1, KeepAlive{Idle: time.Minute, Count: -1, Interval: -1, UserTimeout: -1}},
		{"system's", true, -1, -1, -1, KeepAlive{Idle: -1, Count: -1, Interval: -1, UserTimeout: -1}},
	} {
		if got := SaltKeepAlive(c.enabled, c.idle, c.count, c.interva); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	// A dead path is found within 45 s, idle or not.
	k := KeepAlive{}.withDefaults()
	if d := k.Idle + time.Duration(k.Count)*k.Interval; d > 45*time.Second || k.UserTimeout > 45*time.Second {
		t.Errorf("keepalive takes %v, sent bytes %v", d, k.UserTimeout)
	}
}

// accept returns a channel of the connections that a listener accepts. They are closed at the end of the test.
func accept(t *testing.T, ln net.Listener) <-chan net.Conn {
	c := make(chan net.Conn, 10)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				close(c)
				return
			}
			c <- conn
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		for conn := range c {
			conn.Close()
		}
	})
	return c
}

func TestNetDialSource(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns := accept(t, ln)
	local := fmt.Sprint("127.0.0.1:", freeport.Port(t))
	for range 3 { // again while the last connection is in TIME_WAIT
		c, err := NetDial(KeepAlive{}, local)(t.Context(), "tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		s := <-conns
		if s.RemoteAddr().String() != local {
			t.Errorf("connected from %v, want %v", s.RemoteAddr(), local)
		}
		c.Close() // this side closes first, so TIME_WAIT is here
		_, _ = io.Copy(io.Discard, s)
		s.Close()
	}
	for _, bad := range []string{"name", "name:1", "127.0.0.1:x", "127.0.0.1:70000", "1:2:3"} {
		if c, err := NetDial(KeepAlive{}, bad)(t.Context(), "tcp", ln.Addr().String()); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("source %q: %v, %v", bad, c, err)
		}
	}
	for in, want := range map[string]string{"127.0.0.1": "127.0.0.1:0", ":4506": ":4506", "::1": "[::1]:0", "[::1]:5": "[::1]:5"} {
		if a, err := sourceAddr(in); err != nil || a.String() != want {
			t.Errorf("source %q: %v, %v; want %s", in, a, err, want)
		}
	}
}

func TestIPv6(t *testing.T) {
	ln, err := BindTCP(JoinHostPort("::1", 0), KeepAlive{})
	if err != nil {
		if strings.Contains(err.Error(), "cannot assign") {
			t.Logf("no IPv6 on this host: %v", err)
			return
		}
		t.Fatal(err)
	}
	conns := accept(t, ln)
	c, err := NetDial(KeepAlive{}, "")(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	(<-conns).Close()
}

func TestBindTCP(t *testing.T) {
	if _, err := BindTCP("nonsense", KeepAlive{}); err == nil || !strings.Contains(err.Error(), `"nonsense"`) {
		t.Errorf("error %v", err)
	}
}

func TestApprove(t *testing.T) {
	n := 0
	ctx := WithApprove(context.Background(), func() { n++ })
	Approve(ctx)
	Approve(context.Background())
	if n != 1 {
		t.Errorf("called %d times", n)
	}
}

func TestDefaults(t *testing.T) {
	if _, err := (ServerOptions{}).WithDefaults(); err == nil {
		t.Error("no handler, no error")
	}
	o, err := ServerOptions{Handler: func(context.Context, string, []byte) []byte { return nil }, MaxUnauthenticated: 5, MaxMessage: 10}.WithDefaults()
	if err != nil || o.MaxUnauthenticated != 10 || o.PubHWM != DefaultPubHWM || o.Log == nil {
		t.Errorf("%+v, %v", o, err)
	}
	c := ClientOptions{ReconDefault: time.Minute}.WithDefaults()
	if c.ReconMax != time.Minute || c.Log == nil || c.MaxMessage != DefaultMaxMessage {
		t.Errorf("%+v", c)
	}
}
