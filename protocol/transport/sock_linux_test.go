package transport

import (
	"fmt"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func option(t *testing.T, c net.Conn, level, name int) int {
	t.Helper()
	var v int
	if err := controlSocket(c.(*net.TCPConn), func(fd int) (err error) {
		v, err = unix.GetsockoptInt(fd, level, name)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return v
}

// hasResend reports whether the kernel has TCP_RTO_MAX_MS (Linux 6.15).
func hasResend(t *testing.T) bool {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	return major > 6 || major == 6 && minor >= 15
}

// TestSocketOptions reads the options back from the kernel, on both ends.
func TestSocketOptions(t *testing.T) {
	for _, c := range []struct {
		name                       string
		k                          KeepAlive
		on, idle, interval, count  int
		userTimeout                int // ms
		systemIdle, systemInterval bool
	}{
		{name: "default", k: KeepAlive{}, on: 1, idle: 20, interval: 5, count: 4, userTimeout: 40_000},
		{name: "own", k: KeepAlive{Idle: 7 * time.Second, Interval: 3 * time.Second, Count: 2, UserTimeout: 9 * time.Second}, on: 1, idle: 7, interval: 3, count: 2, userTimeout: 9000},
		{name: "off", k: SaltKeepAlive(false, 1, 1, 1), on: 0, idle: 20, interval: 5, count: 4},
		{name: "system's", k: SaltKeepAlive(true, -1, -1, -1), on: 1, systemIdle: true, systemInterval: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ln, err := BindTCP("127.0.0.1:0", c.k)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := ln.(*net.TCPListener); !ok {
				t.Errorf("the kernel does not pass the options on: each connection costs six system calls more (%T)", ln)
			}
			conns := accept(t, ln)
			client, err := NetDial(c.k, "")(t.Context(), "tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			server := <-conns
			defer server.Close()
			for side, conn := range map[string]net.Conn{"client": client, "server": server} {
				if got := option(t, conn, unix.SOL_SOCKET, unix.SO_KEEPALIVE); got != c.on {
					t.Errorf("%s: SO_KEEPALIVE %d, want %d", side, got, c.on)
				}
				if got := option(t, conn, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); got != c.userTimeout {
					t.Errorf("%s: TCP_USER_TIMEOUT %d, want %d", side, got, c.userTimeout)
				}
				want := int(maxResend.Milliseconds())
				if c.userTimeout == 0 {
					want = 120_000 // the kernel's default
				}
				if hasResend(t) {
					if got := option(t, conn, unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS); got != want {
						t.Errorf("%s: TCP_RTO_MAX_MS %d, want %d", side, got, want)
					}
				}
				if got := option(t, conn, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE); !c.systemIdle && got != c.idle || c.systemIdle && got < 60 {
					t.Errorf("%s: TCP_KEEPIDLE %d, want %d", side, got, c.idle)
				}
				if got := option(t, conn, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL); !c.systemInterval && got != c.interval || c.systemInterval && got < 10 {
					t.Errorf("%s: TCP_KEEPINTVL %d, want %d", side, got, c.interval)
				}
				if got := option(t, conn, unix.IPPROTO_TCP, unix.TCP_KEEPCNT); !c.systemInterval && got != c.count {
					t.Errorf("%s: TCP_KEEPCNT %d, want %d", side, got, c.count)
				}
			}
		})
	}
}
