//go:build unix

package runcmd

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/memlimit"
	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/modules"
)

func sh(script string) modules.Command { return modules.Command{Shell: "/bin/sh", Script: script} }

func run(t *testing.T, c modules.Command) modules.CommandResult {
	t.Helper()
	res, err := new(Runner).Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestRun(t *testing.T) {
	mask := 0o27
	with := func(c modules.Command, f func(*modules.Command)) modules.Command { f(&c); return c }
	cases := map[string]struct {
		cmd      modules.Command
		out, err string
		code     int
	}{
		"args are not expanded": {modules.Command{Args: []string{"echo", "$HOME *", "a b"}}, "$HOME * a b\n", "", 0},
		"shell":                 {sh("echo out; echo err >&2; exit 3"), "out\n", "err\n", 3},
		"merged":                {with(sh("echo a; echo b >&2; echo c"), func(c *modules.Command) { c.Merge = true }), "a\nb\nc\n", "", 0},
		"signal":                {sh("kill -9 $$"), "", "", -9},
		"stdin":                 {with(sh("cat"), func(c *modules.Command) { c.Stdin = strings.NewReader("x\x00y") }), "x\x00y", "", 0},
		"unread stdin":          {with(sh("true"), func(c *modules.Command) { c.Stdin = strings.NewReader(strings.Repeat("x", 1<<20)) }), "", "", 0},
		"no stdin":              {sh("cat"), "", "", 0},
		"dir":                   {with(sh("pwd"), func(c *modules.Command) { c.Dir = "/" }), "/\n", "", 0},
		"umask":                 {with(sh("umask"), func(c *modules.Command) { c.Umask = &mask }), "0027\n", "", 0},
		"umask with args": {modules.Command{Args: []string{"sh", "-c", "umask; echo \"$1\"", "x", "a  b"}, Umask: &mask},
			"0027\na  b\n", "", 0},
		"last setting wins": {with(sh("echo $A"), func(c *modules.Command) { c.Env = []string{"A=1", "A=2"} }), "2\n", "", 0},
		"bare name removes": {with(sh("echo ${A-none}"), func(c *modules.Command) { c.Env = []string{"A=1", "A"} }), "none\n", "", 0},
		"clean environment": {with(sh("echo ${HOME-none} $A"), func(c *modules.Command) { c.CleanEnv, c.Env = true, []string{"A=1"} }), "none 1\n", "", 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, c.cmd)
			got.PID = 0
			want := modules.CommandResult{Stdout: []byte(c.out), Stderr: []byte(c.err), ExitCode: c.code}
			if c.cmd.Merge {
				want.Stderr = nil
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSystemdSocketIsNotPassedOn(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "/run/x")
	if got := run(t, sh("echo ${NOTIFY_SOCKET-none}")); string(got.Stdout) != "none\n" {
		t.Errorf("got %q", got.Stdout)
	}
	c := sh("echo ${NOTIFY_SOCKET-none}")
	c.Env = []string{"NOTIFY_SOCKET=mine"}
	if got := run(t, c); string(got.Stdout) != "mine\n" {
		t.Errorf("got %q", got.Stdout)
	}
}

func TestPathIsTheChildsOwn(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "brine-probe"), []byte("#!/bin/sh\necho found\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	got := run(t, modules.Command{Args: []string{"brine-probe"}, Env: []string{"PATH=" + dir + ":/bin:/usr/bin"}})
	if string(got.Stdout) != "found\n" {
		t.Errorf("got %q", got.Stdout)
	}
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	mask := 0
	cases := map[string]struct {
		cmd  modules.Command
		want error
		text string
	}{
		"missing":             {modules.Command{Args: []string{"brine-no-such"}}, syscall.ENOENT, "cannot run brine-no-such: no such file"},
		"missing path":        {modules.Command{Args: []string{dir + "/no"}}, syscall.ENOENT, "cannot run " + dir + "/no: no such file"},
		"missing and umask":   {modules.Command{Args: []string{dir + "/no"}, Umask: &mask}, syscall.ENOENT, "cannot run " + dir + "/no: no such file"},
		"not executable":      {modules.Command{Args: []string{plain}}, syscall.EACCES, "cannot run " + plain + ": permission denied"},
		"empty":               {modules.Command{}, nil, "cannot run a command without a program"},
		"no such directory":   {modules.Command{Args: []string{"true"}, Dir: dir + "/no"}, nil, "is not a directory"},
		"zero byte":           {modules.Command{Args: []string{"echo", "a\x00b"}}, nil, "ValueError: embedded null byte"},
		"no such user":        {modules.Command{Args: []string{"true"}, RunAs: "brine-nobody"}, nil, "User 'brine-nobody' is not available"},
		"user is an option":   {modules.Command{Args: []string{"true"}, RunAs: "--help"}, nil, "User '--help' is not available"},
		"no such group":       {modules.Command{Args: []string{"true"}, Group: "brine-nobody"}, nil, "Group 'brine-nobody' is not available"},
		"numbers are no user": {modules.Command{Args: []string{"true"}, RunAs: "0"}, nil, "User '0' is not available"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := new(Runner).Run(t.Context(), c.cmd)
			if err == nil || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %v, want %q", err, c.text)
			}
			if c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%v is not %v", err, c.want)
			}
			var missing *modules.MissingCommandError
			if got := errors.As(err, &missing); got != (c.want == syscall.ENOENT) {
				t.Errorf("missing command: %v", got)
			}
		})
	}
}

