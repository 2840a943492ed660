//go:build bench

package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/buildflags"
)

// TestMeasure prints brine's figures next to stock Salt's, all taken in one run on one machine. It fails if a budget
// is exceeded that does not depend on the machine's speed (memory; "make budgets" checks those for size). Run it with
// "make bench".
func TestMeasure(t *testing.T) {
	var rows [][3]string
	row := func(what, ours, stock string) { rows = append(rows, [3]string{what, ours, stock}) }

	sizes(t, row)
	local(t, row)
	templates(t, row)
	stateSpeed(t, row)
	m := startStockMaster(t, "3007", "zeromq", "auto_accept: True")
	confs := map[string]string{"ours": m.minion(t, "ours", ""), "stock": m.minion(t, "stock", "")}
	programs := map[string]string{"ours": ours("salt-minion"), "stock": stock(t, "3007", "salt-minion")}
	started := map[string]string{}
	procs := map[string]*process{}
	for _, id := range []string{"ours", "stock"} {
		var took []time.Duration
		for range 4 {
			if procs[id] != nil {
				procs[id].stop()
			}
			mark, begin := m.bus.mark(), time.Now()
			procs[id] = start(t, programs[id], "-c", confs[id])
			m.bus.wait(mark, "salt/minion/"+id+"/start")
			took = append(took, time.Since(begin))
		}
		started[id] = median(took[1:]) // the first start created the keys
	}
	row("start until the start event, keys accepted", started["ours"], started["stock"])
	underStock(t, m, row)
	stateRuns(t, m, row)
	time.Sleep(settle)
	used := map[string]memory{"ours": memoryOf(t, procs["ours"]), "stock": memoryOf(t, procs["stock"])}
	row("memory after these jobs, all processes, RSS / PSS", used["ours"].String(), used["stock"].String())
	idle := map[string]memory{}
	for _, id := range []string{"ours", "stock"} {
		procs[id].stop()
		mark := m.bus.mark()
		procs[id] = start(t, programs[id], "-c", confs[id])
		m.bus.wait(mark, "salt/minion/"+id+"/start")
		time.Sleep(settle)
		idle[id] = memoryOf(t, procs[id])
	}
	row("idle memory after the start, RSS / PSS", idle["ours"].String(), idle["stock"].String())
	if idle["ours"].rss > 15<<20 {
		t.Errorf("an idle minion takes %s of memory, the budget is 15 MB", idle["ours"])
	}
	underOurs(t, row)

	fmt.Printf("\n%-50s %22s %22s\n", "linux, one machine, one run", "brine", "stock 3007")
	for _, r := range rows {
		fmt.Printf("%-50s %22s %22s\n", r[0], r[1], r[2])
	}
}

func sizes(t *testing.T, row func(what, ours, stock string)) {
	for _, program := range []string{"brine-minion", "brine-master"} {
		out := filepath.Join(t.TempDir(), program)
		build := exec.Command("go", append(append([]string{"build", "-o", out}, buildflags.Release()...), "../cmd/"+program)...)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := build.CombinedOutput(); err != nil {
			t.Fatalf("cannot build %s: %v\n%s", program, err, text)
		}
		info, err := os.Stat(out)
		if err != nil {
			t.Fatal(err)
		}
		row("size of "+program+", stripped", mega(info.Size()), "a Python tree")
	}
}

func local(t *testing.T, row func(what, ours, stock string)) {
	dir := tempDir(t)
	write(t, dir+"/etc/minion", "id: local\nroot_dir: "+dir+"\nlog_file: minion.log\nenable_fqdns_grains: false\nfile_client: local\n")
	call := func(program string, n int) string {
		var took []time.Duration
		for range n {
			begin := time.Now()
			if out, code := output(t, program, "-c", dir+"/etc", "--local", "test.ping"); code != 0 || !strings.Contains(out, "True") {
				t.Fatalf("%s ended with %d and %q", program, code, out)
			}
			took = append(took, time.Since(begin))
		}
		return median(took)
	}
	row("salt-call --local test.ping", call(ours("salt-call"), 20), call(stock(t, "3007", "salt-call"), 3))
}

