//go:build interop

package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/tcp"
	"github.com/brine-salt/brine/protocol/transport/transporttest"
	"github.com/brine-salt/brine/protocol/transport/ws"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

var impls = map[string]transporttest.Impl{
	"zeromq": {Listen: zeromq.Listen, Dialer: zeromq.New()},
	"tcp":    {Listen: tcp.Listen, Dialer: tcp.New()},
	"ws":     {Listen: ws.Listen, Dialer: ws.New()},
}

// pythons returns the interpreters in BRINE_SALT_PYTHONS, a list like PATH. Each of them can import salt.
func pythons(t *testing.T) []string {
	t.Helper()
	l := filepath.SplitList(os.Getenv("BRINE_SALT_PYTHONS"))
	if len(l) == 0 {
		t.Fatal("BRINE_SALT_PYTHONS names no Python with Salt")
	}
	return l
}

// has reports whether this Salt has a class of a transport: 3006 has no ws, and its tcp server has other classes.
func has(python, name, class string) bool {
	return exec.Command(python, "-c", "from salt.transport."+name+" import "+class).Run() == nil
}

func peer(t *testing.T, python string, args ...string) (io.Writer, func() string) {
	t.Helper()
	c := exec.Command(python, append([]string{"testdata/peer.py"}, args...)...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(2*time.Minute, func() { c.Process.Kill() })
	t.Cleanup(func() {
		timer.Stop()
		c.Process.Kill()
		_ = c.Wait() // killed
		if t.Failed() {
			t.Log(stderr.String())
		}
	})
	s := bufio.NewScanner(out)
	return in, func() string {
		t.Helper()
		if !s.Scan() {
			t.Fatalf("peer ended: %v", s.Err())
		}
		return s.Text()
	}
}

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

// envelope packs {enc: "aes", load: n bytes, version: 3} in the old dialect.
func envelope(load []byte) []byte {
	b := []byte("\x83\xa3enc\xa3aes\xa4load\xdb")
	b = append(b, byte(len(load)>>24), byte(len(load)>>16), byte(len(load)>>8), byte(len(load)))
	return append(append(b, load...), "\xa7version\x03"...)
}

func TestStockClients(t *testing.T) {
	for _, python := range pythons(t) {
		for name, i := range impls {
			if !has(python, name, "RequestServer") && !has(python, name, "TCPReqServer") {
				continue
			}
			t.Run(filepath.Base(filepath.Dir(filepath.Dir(python)))+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := i.StartServer(t, func(o *transport.ServerOptions) {
					o.Handler = func(_ context.Context, _ string, body []byte) []byte { return body }
					o.Presence = func(_ string, load []byte) (string, bool) {
						return "stock", bytes.Contains(load, []byte("stock"))
					}
				})
				_, line := peer(t, python, "client", name, port(s.RequestAddr().String()), port(s.PublishAddr().String()))
				for _, n := range []int{1, 300, 70_000, 3_000_000} {
					if got, want := line(), fmt.Sprint("ok ", n); got != want {
						t.Fatalf("got %q, want %q", got, want)
					}
				}
				transporttest.WaitSubscribers(t, s, 1)
				var to []string
				if name == "tcp" {
					transporttest.Eventually(t, "presence", func() bool { return strings.Join(s.Present(), ",") == "stock" })
					to = []string{"stock"}
				}
				for _, n := range []int{100, 60_000, 2_000_000} {
					if err := s.Publish(envelope(bytes.Repeat([]byte{0xff}, n)), to); err != nil {
						t.Fatal(err)
					}
					if got, want := line(), fmt.Sprint("published ", n); got != want {
						t.Errorf("got %q, want %q", got, want)
					}
				}
				if err := s.Publish(envelope([]byte("end")), nil); err != nil {
					t.Fatal(err)
				}
				if got := line(); got != "end" {
					t.Errorf("got %q", got)
				}
			})
		}
	}
}

func TestStockServers(t *testing.T) {
	for _, python := range pythons(t) {
		for name, i := range impls {
			// The ROUTER of stock Salt needs the whole master; libzmq is tested in package zeromq.
			if name == "zeromq" || !has(python, name, "PublishServer") {
				continue
			}
			t.Run(filepath.Base(filepath.Dir(filepath.Dir(python)))+"/"+name, func(t *testing.T) {
				t.Parallel()
				ports := freeport.Ports(t, 2)
				ret, pub := strconv.Itoa(ports[0]), strconv.Itoa(ports[1])
				in, line := peer(t, python, "server", name, ret, pub)
				for line() != "listening" {
				}
				mod := func(o *transport.ClientOptions) {
					o.RequestAddr, o.PublishAddr = "127.0.0.1:"+ret, "127.0.0.1:"+pub
					if name == "tcp" {
						o.Presence = func() ([]byte, error) { return envelope([]byte("ours")), nil }
					}
				}
				r := i.NewRequester(t, nil, mod)
				for _, n := range []int{1, 300, 70_000, 3_000_000} {
					ctx, cancel := context.WithTimeout(t.Context(), transporttest.Patience)
					load := bytes.Repeat([]byte{0xfe}, n)
					b, err := r.Request(ctx, envelope(load))
					cancel()
					if err != nil || !bytes.HasSuffix(b, load) || len(b) > n+5 {
						t.Fatalf("size %d: %d bytes, %v", n, len(b), err)
					}
				}
				sub := i.NewSubscriber(t, nil, mod)
				transporttest.Eventually(t, "connected", func() bool { return sub.State().Connected })
				if name == "tcp" {
					if got := line(); got != "presence ours" {
						t.Errorf("got %q", got)
					}
				} else {
					time.Sleep(500 * time.Millisecond) // aiohttp registers the subscriber only after the upgrade
				}
				for _, n := range []int{100, 60_000, 2_000_000} {
					fmt.Fprintln(in, n)
					if b := transporttest.Receive(t, sub); len(b) < n || len(b) > n+40 || b[0] != 0x82 {
						t.Errorf("size %d: got %d bytes", n, len(b))
					}
				}
			})
		}
	}
}
