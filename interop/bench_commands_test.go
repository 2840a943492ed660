//go:build bench && linux

package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/swarm"
	"github.com/brine-salt/brine/protocol/transport/tcp"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// Limits of a whole command. goalPing is for test.ping to all minions of the large swarm, the first time and again.
// atBare is the limit as a multiple of the bare job, for whose returns no client waits. beyondStock is how many times
// as many returns per second brine needs as stock's programs.
const (
	goalPing    = 3 * time.Second
	atBare      = 3
	beyondStock = 10
	// keptConns is how many minions keep a second connection. The master has enough descriptors for these, for a
	// subscription of each minion, and for the minions that connect for each return.
	keptConns = 5000
	// goalMemory limits the growth of the master's memory while commands run.
	goalMemory = 60 << 20
)

// wholeCommand is a command as a user types it.
type wholeCommand struct {
	name    string
	program string
	args    []string
	small   bool // only with the small swarm, because stock's master takes minutes
}

var wholeCommands = []wholeCommand{
	{name: "salt '*' test.ping", program: "salt", args: []string{"--out=json", "--out-indent=-1", "*", "test.ping"}},
	{name: "  again, with --summary", program: "salt", args: []string{"--summary", "--out=json", "--out-indent=-1", "*", "test.ping"}},
	{name: "salt --static '*' test.ping", program: "salt", args: []string{"--static", "--out=json", "*", "test.ping"}},
	{name: "  again", program: "salt", args: []string{"--static", "--out=json", "*", "test.ping"}},
	{name: "salt '*' with 5 KB from each", program: "salt", args: []string{"--static", "--out=json", "*", "swarm.text", "5120"}},
	{name: "salt -G role:load test.ping", program: "salt", args: []string{"--static", "--out=json", "-G", "role:load", "test.ping"}},
	{name: "salt -b 10% '*' test.ping", program: "salt", args: []string{"-b", "10%", "--static", "--out=json", "*", "test.ping"}, small: true},
	{name: "salt-run manage.status", program: "salt-run", args: []string{"manage.status", "--out=json"}},
}

// commandCost is the cost of one command.
type commandCost struct {
	took, cpu time.Duration // of the whole command; processor time of the master
	grown     int64         // growth of the master's memory in bytes
}

