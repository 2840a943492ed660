//go:build unix

package zeromq

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/transporttest"
)

// TestDescriptors: 100 clients connect to a process with 64 descriptors. It must neither use a whole processor nor
// stop serving.
func TestDescriptors(t *testing.T) {
	if os.Getenv("BRINE_TEST_SERVER") != "" {
		descriptorServer(t)
		return
	}
	c := exec.Command(os.Args[0], "-test.run=^TestDescriptors$", "-test.v")
	c.Env = append(os.Environ(), "BRINE_TEST_SERVER=1")
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
	lines := bufio.NewScanner(out)
	next := func(prefix string) string {
		t.Helper()
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), prefix); ok {
				return rest
			}
		}
		t.Fatalf("server ended before it said %q", prefix)
		return ""
	}
	cpu := func() int {
		t.Helper()
		fmt.Fprintln(in)
		n, err := strconv.Atoi(next("cpu ms: "))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	addr := next("listening on ")
	r := impl.NewRequester(t, nil, func(o *transport.ClientOptions) { o.RequestAddr = addr })
	transporttest.MustRequest(t, r, "before")
	var conns []net.Conn
	for range 100 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write(handshakeBytes("REQ")); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	time.Sleep(200 * time.Millisecond) // the handshakes of the clients that were accepted
	before := cpu()
	time.Sleep(2 * time.Second) // measured with all places taken
	if used := cpu() - before; used > 100 {
		t.Errorf("server used %d ms of processor time in 2 s without descriptors, want at most 100", used)
	}
	transporttest.MustRequest(t, r, "meanwhile")
	for _, conn := range conns {
		conn.Close()
	}
	fresh := impl.NewRequester(t, nil, func(o *transport.ClientOptions) { o.RequestAddr = addr })
	transporttest.MustRequest(t, fresh, "after")
	in.Close()
	for lines.Scan() {
		t.Log(lines.Text())
	}
	if err := c.Wait(); err != nil {
		t.Fatalf("server: %v", err)
	}
}

func descriptorServer(t *testing.T) {
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 64, Max: 64}); err != nil {
		t.Fatal(err)
	}
	s := impl.StartServer(t, nil)
	fmt.Printf("listening on %s\n", s.RequestAddr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("cpu ms: %d\n", (u.Utime.Nano()+u.Stime.Nano())/1e6)
	}
}
