//go:build bench && linux

package master_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/swarm"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/tcp"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// capacityMinions is how many minions TestCapacity starts. BRINE_SWARM sets another number.
const capacityMinions = 2000

// measure executes the instructions that TestCapacity sends to a child master.
func measure(m *master.Master, line []string) string {
	switch line[0] {
	case "cpu":
		return "cpu " + processorTime().String()
	case "mem":
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return fmt.Sprintf("mem heap %d stacks %d (%d goroutines) other %d", s.HeapAlloc, s.StackInuse, runtime.NumGoroutine(), s.Sys-s.HeapSys-s.StackSys)
	case "job":
		args := make([]any, 0, 1)
		for _, x := range line[2:] {
			n, err := strconv.Atoi(x)
			if err != nil {
				return err.Error()
			}
			args = append(args, n)
		}
		if _, err := m.Publish(context.Background(), master.Job{Fun: line[1], Args: args, Tgt: "*"}); err != nil {
			return err.Error()
		}
		return "published"
	case "profile":
		f, err := os.Create(line[1])
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		return fmt.Sprint("profiling ", err)
	case "heap":
		f, err := os.Create(line[1])
		if err == nil {
			err = pprof.Lookup("heap").WriteTo(f, 0)
		}
		return fmt.Sprint("heap ", err)
	case "stop":
		pprof.StopCPUProfile()
		return "stopped"
	}
	return ""
}

func init() { further = measure }

// TestCapacity measures the processor time that a sign-in and a return cost the master alone. The swarm keeps the
// machine's other processor busy, so the rate that both reach together is of little use.
func TestCapacity(t *testing.T) {
	n := capacityMinions
	if text := os.Getenv("BRINE_SWARM"); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatal(err)
		}
	}
	profiles := os.Getenv("BRINE_PROFILE") // a directory for profiles of the master and of the swarm
	for _, kind := range []string{"memory", "sqlite", "salt-master", "tcp"} {
		t.Run(kind, func(t *testing.T) {
			c := startChildWith(t, kind)
			cpu := func() time.Duration {
				d, err := time.ParseDuration(c.command(t, "cpu", "cpu "))
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			var dialer transport.Dialer = zeromq.New()
			if kind == "tcp" {
				dialer = tcp.New()
			}
			s, err := swarm.New(swarm.Options{Masters: []swarm.Addr{{Request: c.req}}, Dialer: dialer, Presence: kind == "tcp", Minions: n, Parallel: 500, Spread: true,
				RequestTime: 5 * time.Minute, Do: func(ctx context.Context, id string, j protocol.Job) any {
					return swarm.Answer(ctx, id, j)
				}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			step := func(what string, per int, do func(), holds func(swarm.Stats) bool) {
				t.Helper()
				file := profiles + "/" + strings.ReplaceAll(kind+"-"+what, " ", "-")
				if profiles != "" {
					c.command(t, "profile "+file+".cpu", "profiling")
					own, err := os.Create(file + ".swarm.cpu")
					if err == nil {
						err = pprof.StartCPUProfile(own)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				begin, used, own := time.Now(), cpu(), processorTime()
				do()
				wctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
				defer stop()
				if err := s.Wait(wctx, holds); err != nil {
					t.Fatal(what, err)
				}
				took, master, mine := time.Since(begin), cpu()-used, processorTime()-own
				if profiles != "" {
					pprof.StopCPUProfile()
					c.command(t, "stop", "stopped")
					c.command(t, "heap "+file+".heap", "heap")
				}
				each := func(d time.Duration) time.Duration { return (d / time.Duration(per)).Round(time.Microsecond) }
				t.Logf("%-14s %6d in %8v, %6.0f/s; processor time each: master %8v, swarm %8v; %6.0f/s per processor", what, per, took.Round(time.Millisecond),
					float64(per)/took.Seconds(), each(master), each(mine), float64(per)/master.Seconds())
			}
			base := c.rss(t)
			t.Log("no minions:", c.command(t, "mem", "mem"))
			step("sign-in", n, func() {
				go func() {
					defer close(done)
					s.Run(ctx)
				}()
			}, func(st swarm.Stats) bool { return st.Ready == int64(n) })
			defer func() { cancel(); <-done }()
			c.subscribers(t, n)
			idle := (c.rss(t) - base) / n
			t.Logf("%d bytes per idle minion; %s", idle, c.command(t, "mem", "mem"))
			if kind != "tcp" { // the probes that identify the subscribers are measured separately
				step("naming", n, func() {}, func(st swarm.Stats) bool { return st.Asked >= int64(n) })
			}
			for _, job := range []struct {
				what, line string
				times      int
			}{{"test.ping", "job test.ping", 5}, {"10 KB return", "job swarm.text 10240", 3}} {
				before := s.Stats()
				step(job.what, n*job.times, func() {
					for i := range job.times {
						c.command(t, job.line, "published")
						wctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
						if err := s.Wait(wctx, func(st swarm.Stats) bool { return st.Returns-before.Returns >= int64(n*(i+1)) }); err != nil {
							t.Error(err)
						}
						stop()
					}
				}, func(st swarm.Stats) bool { return st.Returns-before.Returns >= int64(n*job.times) })
			}
			t.Logf("%d bytes per minion after the jobs", (c.rss(t)-base)/n)
		})
	}
}
