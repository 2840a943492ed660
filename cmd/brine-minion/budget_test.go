//go:build budgets

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/buildflags"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol/events"
)

// Budgets of the program. They are raised only for a reason. The goals come from the design. If a budget is above its
// goal, the test logs by how much.
const (
	maxFull, goalFull       = 21 << 20, 20 << 20 // as released, with all modules and states
	maxCore, goalCore       = 9376 << 10, 7 << 20
	maxTiny, goalTiny       = 8112 << 10, 7680 << 10 // examples/tiny-agent
	maxMaster, goalMaster   = 30272 << 10, 26 << 20  // brine-master, with all modules that a master may call on its own host
	maxSmall                = 24192 << 10            // brine-master, built with the tag custom
	maxIdle, goalIdle       = 7680 << 10, 6 << 20
	maxWakeups              = 30 // per minute, for a connected minion without work
	maxStart, goalConnected = 5 * time.Second, 100 * time.Millisecond
)

// coreTags build the smallest minion: sys, test and saltutil; no HTTP, no TLS, no viper.
const coreTags = "custom,modules.sys,modules.test,modules.saltutil"

// smallTags build the smallest brine-master. It serves minions and orchestrates; on its own host it can call only the
// functions of the demonstration's minions.
const smallTags = "custom"

// build builds a static program, with or without its symbols.
func build(t *testing.T, dir, pkg, tags string, symbols bool) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	args := append([]string{"build", "-o", out}, buildflags.Release(tags)...)
	if symbols {
		args = append(args, "-ldflags=-w")
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, pkg)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build %s: %v\n%s", pkg, err, text)
	}
	return out
}

// judge compares a number with its budget and its goal.
func judge(t *testing.T, what string, n, budget, goal float64, unit string) {
	t.Helper()
	state := ""
	switch {
	case n > budget:
		t.Errorf("%s: %.2f %s, more than the budget of %.2f", what, n, unit, budget)
		return
	case n > goal:
		state = fmt.Sprintf(", %.2f above the goal of %.2f", n-goal, goal)
	}
	t.Logf("%s: %.2f %s of %.2f%s", what, n, unit, budget, state)
}

func TestSizes(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		name, dir, pkg, tags string
		budget, goal         float64
	}{
		{"full", ".", ".", "", maxFull, goalFull},
		{"core", ".", ".", coreTags, maxCore, goalCore},
		{"examples/tiny-agent", "../../examples/tiny-agent", ".", "", maxTiny, goalTiny},
		{"brine-master", "../brine-master", ".", "", maxMaster, goalMaster},
		{"brine-master, small", "../brine-master", ".", smallTags, maxSmall, maxSmall},
	} {
		info, err := os.Stat(build(t, c.dir, c.pkg, c.tags, false))
		if err != nil {
			t.Fatal(err)
		}
		judge(t, c.name, float64(info.Size())/mb, c.budget/mb, c.goal/mb, "MB")
	}
}

// TestSmallMaster: the demonstration imports what it needs, so that it also works in the smallest brine-master.
func TestSmallMaster(t *testing.T) {
	dir, err := os.MkdirTemp("", "") // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	cmd := exec.CommandContext(t.Context(), build(t, "../brine-master", ".", smallTags, false), "demo")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line, want := range map[string]int{"Function: file.managed\n": 1, "Failed:    0\n": 4, "Result: Failed": 0,
		"Function: file.managed - Result: Clean": 1, "Function: file.managed - Result: Changed": 2,
		"Hello from the master's file server.\n": 1} {
		if got := strings.Count(string(out), line); got != want {
			t.Errorf("%d times %q, want %d:\n%s", got, line, want, out)
		}
	}
}