func TestOutputIsLimited(t *testing.T) {
	c := sh("head -c 3000000 /dev/zero; echo end >&2")
	c.Limit = 1 << 20
	got := run(t, c)
	if len(got.Stdout) != 1<<20 || !got.Truncated || string(got.Stderr) != "end\n" || got.ExitCode != 0 {
		t.Errorf("%d bytes, truncated %v, stderr %q, code %d", len(got.Stdout), got.Truncated, got.Stderr, got.ExitCode)
	}
	c.Limit = 3000000
	if got := run(t, c); got.Truncated || !bytes.Equal(got.Stdout, make([]byte, 3000000)) {
		t.Errorf("%d bytes, truncated %v", len(got.Stdout), got.Truncated)
	}
}

func TestAllOutputTogetherIsLimited(t *testing.T) {
	r := &Runner{Total: 100_000}
	for range 3 { // output of finished programs no longer counts
		res, err := r.Sub().Run(t.Context(), sh("head -c 60000 /dev/zero"))
		if err != nil || len(res.Stdout) != 60000 || res.Truncated {
			t.Fatalf("%d bytes, truncated %v, %v", len(res.Stdout), res.Truncated, err)
		}
	}
	res, err := r.Run(t.Context(), sh("head -c 90000 /dev/zero; head -c 90000 /dev/zero >&2"))
	if n := len(res.Stdout) + len(res.Stderr); err != nil || n > 100_000 || n < 80_000 || !res.Truncated {
		t.Errorf("%d bytes, truncated %v, %v", n, res.Truncated, err)
	}
	if held := r.shared.held.Load(); held != 0 {
		t.Errorf("%d bytes are held", held)
	}
}

// alive reports whether a process runs and is not a zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	return !bytes.Contains(stat, []byte(") Z "))
}

func waitGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); alive(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %d lives on", pid)
		}
	}
}

func needLinux(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are looked up in /proc")
	}
}

