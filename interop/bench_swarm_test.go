//go:build bench && linux

package interop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/swarm"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/tcp"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// Sizes of the swarms: what brine's master must handle, and what a stock master survives on a machine with two
// processors. BRINE_SWARM sets others ("10000 1000").
const (
	swarmOurs  = 10_000
	swarmStock = 1000
	// swarmJobs is how many jobs are published one after the other without waiting for their returns, to measure a
	// longer load. The time before the first return and after almost all returns is the same for all of them as for
	// one.
	swarmJobs = 3
	// swarmTime limits each step.
	swarmTime = 15 * time.Minute
)

// swarmFigures are the results of one master with a swarm.
type swarmFigures struct {
	minions, keep   int
	signIn          time.Duration
	refused, failed int64
	ping, lastPing  time.Duration
	returns, files  time.Duration // of one job, until all were acknowledged, and until the last was in the job cache
	several         time.Duration // of swarmJobs jobs, until all were acknowledged
	retries         int64         // returns that were sent again
	each            int64         // bytes per minion
	// Processor time of the master and of the swarm, which share the machine: for the sign-ins, the pings, the 10 KB
	// returns, the same until the last return was in the job cache, and the returns of several jobs.
	cpu, swarm [5]time.Duration
}

// swarmStep is the time until the last minion had received the last job, until all returns were acknowledged, and
// until they were in the job cache, with the processor time of the master and of the swarm until then.
type swarmStep struct {
	last, all, files                 time.Duration
	cpu, swarm, filesCPU, filesSwarm time.Duration
}