// TestUnlistedCode checks that the smallest program contains no code that its tags do not select.
func TestUnlistedCode(t *testing.T) {
	symbols := func(tags string) string {
		out, err := exec.CommandContext(t.Context(), "go", "tool", "nm", build(t, ".", ".", tags, true)).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	const ours = " github.com/brine-salt/brine/"
	core, full := symbols(coreTags), symbols("")
	for _, want := range []string{ours + "modules/test.", ours + "modules/sysmod.", ours + "modules/saltutil."} {
		if !strings.Contains(core, want) {
			t.Errorf("no%s in the core", want)
		}
	}
	for _, absent := range []string{ours + "modules/cmdmod.", ours + "modules/execplugin.", ours + "modules/file.", ours + "protocol/transport/ws.",
		ours + "states/render/jinja.", " github.com/spf13/viper.", " net/http.(", " crypto/tls.(", " text/template."} {
		if strings.Contains(core, absent) {
			t.Errorf("%s is in the core", absent)
		}
		if strings.HasPrefix(absent, ours+"modules/") && !strings.Contains(full, absent) {
			t.Errorf("%s is not in the full program; the test looks for the wrong thing", absent)
		}
	}
	list := moduleRooms(core)
	if list != "pyobj returners saltutil sysmod test" { // pyobj has the values of calls; returners is the registry, which is empty
		t.Errorf("modules in the core: %s", list)
	}
}

// moduleRooms returns the packages below modules in the symbols.
func moduleRooms(symbols string) string {
	seen := map[string]bool{}
	var list []string
	for line := range strings.Lines(symbols) {
		_, rest, ok := strings.Cut(line, " github.com/brine-salt/brine/modules/")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(rest, ".")
		name, _, _ = strings.Cut(name, "/")
		if !seen[name] {
			seen[name] = true
			list = append(list, name)
		}
	}
	return strings.Join(slices.Sorted(slices.Values(list)), " ")
}

// TestIdle measures a connected minion that is idle after a job.
func TestIdle(t *testing.T) {
	m, err := master.New(master.Options{Network: master.Loopback(),
		Keys: master.KeyOptions{AutoAccept: true},
		Log:  slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- m.Serve(ctx) }()
	defer func() {
		stop()
		<-served
	}()
	<-m.Ready()
	program := build(t, ".", ".", "", false)
	dir := t.TempDir()
	conf := fmt.Sprintf("id: budget\nroot_dir: %s\nmaster: 127.0.0.1\nmaster_port: %d\n", dir, m.RequestAddr().(*net.TCPAddr).Port)
	if err := os.WriteFile(filepath.Join(dir, "minion"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	first := connect(t, m, program, dir)
	first.end(t)
	p := connect(t, m, program, dir) // now the keys exist
	judge(t, "start to connected", float64(p.took.Milliseconds()), float64(maxStart.Milliseconds()), float64(goalConnected.Milliseconds()), "ms")
	for _, job := range []master.Job{{Fun: "test.ping", Tgt: "*"}, {Fun: "sys.list_functions", Tgt: "*"}} {
		if _, err := m.Run(ctx, job); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(10 * time.Second) // it returns memory to the system some seconds after a job
	// Use the quietest of up to three intervals: on a loaded machine the grains are late, and the minion is not idle
	// before.
	const watch = 30 * time.Second
	fewest := math.Inf(1)
	for window := 0; window < 3 && fewest > maxWakeups; window++ {
		before := p.wakeups(t)
		time.Sleep(watch)
		fewest = min(fewest, float64(p.wakeups(t)-before)*float64(time.Minute/watch))
	}
	judge(t, "idle wake-ups", fewest, maxWakeups, maxWakeups, "a minute")
	const mb = 1 << 20
	rss, anon := p.memory(t)
	judge(t, "idle memory", rss/mb, float64(maxIdle)/mb, float64(goalIdle)/mb, "MB")
	t.Logf("of it not shared with the file: %.2f MB", anon/mb)
	p.end(t)
}

// minionProcess is a running minion.
type minionProcess struct {
	cmd  *exec.Cmd
	took time.Duration
}

// connect starts a minion, with a command before it if through is set, and waits until it has signed in.
func connect(t *testing.T, m *master.Master, program, dir string, through ...string) *minionProcess {
	t.Helper()
	sub := m.Events().Subscribe(events.SubscribeOptions{Prefix: "salt/minion/budget/start"})
	defer sub.Close()
	args := append(slices.Clone(through), program, "minion", "-c", dir, "-l", "warning")
	p := &minionProcess{cmd: exec.Command(args[0], args[1:]...)}
	p.cmd.Stderr = os.Stderr
	begin := time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := sub.Next(ctx); err != nil {
		t.Fatalf("the minion does not connect: %v", err)
	}
	p.took = time.Since(begin)
	return p
}

func (p *minionProcess) end(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Signal(os.Interrupt)
	_ = p.cmd.Wait()
}

// wakeups returns how often the minion's threads have gone to sleep voluntarily, and so were woken up.
func (p *minionProcess) wakeups(t *testing.T) (n int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.cmd.Process.Pid))
	if err != nil || len(files) == 0 {
		t.Fatal("no threads to look at")
	}
	for _, f := range files {
		n += int(field(t, f, "voluntary_ctxt_switches:"))
	}
	return n
}

// memory returns the process's bytes in memory, and how many of them are private.
func (p *minionProcess) memory(t *testing.T) (rss, anon float64) {
	t.Helper()
	file := fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)
	return 1024 * field(t, file, "VmRSS:"), 1024 * field(t, file, "RssAnon:")
}

// field returns a number in a file of /proc.
func field(t *testing.T, file, name string) float64 {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		if words := strings.Fields(sc.Text()); len(words) > 1 && words[0] == name {
			n, err := strconv.ParseFloat(words[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %s in %s", name, file)
	return 0
}