func readPids(t *testing.T, dir string, names ...string) []int {
	t.Helper()
	var pids []int
	for _, n := range names {
		var text []byte
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			text, _ = os.ReadFile(filepath.Join(dir, n))
			if bytes.HasSuffix(text, []byte("\n")) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s was not written", n)
			}
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// family starts a child, a grandchild and a child in its own session. Each writes its pid to a file.
const family = `sh -c 'echo $$ > child; sleep 60 & echo $! > grandchild; wait' & setsid sh -c 'echo $$ > apart; trap "" TERM; sleep 60' & ` +
	`echo started; wait`

func TestTimeoutKillsTheTree(t *testing.T) {
	needLinux(t)
	dir := t.TempDir()
	c := sh(family)
	c.Dir, c.Timeout = dir, 2*time.Second
	begin := time.Now()
	got := run(t, c)
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
	if !got.TimedOut || got.ExitCode != -9 || string(got.Stdout) != "started\n" {
		t.Errorf("got %+v", got)
	}
	for _, pid := range readPids(t, dir, "child", "grandchild", "apart") {
		waitGone(t, pid)
	}
}

func TestContextKillsTheTree(t *testing.T) {
	needLinux(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	c := sh(family)
	c.Dir = dir
	errs := make(chan error, 1)
	go func() {
		_, err := new(Runner).Run(ctx, c)
		errs <- err
	}()
	pids := readPids(t, dir, "child", "grandchild", "apart")
	cancel()
	select {
	case err := <-errs:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("Run did not return")
	}
	for _, pid := range pids {
		waitGone(t, pid)
	}
}

func TestSignalReachesTheTree(t *testing.T) {
	needLinux(t)
	dir := t.TempDir()
	root := &Runner{}
	r, other := root.Sub(), root.Sub()
	c := sh(family)
	c.Dir = dir
	results := make(chan modules.CommandResult, 1)
	go func() {
		res, _ := r.Run(context.Background(), c)
		results <- res
	}()
	pids := readPids(t, dir, "child", "grandchild", "apart")
	if n := other.Signal(int(syscall.SIGKILL)); n != 0 {
		t.Errorf("another job's runner signalled %d", n)
	}
	if n := r.Signal(0); n != 1 { // Signal waits for a program that is starting; PIDs does not
		t.Errorf("signalled %d", n)
	}
	if len(r.PIDs()) != 1 {
		t.Errorf("pids %v", r.PIDs())
	}
	if n := r.Signal(int(syscall.SIGKILL)); n != 1 {
		t.Errorf("signalled %d", n)
	}
	if res := <-results; res.ExitCode != -9 || res.TimedOut {
		t.Errorf("got %+v", res)
	}
	for _, pid := range pids {
		waitGone(t, pid)
	}
	if len(r.PIDs()) != 0 {
		t.Errorf("pids %v", r.PIDs())
	}
}

// TestDetachedGrandchildDoesNotHoldUpTheReturn: a daemon that keeps the pipes open must not delay the return, and
// must not die when it writes to them.
func TestDetachedGrandchildDoesNotHoldUpTheReturn(t *testing.T) {
	needLinux(t)
	dir := t.TempDir()
	r := &Runner{}
	c := sh(`(trap "" HUP; sh -c 'echo $$ > pid; while [ ! -e stop ]; do echo tick || exit; sleep 0.05; done; echo survived > end') & echo done`)
	c.Dir = dir
	begin := time.Now()
	res, err := r.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	if !strings.HasPrefix(string(res.Stdout), "done\n") && !strings.HasPrefix(string(res.Stdout), "tick\n") {
		t.Errorf("got %q", res.Stdout)
	}
	time.Sleep(200 * time.Millisecond) // the daemon continues to write meanwhile
	if err := os.WriteFile(filepath.Join(dir, "stop"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	waitGone(t, readPids(t, dir, "pid")[0])
	if text, _ := os.ReadFile(filepath.Join(dir, "end")); string(text) != "survived\n" {
		t.Errorf("the daemon ended with %q", text)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestDetach(t *testing.T) {
	needLinux(t)
	dir := t.TempDir()
	r := &Runner{}
	c := sh("echo $$ > pid; exec sleep 60")
	c.Dir, c.Detach = dir, true
	res, err := r.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	pid := readPids(t, dir, "pid")[0]
	if res.PID != pid || !alive(pid) {
		t.Errorf("pid %d, result %+v", pid, res)
	}
	r.Signal(int(syscall.SIGTERM))
	waitGone(t, pid)
}

func TestAtMostMaxAtOnce(t *testing.T) {
	r := &Runner{Max: 1}
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := r.Run(ctx, sh("sleep 60"))
		first <- err
	}()
	for len(r.PIDs()) == 0 {
		time.Sleep(time.Millisecond)
	}
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := r.Sub().Run(short, sh("true")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second program: %v", err)
	}
	cancel()
	<-first
	if _, err := r.Run(t.Context(), sh("true")); err != nil {
		t.Error(err)
	}
}

func TestRunAs(t *testing.T) {
	prereq.Root(t)
	if _, err := exec.LookPath("id"); err != nil {
		prereq.Missing(t, "the program id")
	}
	c := sh("id -un; id -Gn; echo $HOME $USER $LOGNAME; pwd")
	c.RunAs = "nobody"
	want, err := exec.Command("id", "-Gn", "nobody").Output()
	if err != nil {
		prereq.Missing(t, "the user nobody")
	}
	home := strings.Split(getent(t.Context(), "passwd", "nobody"), ":")[5]
	dir := home
	if _, err := os.Stat(home); err != nil {
		dir = "/"
	}
	got := run(t, c)
	if w := "nobody\n" + string(want) + home + " nobody nobody\n" + dir + "\n"; string(got.Stdout) != w {
		t.Errorf("got %q, want %q; %s", got.Stdout, w, got.Stderr)
	}
	c = sh("id -gn")
	c.Group = "daemon"
	if got := run(t, c); string(got.Stdout) != "daemon\n" {
		t.Errorf("group: %q", got.Stdout)
	}
}

func TestNothingIsLeft(t *testing.T) {
	r := &Runner{}
	if _, err := r.Run(t.Context(), sh("true")); err != nil { // starts helper threads of the Go runtime
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	for range 50 {
		if _, err := r.Run(t.Context(), sh("echo x; echo y >&2")); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, before %d", runtime.NumGoroutine(), before)
		}
	}
}

// lines passes on every line that is written to it.
type lines struct {
	rest []byte
	c    chan string
}

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		l.rest = rest
		l.c <- string(line)
	}
}

func TestOutputAsItComes(t *testing.T) {
	out, errs := &lines{c: make(chan string)}, &lines{c: make(chan string)}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	done := make(chan modules.CommandResult, 1)
	c := sh("echo one; read x; echo \"$x\" >&2; exit 3")
	c.Stdin, c.Stdout, c.Stderr = r, out, errs
	go func() {
		res, _ := new(Runner).Run(t.Context(), c)
		done <- res
	}()
	if got := <-out.c; got != "one" {
		t.Fatalf("got %q", got)
	}
	if _, err := w.WriteString("two\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-errs.c; got != "two" {
		t.Fatalf("got %q", got)
	}
	if res := <-done; res.ExitCode != 3 || len(res.Stdout)+len(res.Stderr) != 0 {
		t.Fatalf("got %+v", res)
	}
}

func TestGrace(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		grace  time.Duration
		code   int
	}{
		"ends by itself": {"trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.05; done", time.Minute, 4},
		"is killed":      {"trap '' TERM; echo ready; while :; do sleep 0.05; done", 50 * time.Millisecond, -9},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := &lines{c: make(chan string, 10)}
			go func() {
				<-out.c
				cancel()
			}()
			cmd := sh(c.script)
			cmd.Grace, cmd.Stdout = c.grace, out
			res, err := new(Runner).Run(ctx, cmd)
			if res.ExitCode != c.code || !errors.Is(err, context.Canceled) {
				t.Fatalf("got %+v, %v", res, err)
			}
		})
	}
}

