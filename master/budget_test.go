package master_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/tcp"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// The memory budget of a master, in bytes of resident memory: without minions, and for each connected minion.
const (
	budgetBase      = 25 << 20
	budgetPerMinion = 15 << 10
)

const childEnv = "BRINE_TEST_CHILD_MASTER"

// TestMain runs the test binary as a master if a test started it as one.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		childMaster(dir)
		return
	}
	os.Exit(m.Run())
}

// childKindEnv selects the parts of a child master. By default it keeps jobs in memory. "sqlite" keeps them in a
// database, "salt-master" also serves Salt's tools, and "tcp" does both over the TCP transport.
const childKindEnv = "BRINE_TEST_CHILD_KIND"

// further executes the instructions to a child master that only some builds of the tests know. It returns "" for all
// other instructions.
var further = func(*master.Master, []string) string { return "" }

// childMaster runs a master with its files in dir until its standard input ends.
func childMaster(dir string) {
	o := master.Options{Network: master.Loopback(), Keys: master.KeyOptions{AutoAccept: true},
		Security: master.SecurityOptions{AuthRate: -1}, PKIDir: dir + "/pki",
		CacheDir: dir + "/cache"}
	kind := os.Getenv(childKindEnv)
	if kind == "tcp" {
		o.Network.Listen = tcp.Listen
	}
	if kind == "sqlite" || kind == "salt-master" || kind == "tcp" {
		db, err := sqlite.Open(dir + "/jobs.sqlite")
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		defer db.Close()
		o.Store = db
	}
	if kind == "salt-master" || kind == "tcp" {
		o.Local = &master.Local{SockDir: dir + "/run"}
	}
	m, err := master.New(o)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-m.Ready()
		fmt.Println(m.PublishAddr(), m.RequestAddr())
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Println(obey(m, strings.Fields(in.Text())))
		}
		cancel()
	}()
	if err := m.Serve(ctx); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// obey executes one line of a child master's standard input and returns the answer.
func obey(m *master.Master, line []string) string {
	n := 0
	if len(line) > 1 {
		n, _ = strconv.Atoi(line[1])
	}
	switch line[0] {
	case "publish":
		if _, err := m.Publish(context.Background(), master.Job{Fun: "test.echo", Args: []any{strings.Repeat("x", n)}, Tgt: "*"}); err != nil {
			return err.Error()
		}
		return "published"
	case "subscribers":
		for end := time.Now().Add(2 * time.Minute); m.Subscribers() != n; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				return fmt.Sprintf("%d subscribers in place of %d", m.Subscribers(), n)
			}
		}
		return "subscribed"
	}
	if said := further(m, line); said != "" {
		return said
	}
	// This returns unused memory at once. The runtime does so by itself within two minutes of quiet.
	debug.FreeOSMemory()
	debug.FreeOSMemory()
	return "settled"
}

// A child is a master in its own process.
type child struct {
	pid      int
	pub, req string
	in       io.Writer
	out      *bufio.Reader
}

func startChild(t testing.TB) *child { return startChildWith(t, "") }

func startChildWith(t testing.TB, kind string) *child {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("reads memory from /proc")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+t.TempDir(), childKindEnv+"="+kind)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error("master:", err)
		}
	})
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	addrs := strings.Fields(line)
	if err != nil || len(addrs) != 2 {
		t.Fatalf("%q %v", line, err)
	}
	return &child{cmd.Process.Pid, addrs[0], addrs[1], in, lines}
}

// rss returns the resident memory of the process in bytes, after it has returned unused memory.
func (c *child) rss(t testing.TB) int {
	t.Helper()
	if _, err := io.WriteString(c.in, "settle\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			n, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// connect signs in n minions and keeps both connections of each open.
func (c *child) connect(t testing.TB, n int) {
	t.Helper()
	var wg sync.WaitGroup
	ids := make(chan int)
	for range 4 {
		wg.Go(func() {
			for i := range ids {
				m := &minion{t: t, id: fmt.Sprintf("minion-%05d.example.org", i), key: testKey(t, 1)}
				var err error
				if m.conn, err = zeromq.New().Requester(transport.ClientOptions{RequestAddr: c.req, PublishAddr: c.pub}); err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(m.close)
				m.signIn()
				m.must(map[string]any{"cmd": "_file_envs"})
				if m.sub, err = zeromq.New().Subscribe(context.Background(), transport.ClientOptions{RequestAddr: c.req, PublishAddr: c.pub, ID: m.id}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range n {
		ids <- i
	}
	close(ids)
	wg.Wait()
}

// TestMemoryBudget compares the memory of an idle master, and of each connected minion, with the budget.
func TestMemoryBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("signs 400 minions in")
	}
	if raceEnabled {
		t.Skip("the race detector multiplies memory")
	}
	const n = 400
	c := startChild(t)
	base := c.rss(t)
	c.connect(t, n)
	full := c.rss(t)
	t.Logf("idle %.1f MB, with %d minions %.1f MB: %d bytes each", float64(base)/(1<<20), n, float64(full)/(1<<20), (full-base)/n)
	if base > budgetBase {
		t.Errorf("an idle master takes %d bytes, more than %d", base, budgetBase)
	}
	if limit := budgetBase + n*budgetPerMinion; full > limit {
		t.Errorf("a master with %d minions takes %d bytes, more than %d", n, full, limit)
	}
}

// BenchmarkConnectedMinion reports memory per connected minion.
func BenchmarkConnectedMinion(b *testing.B) {
	c := startChild(b)
	base := c.rss(b)
	n := max(b.N, 1)
	b.ResetTimer()
	c.connect(b, n)
	b.StopTimer()
	b.ReportMetric(float64(base)/(1<<20), "idle-MB")
	b.ReportMetric(float64(c.rss(b)-base)/float64(n), "B/minion")
}

// BenchmarkPing measures the round trip of a job to one minion.
func BenchmarkPing(b *testing.B) {
	r := serve(b, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Network: master.NetworkOptions{Listen: zeromq.Listen}})
	r.accepted("m", 1).subscribe()
	b.ResetTimer()
	for range b.N {
		if res, err := r.Run(context.Background(), master.Job{Fun: "test.ping", Tgt: "m"}); err != nil || len(res) != 1 {
			b.Fatal(res, err)
		}
	}
}

// BenchmarkSignIn measures one accepted sign-in.
func BenchmarkSignIn(b *testing.B) {
	r := serve(b, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Security: master.SecurityOptions{AuthRate: -1}})
	m := r.accepted("m", 1)
	b.ResetTimer()
	for range b.N {
		m.signIn()
	}
}

// BenchmarkRequest measures one small encrypted request.
func BenchmarkRequest(b *testing.B) {
	r := serve(b, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	m := r.accepted("m", 1)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		m.must(map[string]any{"cmd": "_file_envs"})
	}
}
