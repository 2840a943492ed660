//go:build bench && linux

package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/growth"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/jobcache"
)

const (
	// curveTime limits a command of a curve. A size for which stock takes longer is left out.
	curveTime = 5 * time.Minute
	// curveNoise is the variation of the program's start. A cost below it is not used for the fit.
	curveNoise = 20 * time.Millisecond
	// curveBound limits the exponent of the processor time between the two largest sizes. There n log n has the
	// exponent 1.13, and the largest size exceeds the processor's caches. Quadratic growth has the exponent 2.
	curveBound = 1.4
)

// A curve is a command for work of different sizes. prepare writes the work into a directory, and returns the program
// and its arguments without the configuration. names returns the text that the command prints if it did all of the
// work.
type curve struct {
	name         string
	sizes, stock []int // stock's sizes are smaller where stock takes minutes
	prepare      func(t *testing.T, dir string, n int) (program string, args []string)
	names        func(n int) string
}

// spent is the cost of a command by the kernel's counters: the processor time of all its processes, and the peak
// memory of the largest one.
type spent struct {
	cpu  time.Duration
	peak int64
}

var (
	toTenThousand = []int{100, 1000, 10_000}
	toThousand    = []int{100, 1000}
)

var curves = []curve{
	{"states", toTenThousand, toThousand, stateFile(func(i, n int) string {
		return "test.nop: []"
	}), lastState("nop")},
	{"require, a chain", toTenThousand, toThousand, stateFile(func(i, n int) string {
		return "test.nop: [{x: y}" + before(i, "require: [{test: s%d}]") + "]"
	}), lastState("nop")},
	{"require of a name without a state", toTenThousand, toThousand, stateFile(func(i, n int) string {
		return fmt.Sprintf("test.nop: [{name: n%d}%s]", i, before(i, "require: [n%d]"))
	}), func(n int) string { return fmt.Sprintf("test_|-s%d_|-n%d_|-nop", n-1, n-1) }},
	{"require_in, a chain by names", toTenThousand, toThousand, stateFile(func(i, n int) string {
		if i == n-1 {
			return fmt.Sprintf("test.nop: [{name: n%d}]", i)
		}
		return fmt.Sprintf("test.nop: [{name: n%d}, {require_in: [n%d]}]", i, i+1)
	}), func(n int) string { return fmt.Sprintf("test_|-s%d_|-n%d_|-nop", n-1, n-1) }},
	{"require_in, all of one", toTenThousand, toThousand, stateFile(func(i, n int) string {
		if i == 0 {
			return "test.nop: []"
		}
		return "test.nop: [{require_in: [{test: s0}]}]"
	}), lastState("nop")},
	{"require, one of all", toTenThousand, toThousand, stateFile(func(i, n int) string {
		if i < n-1 {
			return "test.nop: []"
		}
		return "test.nop: [{require: [" + listOf(n-1, "{test: s%d}") + "]}]"
	}), lastState("nop")},
	{"require_in, one of all", toTenThousand, toThousand, stateFile(func(i, n int) string {
		if i < n-1 {
			return "test.nop: []"
		}
		return "test.nop: [{require_in: [" + listOf(n-1, "{test: s%d}") + "]}]"
	}), lastState("nop")},
	{"require_any of ten", toTenThousand, toThousand, stateFile(func(i, n int) string {
		if i < 10 {
			return "test.nop: []"
		}
		var ten []string
		for j := range 10 {
			ten = append(ten, fmt.Sprintf("{test: s%d}", i-1-j))
		}
		return "test.nop: [{require_any: [" + strings.Join(ten, ", ") + "]}]"
	}), lastState("nop")},
	{"require of a file of states", toTenThousand, toThousand, stateFile(func(i, n int) string {
		return "test.nop: [{require: [{sls: other}]}]"
	}), lastState("nop")},
	{"require with a glob", toTenThousand, toThousand, stateFile(func(i, n int) string {
		return "test.nop: [{require: [{test: 'oth*'}]}]"
	}), lastState("nop")},
	{"watch, a chain", toTenThousand, toThousand, stateFile(func(i, n int) string {
		return "test.succeed_with_changes: [{x: y}" + before(i, "watch: [{test: s%d}]") + "]"
	}), lastState("succeed_with_changes")},
	{"listen", toTenThousand, toThousand, stateFile(func(i, n int) string {
		return "test.succeed_with_changes: [{x: y}" + before(i, "listen: [{test: s%d}]") + "]"
	}), lastState("succeed_with_changes")},
	{"listen_in", toTenThousand, toThousand, stateFile(func(i, n int) string {
		return "test.succeed_with_changes: [{x: y}" + before(i, "listen_in: [{test: s%d}]") + "]"
	}), lastState("succeed_with_changes")},
	{"prereq", toTenThousand, toThousand, stateFile(func(i, n int) string {
		if i%2 == 0 {
			return "test.nop: []"
		}
		return "test.nop: [{x: y}" + before(i, "prereq: [{test: s%d}]") + "]"
	}), lastState("nop")},
	{"onchanges", toTenThousand, toThousand, stateFile(func(i, n int) string {
		return "test.succeed_with_changes: [{x: y}" + before(i, "onchanges: [{test: s%d}]") + "]"
	}), lastState("succeed_with_changes")},
	{"use", toTenThousand, toThousand, stateFile(func(i, n int) string {
		return "test.nop: [{x: y}" + before(i, "use: [{test: s%d}]") + "]"
	}), lastState("nop")},
	{"names", toTenThousand, toThousand, func(t *testing.T, dir string, n int) (string, []string) {
		write(t, dir+"/srv/curve.sls", "all: {test.nop: [{names: ["+listOf(n, "s%d")+"]}]}\n")
		return applyCurve()
	}, func(n int) string { return fmt.Sprintf("test_|-all_|-s%d_|-nop", n-1) }},
	{"extend", toTenThousand, toThousand, func(t *testing.T, dir string, n int) (string, []string) {
		var b strings.Builder
		b.WriteString("include: [other]\nextend:\n")
		for i := range n {
			fmt.Fprintf(&b, "  o%d: {test: [{x: y}]}\n", i)
		}
		var o strings.Builder
		for i := range n {
			fmt.Fprintf(&o, "o%d: {test.nop: []}\n", i)
		}
		write(t, dir+"/srv/curve.sls", b.String())
		write(t, dir+"/srv/other.sls", o.String())
		return applyCurve()
	}, func(n int) string { return fmt.Sprintf("test_|-o%d_|-o%d_|-nop", n-1, n-1) }},
	{"include, all in one file", toTenThousand, toThousand, func(t *testing.T, dir string, n int) (string, []string) {
		write(t, dir+"/srv/curve.sls", "include: ["+listOf(n, "part.p%d")+"]\n")
		for i := range n {
			write(t, fmt.Sprintf("%s/srv/part/p%d.sls", dir, i), fmt.Sprintf("s%d: {test.nop: []}\n", i))
		}
		return applyCurve()
	}, lastState("nop")},
	// Each state records all files that include it, as in Salt. For a chain this grows with the square of its length.
	{"include, a chain", toThousand, []int{10, 100}, func(t *testing.T, dir string, n int) (string, []string) {
		write(t, dir+"/srv/curve.sls", "include: [part.p0]\n")
		for i := range n {
			next := ""
			if i < n-1 {
				next = fmt.Sprintf("include: [part.p%d]\n", i+1)
			}
			write(t, fmt.Sprintf("%s/srv/part/p%d.sls", dir, i), fmt.Sprintf("%ss%d: {test.nop: []}\n", next, i))
		}
		return applyCurve()
	}, lastState("nop")},
	{"top file, entries for minions", toTenThousand, toThousand, func(t *testing.T, dir string, n int) (string, []string) {
		var b strings.Builder
		b.WriteString("base:\n  curve: [mine]\n")
		for i := range n {
			fmt.Fprintf(&b, "  minion%d: [part%d]\n", i, i)
		}
		write(t, dir+"/srv/top.sls", b.String())
		write(t, dir+"/srv/mine.sls", "s: {test.nop: []}\n")
		return "salt-call", []string{"--local", "--out=json", "state.apply"}
	}, func(int) string { return "test_|-s_|-s_|-nop" }},
	{"pillar, KB", []int{10, 100, 1000, 10_000}, []int{10, 100, 1000}, func(t *testing.T, dir string, n int) (string, []string) {
		var b strings.Builder
		for i := range n * 10 { // 100 bytes each
			fmt.Fprintf(&b, "key%06d:\n  name: %-50d\n  list: [1, 2, a, b]\n  on: true\n", i, i)
		}
		write(t, dir+"/pillar/top.sls", "base: {'*': [data]}\n")
		write(t, dir+"/pillar/data.sls", b.String())
		return "salt-call", []string{"--local", "--out=json", "pillar.items"}
	}, func(n int) string { return fmt.Sprintf("key%06d", n*10-1) }},
	{"file.recurse, files", []int{10, 100, 1000, 10_000}, toThousand, func(t *testing.T, dir string, n int) (string, []string) {
		for i := range n {
			write(t, fmt.Sprintf("%s/srv/tree/d%d/f%d", dir, i%100, i), fmt.Sprint(i))
		}
		write(t, dir+"/srv/curve.sls", "tree: {file.recurse: [{name: "+dir+"/copy}, {source: 'salt://tree'}]}\n")
		return applyCurve()
	}, func(n int) string { return fmt.Sprintf("f%d", n-1) }},
	{"file.managed, files from a source", toTenThousand, toThousand, func(t *testing.T, dir string, n int) (string, []string) {
		var b strings.Builder
		for i := range n {
			write(t, fmt.Sprintf("%s/srv/tree/f%d", dir, i), fmt.Sprint(i))
			fmt.Fprintf(&b, "%s/copy/f%d: {file.managed: [{source: 'salt://tree/f%d'}, {makedirs: true}]}\n", dir, i, i)
		}
		write(t, dir+"/srv/curve.sls", b.String())
		return applyCurve()
	}, func(n int) string { return fmt.Sprintf("f%d", n-1) }},
	{"file server, one directory", []int{1000, 10_000, 100_000}, []int{1000, 10_000}, func(t *testing.T, dir string, n int) (string, []string) {
		emptyFiles(t, dir+"/srv/large", n, "f%06d")
		return "salt-call", []string{"--local", "--out=json", "cp.list_master"}
	}, func(n int) string { return fmt.Sprintf("large/f%06d", n-1) }},
	{"salt-key -L, keys", []int{1000, 10_000, 100_000}, []int{1000, 10_000}, func(t *testing.T, dir string, n int) (string, []string) {
		emptyFiles(t, dir+"/root/pki/minions", n, "minion-%06d")
		return "salt-key", []string{"-L", "--out=json"}
	}, func(n int) string { return fmt.Sprintf("minion-%06d", n-1) }},
	{"jobs.list_jobs, returns kept", []int{1000, 10_000, 100_000, 1_000_000}, []int{1000, 10_000}, func(t *testing.T, dir string, n int) (string, []string) {
		filledCaches.link(t, dir, n)
		return "salt-run", []string{"jobs.list_jobs", "--out=json"}
	}, func(n int) string { return jobOf(0) }},
	{"jobs.lookup_jid, returns kept", []int{1000, 10_000, 100_000, 1_000_000}, []int{1000, 10_000}, func(t *testing.T, dir string, n int) (string, []string) {
		filledCaches.link(t, dir, n)
		return "salt-run", []string{"jobs.lookup_jid", jobOf(0), "--out=json"}
	}, func(n int) string { return fmt.Sprintf("minion-%04d", min(n, returnsOfJob)-1) }},
}

