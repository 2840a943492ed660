package fs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// host is a host with file systems at / and /srv/data.
type host struct {
	env  *modules.Env
	reg  *modules.Registry
	fail map[string]string // output of programs that fail
	runs []string
	then func(line string) // called for each program

	mounted map[string]any // what mount.active returns
	timer   modules.Command
	volume  string // the text of a mark
}

func newHost(t *testing.T) *host {
	h := &host{env: modulestest.Env(t), fail: map[string]string{}, volume: "/srv/data",
		mounted: map[string]any{"/": map[string]any{"device": "/dev/vda1"}, "/srv/data": map[string]any{"device": "/dev/vdb"},
			"/mnt": map[string]any{"device": "/dev/vdb"}}}
	t.Setenv("PATH", "/usr/sbin")
	for _, name := range []string{program, locker} {
		file := h.env.Path("/usr/sbin/" + name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	h.env.Runner = modulestest.Runner(func(_ context.Context, c modules.Command) (modules.CommandResult, error) {
		line := strings.ReplaceAll(strings.Join(append(c.Args, c.Script), " "), h.env.Root, "ROOT")
		if c.Detach {
			h.timer = c
			line = "timer: " + line
			for _, v := range c.Env {
				name, mark, _ := strings.Cut(v, "=")
				if b, err := os.ReadFile(mark); name == "FS_MARK" && (err != nil || string(b) != h.volume) {
					t.Errorf("the timer begins with the mark %q, %v", b, err)
				}
			}
		}
		h.runs = append(h.runs, strings.TrimSpace(line))
		if h.then != nil {
			h.then(line)
		}
		if text, ok := h.fail[line[:strings.IndexByte(line+" ", ' ')]]; ok {
			return modules.CommandResult{ExitCode: 1, Stderr: []byte(text + "\n")}, nil
		}
		return modules.CommandResult{}, nil
	})
	h.reg = modules.NewRegistry(Module, &modules.Module{Name: "mount", Funcs: []modules.Def{
		{Name: "active", Run: func(context.Context, *modules.Call) (any, error) {
			return h.mounted, nil
		}},
	}})
	return h
}

func (h *host) call(t *testing.T, fun string, args ...any) (any, error) {
	h.runs = nil
	r := h.reg.Run(t.Context(), h.env, modules.Request{Fun: "fs." + fun, Args: args})
	return r.Return, r.Err
}

func (h *host) marks(t *testing.T) int {
	t.Helper()
	list, err := filepath.Glob(h.env.Path(marks) + "/frozen-*")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestFreeze: the timer begins before the file system is frozen, and a mark lasts until the file system is thawed.
func TestFreeze(t *testing.T) {
	h := newHost(t)
	if v, err := h.call(t, "freeze", "/srv/data/", int64(60)); v != true || err != nil {
		t.Fatal(v, err)
	}
	want := []string{`timer: sleep 60; mv "$FS_MARK" "$FS_MARK-ended" && ` +
		`flock "$FS_LOCK" sh -c 'rm "$FS_MARK-ended" && fsfreeze --unfreeze "$FS_VOLUME"'`,
		"sync -f ROOT/srv/data", "fsfreeze --freeze ROOT/srv/data"}
	if d := cmp.Diff(want, h.runs); d != "" {
		t.Error(d)
	}
	if n := h.marks(t); n != 1 {
		t.Errorf("%d marks of a frozen file system", n)
	}

	// A second freeze fails and leaves the mark of the first one, whose timer then thaws the file system.
	h.fail[program] = "fsfreeze: /srv/data: freeze failed: Device or resource busy"
	if _, err := h.call(t, "freeze", "/srv/data"); err == nil ||
		err.Error() != "cannot freeze /srv/data: fsfreeze failed with 1: "+h.fail[program] {
		t.Errorf("a second freeze: %v", err)
	}
	if n := h.marks(t); n != 1 {
		t.Errorf("%d marks after a second freeze", n)
	}
	if _, err := h.call(t, "thaw", "/srv/data"); err == nil || h.marks(t) != 1 {
		t.Errorf("a thaw that fails: %v", err)
	}
	clear(h.fail)
	if v, err := h.call(t, "thaw", "/srv/data"); v != true || err != nil || h.marks(t) != 0 {
		t.Errorf("thaw: %v %v, and %d marks", v, err, h.marks(t))
	}
	if d := cmp.Diff([]string{"fsfreeze --unfreeze ROOT/srv/data"}, h.runs); d != "" {
		t.Error(d)
	}

	h.fail["sync"] = "no"
	if _, err := h.call(t, "freeze", "/srv/data"); err == nil || h.marks(t) != 0 {
		t.Errorf("without sync: %v, and %d marks", err, h.marks(t))
	}
}

// TestLateFreeze: a file system that freezes after its timer has ended is thawed at once.
func TestLateFreeze(t *testing.T) {
	h := newHost(t)
	h.then = func(line string) {
		if strings.HasPrefix(line, "sync ") {
			list, err := filepath.Glob(h.env.Path(marks) + "/frozen-*")
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			if err := os.Rename(list[0], list[0]+ended); err != nil { // as the timer does
				t.Fatal(err)
			}
		}
	}
	_, err := h.call(t, "freeze", "/srv/data", int64(2))
	if err == nil || err.Error() != "cannot freeze /srv/data within 2 seconds" {
		t.Errorf("error %v", err)
	}
	if d := cmp.Diff([]string{"fsfreeze --freeze ROOT/srv/data", "fsfreeze --unfreeze ROOT/srv/data"}, h.runs[2:]); d != "" {
		t.Error(d)
	}
	if n := h.marks(t); n != 0 {
		t.Errorf("%d marks are left", n)
	}
}

// TestOlderMark: the timer of a freeze that another program ended does not end the next freeze.
func TestOlderMark(t *testing.T) {
	h := newHost(t)
	for range 2 {
		if v, err := h.call(t, "freeze", "/srv/data"); v != true || err != nil || h.marks(t) != 1 {
			t.Errorf("%v, %v, %d marks", v, err, h.marks(t))
		}
	}
}

// TestRefused: nothing runs for a file system that must not be frozen.
func TestRefused(t *testing.T) {
	h := newHost(t)
	for _, dir := range []string{"/srv/data/cache", "/var"} {
		if err := os.MkdirAll(h.env.Path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(h.env.Path("/srv/data/cache"), h.env.Path("/var/cache")); err != nil {
		t.Fatal(err)
	}
	h.env.Opts()["log_file"] = "/srv/data/log"
	if _, err := h.call(t, "freeze", "/srv/data"); err == nil || err.Error() != "cannot freeze /srv/data: the minion writes to /srv/data/log" {
		t.Errorf("a log file on the volume: %v", err)
	}
	delete(h.env.Opts(), "log_file")
	for _, c := range []struct {
		cache string
		args  []any
		want  string
	}{
		{"", []any{"/srv"}, "cannot freeze /srv: no volume is mounted there"},
		{"", []any{"data"}, "mount_point must be an absolute path, not 'data'"},
		{"", []any{"/"}, "cannot freeze /: the minion writes to /run/salt-fs"},
		{"/srv/data/cache", []any{"/srv/data"}, "cannot freeze /srv/data: the minion writes to /srv/data/cache"},
		{"/var/cache/minion", []any{"/srv/data"}, "cannot freeze /srv/data: the minion writes to /var/cache/minion"},
		{"/mnt/cache", []any{"/srv/data"}, "cannot freeze /srv/data: the minion writes to /mnt/cache"},
		{"", []any{"/srv/data", int64(0)}, "timeout must be 1 to 86400 seconds, not 0"},
		{"", []any{"/srv/data", int64(86401)}, "timeout must be 1 to 86400 seconds, not 86401"},
	} {
		h.env.Opts()["cachedir"] = c.cache
		if _, err := h.call(t, "freeze", c.args...); err == nil || err.Error() != c.want || len(h.runs) > 0 {
			t.Errorf("%v: %v, not %s; %v ran", c.args, err, c.want, h.runs)
		}
	}
	if err := os.Remove(h.env.Path("/usr/sbin/" + program)); err != nil {
		t.Fatal(err)
	}
	if ok, why := available(h.env); ok || why != "fsfreeze is not installed" {
		t.Errorf("without the program: %v %q", ok, why)
	}
}

// mountinfo gives the host devices with numbers.
func (h *host) mountinfo(t *testing.T, text string) {
	t.Helper()
	file := h.env.Path("/proc/self/mountinfo")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestOneDevice: a file system with several names is one. A mount table may have two names for its device.
func TestOneDevice(t *testing.T) {
	h := newHost(t)
	h.mounted = map[string]any{"/": map[string]any{"device": "/dev/vda1"}, "/srv/data": map[string]any{"device": "/dev/vdb"},
		"/mnt": map[string]any{"device": "/dev/disk/by-id/data"}, "/a b": map[string]any{"device": "/dev/vdc"}}
	h.mountinfo(t, "20 1 254:1 / / rw - ext4 /dev/vda1 rw\n21 20 254:16 / /srv/data rw - ext4 /dev/vdb rw\n"+
		"22 20 254:16 / /mnt rw - ext4 /dev/disk/by-id/data rw\n23 20 254:32 / /a\\040b rw - ext4 /dev/vdc rw\n")
	h.env.Opts()["cachedir"] = "/mnt/cache"
	const want = "cannot freeze /srv/data: the minion writes to /mnt/cache"
	if _, err := h.call(t, "freeze", "/srv/data"); err == nil || err.Error() != want || len(h.runs) > 0 {
		t.Errorf("%v, not %s; %v ran", err, want, h.runs)
	}
	h.env.Opts()["cachedir"] = ""
	h.volume = "254:16"
	if v, err := h.call(t, "freeze", "/srv/data"); v != true || err != nil || h.marks(t) != 1 {
		t.Fatalf("freeze: %v, %v, %d marks", v, err, h.marks(t))
	}
	h.volume = "254:32"
	if v, err := h.call(t, "freeze", "/a b"); v != true || err != nil || h.marks(t) != 2 {
		t.Fatalf("freeze another one: %v, %v, %d marks", v, err, h.marks(t))
	}
	if v, err := h.call(t, "thaw", "/mnt"); v != true || err != nil || h.marks(t) != 1 {
		t.Errorf("thaw by another name: %v, %v, %d marks", v, err, h.marks(t))
	}
}

// TestAtOnce: a freeze waits until a thaw of the same file system has removed the marks, and keeps its own.
func TestAtOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has fsfreeze")
	}
	h := newHost(t)
	if _, err := h.call(t, "freeze", "/srv/data"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	h.then = func(line string) {
		if !strings.HasPrefix(line, "fsfreeze --unfreeze") {
			return
		}
		h.then = nil
		stop()
		r := h.reg.Run(ctx, h.env, modules.Request{Fun: "fs.freeze", Args: []any{"/srv/data"}})
		if r.Err == nil || !strings.HasSuffix(r.Err.Error(), "/run/salt-fs/lock--srv-data: context canceled") {
			t.Errorf("a freeze within a thaw: %v, %v", r.Return, r.Err)
		}
		if n := h.marks(t); n != 1 {
			t.Errorf("%d marks before the thaw has ended", n)
		}
	}
	if v, err := h.call(t, "thaw", "/srv/data"); v != true || err != nil || h.marks(t) != 0 {
		t.Errorf("thaw: %v, %v, %d marks", v, err, h.marks(t))
	}
	if v, err := h.call(t, "freeze", "/srv/data"); v != true || err != nil || h.marks(t) != 1 {
		t.Errorf("a freeze after a thaw: %v, %v, %d marks", v, err, h.marks(t))
	}
}

// TestTimer runs the timer's program: it thaws, unless the file system is thawed, or is being thawed.
func TestTimer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has fsfreeze")
	}
	waiter, err := exec.LookPath(locker)
	if err != nil {
		prereq.Missing(t, locker)
	}
	h := newHost(t)
	programs, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	// The locker says to a reader of its descriptor 3 that the timer waits for the lock.
	for name, text := range map[string]string{"sleep": "", program: `echo "$1" >>` + log,
		locker: `echo waits 2>/dev/null >&3; exec ` + waiter + ` "$@"`} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	timer := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", h.timer.Script)
		cmd.Env = append(h.timer.Env, "PATH="+programs+":/usr/sbin:/usr/bin:/sbin:/bin")
		return cmd
	}
	ran := func(want string, marks int) {
		t.Helper()
		if b, _ := os.ReadFile(log); string(b) != want || h.marks(t) != marks {
			t.Errorf("%q ran, not %q; %d marks, not %d", b, want, h.marks(t), marks)
		}
		_ = os.Remove(log)
	}
	freeze := func() {
		t.Helper()
		if v, err := h.call(t, "freeze", "/srv/data"); v != true || err != nil {
			t.Fatal(v, err)
		}
	}
	freeze()
	if out, err := timer().CombinedOutput(); err != nil {
		t.Errorf("the timer: %v: %s", err, out)
	}
	ran("--unfreeze\n", 0)

	freeze()
	if _, err := h.call(t, "thaw", "/srv/data"); err != nil {
		t.Fatal(err)
	}
	if err := timer().Run(); err == nil {
		t.Error("a timer after a thaw succeeds")
	}
	ran("", 0)

	// The time is over while the file system is thawed, and the next freeze has begun before the timer goes on.
	freeze()
	late := timer()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	late.ExtraFiles = []*os.File{w}
	h.then = func(line string) {
		if !strings.HasPrefix(line, "fsfreeze --unfreeze") {
			return
		}
		h.then = nil
		err := errors.Join(late.Start(), w.Close(), r.SetReadDeadline(time.Now().Add(time.Minute)))
		if err == nil {
			_, err = r.Read(make([]byte, 1)) // fails if the timer ends without it
		}
		if err != nil {
			t.Errorf("a timer during a thaw does not wait for the lock: %v", err)
		}
	}
	if _, err := h.call(t, "thaw", "/srv/data"); err != nil {
		t.Fatal(err)
	}
	freeze()
	if err := late.Wait(); err == nil {
		t.Error("a timer during a thaw succeeds")
	}
	ran("", 1)
}