// underStock measures both minions under one stock master, through stock's Python client.
func underStock(t *testing.T, m *stockMaster, row func(what, ours, stock string)) {
	trip := func(id, fun string, args ...any) string {
		var took []time.Duration
		for range 20 {
			begin := time.Now()
			m.cmd(id, fun, args...)
			took = append(took, time.Since(begin))
		}
		return median(took)
	}
	row("test.ping through a stock master", trip("ours", "test.ping"), trip("stock", "test.ping"))
	row("cmd.run 'echo hi' through a stock master", trip("ours", "cmd.run", "echo hi"), trip("stock", "cmd.run", "echo hi"))
	burst := func(id string) string {
		mark, begin := m.bus.mark(), time.Now()
		var jids []string
		for range 50 {
			jids = append(jids, m.publish(query{"tgt": id, "fun": "cmd.run", "arg": []any{"sleep 1"}}))
		}
		for _, jid := range jids {
			m.bus.wait(mark, "salt/job/"+jid+"/ret/"+id)
		}
		return time.Since(begin).Round(time.Millisecond).String()
	}
	row("50 jobs of cmd.run 'sleep 1' at once", burst("ours"), burst("stock"))
	write(t, m.dir+"/srv/large.bin", strings.Repeat("0123456789abcdef", 100<<20/16))
	fetch := func(id string) string {
		begin := time.Now()
		if got := m.run(query{"tgt": id, "fun": "cp.get_file", "arg": []any{"salt://large.bin", m.dir + "/" + id + "/large"}, "timeout": 80}); got[id].Ret == "" {
			t.Fatalf("cp.get_file gave %v", got)
		}
		return time.Since(begin).Round(time.Millisecond).String()
	}
	row("cp.get_file of 100 MB from a stock master", fetch("ours"), fetch("stock"))
}

// underOurs measures both minions under brine's master, through brine's salt command, whose start is part of the
// figures.
func underOurs(t *testing.T, row func(what, ours, stock string)) {
	m := &ourMaster{site: newSite(t, "zeromq", "auto_accept: True"), t: t, root: t, line: "3007", id: "ours"}
	m.up()
	confs := map[string]string{"ours": m.minion(t, "ours", ""), "stock": m.minion(t, "stock", "")}
	mark := m.bus.mark()
	start(t, ours("salt-minion"), "-c", confs["ours"])
	start(t, stock(t, "3007", "salt-minion"), "-c", confs["stock"])
	m.bus.wait(mark, "salt/minion/ours/start")
	m.bus.wait(mark, "salt/minion/stock/start")
	trip := func(id string, args ...string) string {
		var took []time.Duration
		for range 20 {
			begin := time.Now()
			if v, _ := m.salt(append([]string{id}, args...)...); v[id] == nil {
				t.Fatalf("%s %v gave %v", id, args, v)
			}
			took = append(took, time.Since(begin))
		}
		return median(took)
	}
	row("salt ID test.ping, our master and salt command", trip("ours", "test.ping"), trip("stock", "test.ping"))
	row("salt ID cmd.run 'echo hi', the same", trip("ours", "cmd.run", "echo hi"), trip("stock", "cmd.run", "echo hi"))
	used := memoryOf(t, m.proc)
	row("memory of our master with two minions, RSS / PSS", used.String(), "")
}

func median(took []time.Duration) string {
	slices.Sort(took)
	return took[len(took)/2].Round(100 * time.Microsecond).String()
}

func mega(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/(1<<20)) }

// memory is the memory of a process and all its children.
type memory struct{ rss, pss int64 }

func (m memory) String() string { return mega(m.rss) + " / " + mega(m.pss) }

// settle is how long after its last work a minion counts as idle: by then stock's processes of finished jobs have
// ended, and brine has returned unused memory.
const settle = 10 * time.Second

func memoryOf(t *testing.T, p *process) memory {
	t.Helper()
	var sum memory
	files, _ := filepath.Glob("/proc/[0-9]*/smaps_rollup")
	for _, file := range files {
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if fields[2] != strconv.Itoa(p.cmd.Process.Pid) { // the process group
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(text), "\n") {
			if f := strings.Fields(line); len(f) > 1 {
				kb, _ := strconv.ParseInt(f[1], 10, 64)
				switch f[0] {
				case "Rss:":
					sum.rss += kb << 10
				case "Pss:":
					sum.pss += kb << 10
				}
			}
		}
	}
	if sum.rss == 0 {
		t.Fatalf("cannot read the memory of %s", p.name)
	}
	return sum
}