// returnsOfJob is the number of minions that returned to each job of fillJobCache.
const returnsOfJob = 1000

// jobOf returns the id of the i-th job.
func jobOf(i int) string {
	return fmt.Sprintf("20260102%02d%02d%02d%06d", 10+i/3600%10, i/60%60, i%60, i)
}

// jobCaches are the directories of filled job caches by the number of returns. Writing a million of them takes
// minutes, and two curves read them.
type jobCaches map[int]string

var filledCaches = jobCaches{}

// link gives a master's directory the job cache with n returns.
func (c jobCaches) link(t *testing.T, dir string, n int) {
	t.Helper()
	if c[n] == "" {
		filled, err := os.MkdirTemp("", "brine-")
		if err != nil {
			t.Fatal(err)
		}
		c[n] = filled
		fillJobCache(t, filled, n)
	}
	at := dir + "/root/var/cache/salt/master/jobs"
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(c[n], at); err != nil {
		t.Fatal(err)
	}
}

func (c jobCaches) remove() {
	for n, dir := range c {
		os.RemoveAll(dir)
		delete(c, n)
	}
}

// fillJobCache writes n returns in Salt's layout, with returnsOfJob minions for each job.
func fillJobCache(t *testing.T, root string, n int) {
	t.Helper()
	cache, err := jobcache.Open(root, "sha256")
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	ids := make([]string, min(n, returnsOfJob))
	for i := range ids {
		ids[i] = fmt.Sprintf("minion-%04d", i)
	}
	for i := range (n + returnsOfJob - 1) / returnsOfJob {
		jid := jobOf(i)
		j := store.Job{JID: jid, Fun: "test.ping", Tgt: "*", TgtType: "glob", Arg: []any{}, User: "root", Minions: ids}
		if err := cache.SaveJob(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			r := store.Return{JID: jid, ID: id, Load: map[string]any{"return": true, "retcode": int64(0), "success": true}}
			if _, err := cache.SaveReturn(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// stateFile writes a file with n states s0, s1 and so on, whose bodies are returned by body, and applies it.
func stateFile(body func(i, n int) string) func(t *testing.T, dir string, n int) (string, []string) {
	return func(t *testing.T, dir string, n int) (string, []string) {
		var b strings.Builder
		b.WriteString("include: [other]\n")
		for i := range n {
			fmt.Fprintf(&b, "s%d: {%s}\n", i, body(i, n))
		}
		write(t, dir+"/srv/curve.sls", b.String())
		write(t, dir+"/srv/other.sls", "other: {test.nop: []}\n")
		return applyCurve()
	}
}

func applyCurve() (program string, args []string) {
	return "salt-call", []string{"--local", "--out=json", "state.sls", "curve"}
}

// before returns an argument that names the state before the i-th one, or "" for the first.
func before(i int, format string) string {
	if i == 0 {
		return ""
	}
	return ", {" + fmt.Sprintf(format, i-1) + "}"
}

func listOf(n int, format string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(list, ", ")
}

func lastState(fun string) func(n int) string {
	return func(n int) string { return fmt.Sprintf("test_|-s%d_|-s%d_|-%s", n-1, n-1, fun) }
}

func emptyFiles(t *testing.T, dir string, n int, format string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf(format, i)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestGrowth runs commands for work of growing size and fits the growth of their processor time, which for brine may
// be that of n log n. It prints the curves, and the peak memory next to stock's. BRINE_CURVES selects the curves
// whose names contain it.
func TestGrowth(t *testing.T) {
	t.Cleanup(filledCaches.remove)
	fmt.Printf("\n%-36s %8s %34s %34s\n", "processor time and memory at the peak", "size", "brine", "stock 3007")
	for _, c := range curves {
		if !strings.Contains(c.name, os.Getenv("BRINE_CURVES")) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			mine := measureCurve(t, c, c.sizes, ours)
			var theirs map[int]spent
			if os.Getenv("BRINE_CURVES_STOCK") != "no" {
				theirs = measureCurve(t, c, c.stock, func(program string) string { return stock(t, "3007", program) })
			}
			for _, n := range c.sizes {
				fmt.Printf("%-36s %8d %34s %34s\n", c.name, n, spentText(mine, n), spentText(theirs, n))
			}
			k, ok := exponentOf(c.sizes, mine)
			theirK, theirOK := exponentOf(c.stock, theirs)
			fmt.Printf("%-36s %8s %34s %34s\n", "", "exponent", exponentText(k, ok), exponentText(theirK, theirOK))
			if k > curveBound {
				t.Errorf("%s: processor time grows with exponent %.2f, want at most %.2f", c.name, k, curveBound)
			}
		})
	}
}

func spentText(all map[int]spent, n int) string {
	s, ok := all[n]
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%9.3f s %9s", s.cpu.Seconds(), mega(s.peak))
}

func exponentText(k float64, ok bool) string {
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.2f", k)
}

// exponentOf fits the cost above that of the program's start, which is the cost of size 1. It reports false if fewer
// than two sizes exceed the noise.
func exponentOf(sizes []int, all map[int]spent) (float64, bool) {
	var points []growth.Point
	for _, n := range sizes {
		if cost := all[n].cpu - all[1].cpu; cost > curveNoise {
			points = append(points, growth.Point{Size: n, Cost: cost.Seconds()})
		}
	}
	if len(points) < 2 {
		return 0, false
	}
	return growth.Exponent(points[len(points)-2:]), true
}

// measureCurve runs the command of a curve with each size, and with size 1.
func measureCurve(t *testing.T, c curve, sizes []int, program func(string) string) map[int]spent {
	t.Helper()
	all := make(map[int]spent)
	for _, n := range slices.Concat([]int{1}, sizes) {
		dir := tempDir(t)
		conf := fmt.Sprintf("id: curve\nuser: root\nroot_dir: %[1]s/root\npki_dir: pki\nsock_dir: run\nfile_client: local\n"+
			"file_roots: {base: [%[1]s/srv]}\npillar_roots: {base: [%[1]s/pillar]}\nlog_level: quiet\nenable_fqdns_grains: false\n"+
			"log_file: log\nkey_logfile: key\n", dir)
		write(t, dir+"/etc/minion", conf)
		write(t, dir+"/etc/master", conf)
		name, args := c.prepare(t, dir, n)
		s, out, err := spend(t, program(name), append([]string{"-c", dir + "/etc"}, args...)...)
		os.RemoveAll(dir)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Logf("%s with %d takes more than %v", program(name), n, curveTime)
			break
		}
		if err != nil || !strings.Contains(out, c.names(n)) {
			t.Fatalf("%s %q: %v, and no %q in %s", program(name), args, err, c.names(n), tailText(out))
		}
		all[n] = s
	}
	return all
}

// spend runs a command and returns its cost and its output.
func spend(t *testing.T, name string, args ...string) (spent, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), curveTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		return spent{}, "", ctx.Err()
	}
	if err != nil {
		err = fmt.Errorf("%w: %s", err, tailText(errs.String()))
	}
	u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("no resource usage on " + strconv.Quote(name))
	}
	return spent{cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), u.Maxrss << 10}, out.String(), err
}
