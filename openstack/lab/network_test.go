//go:build openstack

package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestNetwork: a guest reaches what the router forwards, with its own address as the source, and reaches nothing
// else.
func TestNetwork(t *testing.T) {
	const inside = "BRINE_LAB_NETWORK"
	if os.Getenv(inside) == "" {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestNetwork$", "-test.v", "-test.timeout=5m")
		cmd.Env = append(os.Environ(), inside+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	l, err := prepare(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	const one, two, virtual = "192.0.2.11", "192.0.2.12", "192.0.2.10"
	n, err := l.StartNetwork(ctx, one, two)
	if err != nil {
		t.Fatal(err)
	}
	greet := func(ln net.Listener, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				from, _, _ := net.SplitHostPort(c.RemoteAddr().String())
				fmt.Fprintf(c, "%s greets %s", ln.Addr(), from)
				c.Close()
			}
		}()
		return ln.Addr().String()
	}
	allowed, refused := greet(net.Listen("tcp", one+":7000")), greet(net.Listen("tcp", one+":7001"))
	greet(net.Listen("tcp", two+":7000"))
	metadata := greet(n.Listen(metadataAddr + ":80"))
	if err := n.Allow(ctx, allowed, metadata, virtual+":7000"); err != nil {
		t.Fatal(err)
	}
	if err := n.Virtual(ctx, virtual, []int{7000}, one, two); err != nil {
		t.Fatal(err)
	}
	boot := func(name string, port *Port, err error) *Guest {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		g, err := l.StartGuestAt(ctx, name, port)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	port, err := n.Port(ctx, "10.0.0.21")
	a := boot("a", port, err)
	port, err = n.PortWithoutRoute(ctx, "10.0.0.22")
	b := boot("b", port, err)

	connect := func(g *Guest, addr string) (string, error) {
		host, port, _ := net.SplitHostPort(addr)
		return g.Run(ctx, "timeout", "20", "bash", "-c", "exec 3<>/dev/tcp/"+host+"/"+port+"; cat <&3")
	}
	for addr, want := range map[string]string{allowed: allowed + " greets 192.0.2.1", metadata: metadata + " greets 10.0.0.21"} {
		if said, err := connect(a, addr); err != nil || said != want {
			t.Errorf("%s says %q %v, want %q", addr, said, err, want)
		}
	}
	var greeted []string
	for range 2 {
		said, err := connect(a, virtual+":7000")
		if err != nil {
			t.Fatal(err)
		}
		host, _, _ := strings.Cut(said, ":")
		greeted = append(greeted, host)
	}
	if slices.Sort(greeted); !slices.Equal(greeted, []string{one, two}) {
		t.Errorf("behind the virtual address were %v, want each host once", greeted)
	}
	if out, err := connect(b, allowed); err == nil || !strings.Contains(out+err.Error(), "unreachable") {
		t.Errorf("a guest without a route connected: %q %v", out, err)
	}
	check := func(what string, list func(context.Context) ([]string, error), want ...string) {
		t.Helper()
		if got, err := list(ctx); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v %v, want %v", what, got, err, want)
		}
	}
	used := []string{metadata, virtual + ":7000", allowed}
	slices.Sort(used)
	check("used", n.Used, used...)
	check("dropped", n.Dropped)
	if err := n.Forget(ctx); err != nil {
		t.Fatal(err)
	}
	if err := n.Forbid(ctx, metadata); err != nil {
		t.Fatal(err)
	}
	// A dropped packet gets no answer; the guest's connection times out.
	for _, addr := range []string{refused, metadata} {
		host, port, _ := net.SplitHostPort(addr)
		if out, err := a.Run(ctx, "timeout", "1", "bash", "-c", "exec 3<>/dev/tcp/"+host+"/"+port); err == nil {
			t.Errorf("a guest connected to %s: %s", addr, out)
		}
	}
	check("used", n.Used)
	check("dropped", n.Dropped, metadataAddr+"/tcp:80", one+"/tcp:7001")
}