// TestProgramJustWritten: the start is retried while another process has the program open for writing.
func TestProgramJustWritten(t *testing.T) {
	needLinux(t)
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { f.Close() })
	res, err := (&Runner{}).Run(t.Context(), modules.Command{Args: []string{path}})
	if err != nil || string(res.Stdout) != "done\n" {
		t.Errorf("%q %v", res.Stdout, err)
	}
}

func TestPlaces(t *testing.T) {
	for _, c := range []struct{ wanted, descriptors, want int }{
		{200, 1 << 20, 200}, {200, 1024, 125}, {200, 64, 5}, {200, 24, 1}, {200, 0, 1}, {1, 64, 1},
	} {
		if got := places(c.wanted, c.descriptors); got != c.want {
			t.Errorf("%d of %d descriptors: %d, want %d", c.wanted, c.descriptors, got, c.want)
		}
	}
}

// TestOutputIsAShareOfMemory: the limit for stored output depends on the process's memory limit.
func TestOutputIsAShareOfMemory(t *testing.T) {
	was := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(was)
	for limit, want := range map[int64]int64{math.MaxInt64: DefaultLimit, 160 << 20: 10 << 20, 4 << 20: MinLimit} {
		debug.SetMemoryLimit(limit)
		if got := share(DefaultLimit, 16); got != want {
			t.Errorf("of %d: %d, want %d", limit, got, want)
		}
	}
}

// TestOutputOfAQuietDaemon: an idle daemon lowers Go's memory limit to collect garbage; the limit for output must
// still depend on the configured limit.
func TestOutputOfAQuietDaemon(t *testing.T) {
	was := debug.SetMemoryLimit(4 << 20)
	defer debug.SetMemoryLimit(was)
	memlimit.Keep(160 << 20)
	defer memlimit.Keep(0)
	if got := share(DefaultLimit, 16); got != 10<<20 {
		t.Errorf("the share is %d", got)
	}
}