// TestSwarm measures brine's master and a stock one with the same swarm: many sign-ins at once, test.ping to all, 10
// KB from all, and memory. It prints both results and their ratios.
func TestSwarm(t *testing.T) {
	n, k := swarmOurs, swarmStock
	if text := os.Getenv("BRINE_SWARM"); text != "" {
		if _, err := fmt.Sscan(text, &n, &k); err != nil {
			t.Fatal(err)
		}
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	// Each minion has a publish connection, and a request connection that it either keeps or opens for a moment.
	// oneOff limits the latter. The remaining descriptors are for files.
	oneOff := int(limit.Max) / 20
	most := int(limit.Max) - oneOff - int(limit.Max)/40
	if n > most {
		t.Logf("only %d descriptors are allowed: %d minions in place of %d", limit.Max, most, n)
		n = most
	}
	keep := func(n int) int { return min(n, most-n) }
	// The masters need the processors, and there is enough memory, so the swarm's garbage is collected only between
	// the steps.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(3 << 30))
	for _, over := range []string{"zeromq", "tcp"} {
		t.Run(over, func(t *testing.T) {
			ours := &ourMaster{site: newSite(t, over, "auto_accept: True"), t: t, root: t, line: "3007"}
			ours.up()
			ours.bus.driver.close() // a listener to events needs processor time
			// Stock Salt's client publishes for both.
			client := &stockMaster{site: ours.site, t: t, root: t, line: "3007", driver: pythonDriver(t, "3007", "calls", ours.config())}
			a := measureSwarm(t, over, n, keep(n), oneOff, ours.site, ours.proc, true, client.toAll)
			client.driver.close()
			ours.proc.stop()
			stock := startStockMaster(t, "3007", over, "auto_accept: True\nzmq_backlog: 4000")
			stock.bus.driver.close()
			b := measureSwarm(t, over, k, keep(k), oneOff, stock.site, stock.proc, false, stock.toAll)
			printSwarm(over, a, b)
			if a.refused > 0 {
				t.Errorf("%d sign-ins were refused", a.refused)
			}
		})
	}
}

// toAll publishes a job for all minions.
func (m *stockMaster) toAll(fun string, arg ...string) {
	list := make([]any, len(arg))
	for i, x := range arg {
		list[i] = x
	}
	m.publish(query{"tgt": "*", "fun": fun, "arg": list})
}

func printSwarm(over string, a, b swarmFigures) {
	rate := func(n int, d time.Duration) float64 { return float64(n) / d.Seconds() }
	fmt.Printf("\n%-42s %16s %16s %10s\n", over+", one machine, one run", "brine", "stock 3007", "ratio")
	row := func(what, ours, stock string, ratio float64) {
		if ratio == 0 {
			fmt.Printf("%-42s %16s %16s\n", what, ours, stock)
			return
		}
		fmt.Printf("%-42s %16s %16s %9.1fx\n", what, ours, stock, ratio)
	}
	ms := func(d time.Duration) string { return d.Round(time.Millisecond).String() }
	per := func(x float64) string { return fmt.Sprintf("%.0f/s", x) }
	row("minions", fmt.Sprint(a.minions), fmt.Sprint(b.minions), float64(a.minions)/float64(b.minions))
	row("  that keep their request connection", fmt.Sprint(a.keep), fmt.Sprint(b.keep), 0)
	row("all signed in and subscribed", ms(a.signIn), ms(b.signIn), 0)
	row("  per second", per(rate(a.minions, a.signIn)), per(rate(b.minions, b.signIn)), rate(a.minions, a.signIn)/rate(b.minions, b.signIn))
	row("  refused, failed at first", fmt.Sprint(a.refused, ", ", a.failed), fmt.Sprint(b.refused, ", ", b.failed), 0)
	row("test.ping: publish to last receipt", ms(a.lastPing), ms(b.lastPing), 0)
	row("test.ping: all returns acknowledged", ms(a.ping), ms(b.ping), 0)
	row("  per second", per(rate(a.minions, a.ping)), per(rate(b.minions, b.ping)), rate(a.minions, a.ping)/rate(b.minions, b.ping))
	row("10 KB returns from all", ms(a.returns), ms(b.returns), 0)
	row("  per second", per(rate(a.minions, a.returns)), per(rate(b.minions, b.returns)), rate(a.minions, a.returns)/rate(b.minions, b.returns))
	row("  and in the job cache of Salt's tools", ms(a.files), ms(b.files), 0)
	row(fmt.Sprintf("10 KB returns from all, %d jobs in a row", swarmJobs), ms(a.several), ms(b.several), 0)
	row("  per second", per(rate(swarmJobs*a.minions, a.several)), per(rate(swarmJobs*b.minions, b.several)),
		rate(swarmJobs*a.minions, a.several)/rate(swarmJobs*b.minions, b.several))
	row("  returns sent again", fmt.Sprint(a.retries), fmt.Sprint(b.retries), 0)
	for i, what := range []string{"sign-in", "test.ping", "10 KB return", "10 KB return with its files", "10 KB return of several jobs"} {
		times := 1
		if i == 4 {
			times = swarmJobs
		}
		x, y := a.cpu[i]/time.Duration(times*a.minions), b.cpu[i]/time.Duration(times*b.minions)
		row("processor time of the master per "+what, x.Round(time.Microsecond).String(), y.Round(time.Microsecond).String(), y.Seconds()/max(x.Seconds(), 1e-9))
		x, y = a.swarm[i]/time.Duration(times*a.minions), b.swarm[i]/time.Duration(times*b.minions)
		row("  of the swarm, on the same machine", x.Round(time.Microsecond).String(), y.Round(time.Microsecond).String(), 0)
	}
	row("memory per idle minion, bytes (PSS)", fmt.Sprint(a.each), fmt.Sprint(b.each), float64(b.each)/float64(max(a.each, 1)))
}

// measureSwarm runs n minions against a master, brine's or a stock one. keep of them keep their request connection,
// and at most oneOff of the others have one at the same time.
func measureSwarm(t *testing.T, over string, n, keep, oneOff int, at *site, p *process, ours bool, publish func(fun string, arg ...string)) swarmFigures {
	t.Helper()
	var dialer transport.Dialer = zeromq.New()
	if over == "tcp" {
		dialer = tcp.New()
	}
	time.Sleep(settle)
	before := memoryOf(t, p)
	s, err := swarm.New(swarm.Options{Masters: []swarm.Addr{{Request: fmt.Sprintf("127.0.0.1:%d", at.ret)}}, Dialer: dialer, Presence: over == "tcp",
		Minions: n, Parallel: 2000, Spread: true, KeepConns: keep, OneOff: oneOff, RequestTime: swarmTime})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	wait := func(what string, holds func(swarm.Stats) bool) {
		t.Helper()
		wctx, stop := context.WithTimeout(t.Context(), swarmTime)
		defer stop()
		if err := s.Wait(wctx, holds); err != nil {
			cancel()
			<-done
			t.Fatalf("%s: %v", what, err)
		}
	}
	f := swarmFigures{minions: n, keep: keep}
	begin, used, own := time.Now(), cpuOf(t, p), ownCPU(t)
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	defer func() { cancel(); <-done }()
	wait("sign-in storm", func(st swarm.Stats) bool { return st.Ready == int64(n) })
	f.signIn = time.Since(begin)
	f.refused, f.failed = s.Stats().Refused, s.Stats().Failed
	f.cpu[0], f.swarm[0] = cpuOf(t, p)-used, ownCPU(t)-own
	patience := 4 * settle
	if ours {
		patience = 3 * time.Minute
		// After the sign-ins brine's master probes each subscriber, which is neither idle nor part of a ping.
		if over == "zeromq" {
			wait("questions who is there", func(st swarm.Stats) bool { return st.Asked >= int64(n) })
		}
	}
	// An idle minion has only the one or two connections that it keeps, and the master has returned unused memory.
	f.each = memoryOf(t, p).pss
	for still, end := 0, time.Now().Add(patience); still < 6 && time.Now().Before(end); still++ {
		time.Sleep(settle / 2)
		if now := memoryOf(t, p).pss; now < f.each-f.each/50 {
			f.each, still = now, 0
		}
	}
	f.each = (f.each - before.pss) / int64(n)
	returned := 0
	step := func(times int, fun string, arg ...string) (d swarmStep) {
		t.Helper()
		runtime.GC()
		base := s.Stats()
		begin, used, own := time.Now(), cpuOf(t, p), ownCPU(t)
		for range times {
			publish(fun, arg...)
		}
		wait(fun, func(st swarm.Stats) bool { return st.Jobs-base.Jobs >= int64(times*n) })
		d.last = time.Since(begin)
		wait(fun, func(st swarm.Stats) bool { return st.Returns-base.Returns >= int64(times*n) })
		d.all, d.cpu, d.swarm = time.Since(begin), cpuOf(t, p)-used, ownCPU(t)-own
		returned += times * n
		for end := time.Now().Add(swarmTime); cachedReturns(t, at) < returned; time.Sleep(settle / 40) {
			if time.Now().After(end) {
				t.Fatalf("%s: %d returns are in the job cache, not %d", fun, cachedReturns(t, at), returned)
			}
		}
		d.files, d.filesCPU, d.filesSwarm = time.Since(begin), cpuOf(t, p)-used, ownCPU(t)-own
		return d
	}
	ping, one, several := step(1, "test.ping"), step(1, "swarm.text", "10240"), step(swarmJobs, "swarm.text", "10240")
	f.ping, f.lastPing, f.returns, f.files, f.several = ping.all, ping.last, one.all, one.files, several.all
	for i, x := range []swarmStep{ping, one, {cpu: one.filesCPU, swarm: one.filesSwarm}, several} {
		f.cpu[i+1], f.swarm[i+1] = x.cpu, x.swarm
	}
	f.retries = s.Stats().Retries
	return f
}

// cachedReturns returns how many returns of the swarm are in the job cache.
func cachedReturns(t *testing.T, at *site) int {
	t.Helper()
	all, err := filepath.Glob(at.dir + "/cache/jobs/??/*/swarm-*/return.p")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// ownCPU returns the processor time of this process, which runs the swarm.
func ownCPU(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cpuOf returns the processor time of the running processes of a process group.
func cpuOf(t *testing.T, p *process) time.Duration {
	t.Helper()
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux
	var sum time.Duration
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(f) < 13 || f[2] != strconv.Itoa(p.cmd.Process.Pid) {
			continue
		}
		for _, x := range f[11:13] {
			n, _ := strconv.ParseInt(x, 10, 64)
			sum += time.Duration(n) * tick
		}
	}
	return sum
}