// TestCommands measures the time that a user waits for whole commands, with a swarm: brine with 9,000 and 1,000
// minions, stock with 1,000. Every minion must appear in the output. BRINE_SWARM sets other sizes ("9000 1000").
func TestCommands(t *testing.T) {
	large, small := 9000, 1000
	if text := os.Getenv("BRINE_SWARM"); text != "" {
		if _, err := fmt.Sscan(text, &large, &small); err != nil {
			t.Fatal(err)
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	for _, over := range []string{"zeromq", "tcp"} {
		t.Run(over, func(t *testing.T) {
			ours := func(n int) (time.Duration, map[string]commandCost) {
				m := &ourMaster{site: newSite(t, over, "auto_accept: True"), t: t, root: t, line: "3007"}
				m.up()
				m.bus.driver.close()
				client := &stockMaster{site: m.site, t: t, root: t, line: "3007", driver: pythonDriver(t, "3007", "calls", m.config())}
				defer m.proc.stop()
				return runCommands(t, over, n, m.site, m.proc, client, ours, n == small)
			}
			bare, a := ours(large)
			_, b := ours(small)
			stockMaster := startStockMaster(t, "3007", over, "auto_accept: True\nzmq_backlog: 4000")
			stockMaster.bus.driver.close()
			_, c := runCommands(t, over, small, stockMaster.site, stockMaster.proc, stockMaster,
				func(program string) string { return stock(t, "3007", program) }, true)
			printCommands(over, large, small, bare, a, b, c)
			for _, w := range wholeCommands[:4] {
				name := strings.TrimSpace(w.name)
				a, b, c := a[w.name], b[w.name], c[w.name]
				if took := a.took; took > goalPing || took > atBare*bare {
					t.Errorf("%s with %d minions took %v; it may take %v, and %d times the bare job (%v)", name, large, took, goalPing, atBare, bare)
				}
				if a.grown > goalMemory {
					t.Errorf("%s with %d minions: the master grew by %d MB, and may by %d", name, large, a.grown>>20, goalMemory>>20)
				}
				if rate := c.took.Seconds() / b.took.Seconds(); rate < beyondStock {
					t.Errorf("%s with %d minions: %.1f times as many a second as stock, want %d", name, small, rate, beyondStock)
				}
			}
		})
	}
}

// A looseSwarm is a swarm that runs against a master.
type looseSwarm struct {
	*swarm.Swarm
	t   *testing.T
	end func() // stops it
}

// wait waits until holds is true of the swarm's counters. what describes that in the error.
func (s looseSwarm) wait(what string, holds func(swarm.Stats) bool) {
	s.t.Helper()
	ctx, stop := context.WithTimeout(s.t.Context(), swarmTime)
	defer stop()
	if err := s.Wait(ctx, holds); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// signedIn starts a swarm against a master, and returns it when all of its minions have signed in.
func signedIn(t *testing.T, over string, at *site, o swarm.Options) looseSwarm {
	t.Helper()
	o.Dialer = zeromq.New()
	if over == "tcp" {
		o.Dialer, o.Presence = tcp.New(), true
	}
	o.Masters = []swarm.Addr{{Request: fmt.Sprintf("127.0.0.1:%d", at.ret)}}
	o.Parallel, o.Spread, o.KeepConns, o.OneOff, o.RequestTime = 2000, true, min(o.Minions, keptConns), o.Minions/10, swarmTime
	s, err := swarm.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	end := func() { cancel(); <-done }
	t.Cleanup(end)
	loose := looseSwarm{s, t, end}
	loose.wait("sign-ins", func(st swarm.Stats) bool { return st.Ready == int64(o.Minions) })
	return loose
}

// runCommands starts a swarm against a master and runs the commands one after the other. bare is the time from
// publishing a test.ping that no client waits for until its last return is acknowledged.
func runCommands(t *testing.T, over string, n int, at *site, p *process, client *stockMaster, program func(string) string,
	all bool) (bare time.Duration, costs map[string]commandCost) {
	t.Helper()
	s := signedIn(t, over, at, swarm.Options{Minions: n, Pillar: true, Grains: map[string]any{"role": "load"}})
	defer s.end()
	awaitIdle(t, p)
	begin, base := time.Now(), s.Stats()
	client.toAll("test.ping")
	s.wait("bare job", func(st swarm.Stats) bool { return st.Returns-base.Returns >= int64(n) })
	bare = time.Since(begin)
	client.driver.close()
	costs = make(map[string]commandCost)
	for _, c := range wholeCommands {
		if c.small && !all {
			continue
		}
		awaitIdle(t, p)
		used, memory := cpuOf(t, p), memoryOf(t, p)
		args := append([]string{"-c", filepath.Dir(at.config())}, c.args...)
		if c.program == "salt" {
			args = append([]string{"-t", "60"}, args...)
		}
		begin := time.Now()
		out, code := output(t, program(c.program), args...)
		cost := commandCost{took: time.Since(begin), cpu: cpuOf(t, p) - used, grown: memoryOf(t, p).rss - memory.rss}
		if got := namedMinions(t, out); code != 0 || got != n {
			t.Errorf("%s with %d minions: exit code %d, and %d in the answer", c.name, n, code, got)
		}
		costs[c.name] = cost
	}
	return bare, costs
}

// awaitIdle waits until a master uses less than a fiftieth of a processor for a second. It has then identified its
// subscribers and written everything that it had delayed.
func awaitIdle(t *testing.T, p *process) {
	t.Helper()
	for end, last := time.Now().Add(5*time.Minute), cpuOf(t, p); time.Now().Before(end); {
		time.Sleep(time.Second)
		now := cpuOf(t, p)
		if now-last < 20*time.Millisecond {
			return
		}
		last = now
	}
	t.Log("the master does not come to rest")
}

// namedMinions returns the number of minions of the swarm in the output of a command: one dictionary, one for each
// minion, or lists.
func namedMinions(t *testing.T, out string) int {
	t.Helper()
	seen := map[string]bool{}
	add := func(id any) {
		if id, ok := id.(string); ok && strings.HasPrefix(id, "swarm-") {
			seen[id] = true
		}
	}
	for dec := json.NewDecoder(bytes.NewReader([]byte(out))); dec.More(); {
		var v map[string]any
		if dec.Decode(&v) != nil {
			break // the summary
		}
		for k, x := range v {
			add(k)
			if list, ok := x.([]any); ok && k == "up" {
				for _, id := range list {
					add(id)
				}
			}
		}
	}
	return len(seen)
}

func printCommands(over string, large, small int, bare time.Duration, a, b, c map[string]commandCost) {
	fmt.Printf("\n%-34s %32s %32s %32s %8s\n", over+", whole commands", fmt.Sprintf("brine, %d minions", large),
		fmt.Sprintf("brine, %d", small), fmt.Sprintf("stock 3007, %d", small), "ratio")
	cell := func(costs map[string]commandCost, name string, n int) string {
		x, ok := costs[name]
		if !ok {
			return "-"
		}
		return fmt.Sprintf("%.2f s %5.0f/s %4.2f ms %3d MB", x.took.Seconds(), float64(n)/x.took.Seconds(),
			float64(x.cpu.Microseconds())/1000/float64(n), x.grown>>20)
	}
	fmt.Printf("%-34s %32s\n", "test.ping that nobody waits for", fmt.Sprintf("%.2f s", bare.Seconds()))
	for _, w := range wholeCommands {
		fmt.Printf("%-34s %32s %32s %32s %7.1fx\n", w.name, cell(a, w.name, large), cell(b, w.name, small), cell(c, w.name, small),
			c[w.name].took.Seconds()/max(b[w.name].took.Seconds(), 1e-9))
	}
	fmt.Println("each: the whole command, minions a second, the master's processor time for a minion, how much it grew")
}
