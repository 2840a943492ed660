package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// childOf is the environment variable that makes the test program run an order.
const childOf = "BRINE_CONFINE_TEST"

func TestMain(m *testing.M) {
	if text := os.Getenv(childOf); text != "" {
		os.Exit(confinedChild(text))
	}
	os.Exit(m.Run())
}

// order tells the child what to do: apply the rules, if any, then try everything below a directory.
type order struct {
	Rules *Rules
	Dir   string
}

// confinedChild prints the outcome of each attempt as JSON.
func confinedChild(text string) int {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Threads that exist before the rules must be restricted, too.
	var threads [8]chan func()
	for i := range threads {
		threads[i] = make(chan func())
		go func() {
			for f := range threads[i] {
				f()
			}
		}()
	}
	if o.Rules != nil {
		if _, err := Apply(*o.Rules); err != nil {
			fmt.Fprintln(os.Stderr, err)
			if errors.Is(err, ErrUnsupported) {
				return 3
			}
			return 1
		}
	}
	out := map[string]string{}
	for i, a := range attempts(o.Dir) {
		done := make(chan error)
		threads[i%len(threads)] <- func() { done <- a.try() }
		out[a.name] = outcome(<-done)
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		return 1
	}
	return 0
}

// outcome returns "ok" or the operating system's error.
func outcome(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

type attempt struct {
	name string
	try  func() error
}

func call(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

func attempts(dir string) []attempt {
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string) func() error {
		return func() error { return os.WriteFile(at(name), []byte("x"), 0o600) }
	}
	read := func(name string) func() error {
		return func() error { _, err := os.ReadFile(at(name)); return err }
	}
	shell := func(script string) func() error {
		return func() error {
			out, err := exec.Command("/bin/sh", "-c", script).CombinedOutput()
			if err != nil {
				var exit *exec.ExitError
				if errors.As(err, &exit) {
					return fmt.Errorf("the shell failed: %s", strings.TrimSpace(string(out)[strings.LastIndex(strings.TrimSpace(string(out)), ":")+1:]))
				}
			}
			return err
		}
	}
	socket := func(family, kind int) func() error {
		return func() error {
			fd, err := unix.Socket(family, kind, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}
	}
	return []attempt{
		{"read in a tree to read", read("read/file")},
		{"read in a tree to write", read("write/file")},
		{"read elsewhere", read("other/file")},
		{"list elsewhere", func() error { _, err := os.ReadDir(at("other")); return err }},
		{"write in a tree to write", write("write/file")},
		{"write in a tree to read", write("read/file")},
		{"write elsewhere", write("other/file")},
		{"make a file elsewhere", write("other/new")},
		{"truncate elsewhere", func() error { return os.Truncate(at("other/file"), 0) }},
		{"remove elsewhere", func() error { return os.Remove(at("other/file")) }},
		{"make a directory elsewhere", func() error { return os.Mkdir(at("other/dir"), 0o700) }},
		{"write through a link", write("write/link")},
		{"link a file of elsewhere", func() error { return os.Link(at("other/file"), at("write/hard")) }},
		{"rename out of the tree", func() error { return os.Rename(at("write/moved"), at("other/moved")) }},
		{"rename into the tree", func() error { return os.Rename(at("other/file"), at("write/took")) }},
		{"make a device", func() error { return unix.Mknod(at("write/device"), unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0))) }},
		{"make a pipe", func() error { return unix.Mkfifo(at("write/pipe"), 0o600) }},
		{"write by the process's root", func() error { return os.WriteFile("/proc/self/root"+at("other/file"), []byte("x"), 0o600) }},
		{"write a kernel setting", func() error {
			f, err := os.OpenFile("/proc/sys/kernel/core_pattern", os.O_WRONLY, 0)
			if err == nil {
				f.Close()
			}
			return err
		}},
		{"start a program", func() error { return exec.Command("/bin/true").Run() }},
		{"start another program", func() error { return exec.Command("/usr/bin/id").Run() }},
		{"start a program in memory", func() error {
			fd, err := unix.MemfdCreate("program", 0)
			if err != nil {
				return err
			}
			f := os.NewFile(uintptr(fd), "program")
			defer f.Close()
			text, err := os.ReadFile("/bin/true")
			if err == nil {
				_, err = f.Write(text)
			}
			if err != nil {
				return err
			}
			return exec.Command(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)).Run()
		}},
		{"start a written program", func() error { return exec.Command(at("write/program")).Run() }},
		{"a shell writes in the tree", shell("echo x > " + at("write/shell"))},
		{"a shell writes elsewhere", shell("echo x > " + at("other/shell"))},
		{"a shell reads elsewhere", shell("read x < " + at("other/file"))},
		{"mount", func() error { return unix.Mount("none", at("nowhere"), "tmpfs", 0, "") }},
		{"unshare", func() error { return call(unix.SYS_UNSHARE, unix.CLONE_NEWUTS) }},
		{"new namespace of a program", func() error {
			c := exec.Command("/bin/true")
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
			return c.Run()
		}},
		{"chroot", func() error { return unix.Chroot("/") }},
		{"trace", func() error { return call(unix.SYS_PTRACE, 99, uintptr(os.Getpid())) }},
		{"set the clock", func() error { return call(unix.SYS_CLOCK_ADJTIME, 0, 0) }},
		{"load a module of the kernel", func() error { return call(unix.SYS_INIT_MODULE, 0, 0, 0) }},
		{"bpf", func() error { return call(unix.SYS_BPF, 0xffff, 0, 0) }},
		{"io_uring", func() error { return call(unix.SYS_IO_URING_SETUP, 0, 0) }},
		{"open by handle", func() error { return call(unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(99), 0, 0) }},
		{"socket: internet", socket(unix.AF_INET, unix.SOCK_STREAM)},
		{"socket: local", socket(unix.AF_UNIX, unix.SOCK_STREAM)},
		{"socket: packets", socket(unix.AF_PACKET, unix.SOCK_RAW)},
		{"interfaces", func() error { _, err := net.Interfaces(); return err }},
		{"privileges", func() error {
			n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
			if err == nil && n == 1 {
				return errors.New("given up")
			}
			return err
		}},
	}
}

func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"read/file", "write/file", "write/moved", "write/program", "other/file"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\ntrue\n"), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../other/file", filepath.Join(dir, "write/link")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// child runs the attempts in a separate process.
func child(t *testing.T, o order) map[string]string {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childOf+"="+string(text))
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() == 3 {
		t.Skip(errs.String()) // the race detector's programs are built with cgo
	}
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	var got map[string]string
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// TestApply tries, in a confined process, from several threads and from a shell, what the rules permit and forbid.
// The same process without rules can do everything.
func TestApply(t *testing.T) {
	system := []string{"/usr", "/lib", "/lib64", "/bin", "/proc"}
	rules := func(dir string) *Rules {
		return &Rules{Read: append(slices.Clone(system), filepath.Join(dir, "read"), filepath.Join(dir, "none")), Write: []string{filepath.Join(dir, "write")},
			Execute: []string{"/bin/sh", "/bin/true"}, Devices: []string{"/dev/null"}, NoLocalSockets: true}
	}
	want := map[string]string{
		"read in a tree to read": "ok", "read in a tree to write": "ok", "read elsewhere": "EACCES", "list elsewhere": "EACCES",
		"write in a tree to write": "ok", "write in a tree to read": "EACCES", "write elsewhere": "EACCES", "make a file elsewhere": "EACCES",
		"truncate elsewhere": "EACCES", "remove elsewhere": "EACCES", "make a directory elsewhere": "EACCES", "write through a link": "EACCES",
		"link a file of elsewhere": "EXDEV", "rename out of the tree": "EACCES", "rename into the tree": "EACCES",
		"make a device": "EACCES", "make a pipe": "ok", "write by the process's root": "EACCES", "write a kernel setting": "EACCES",
		"start a program": "ok", "start another program": "EACCES", "start a written program": "EACCES",
		"start a program in memory":  "EPERM",
		"a shell writes in the tree": "ok", "a shell writes elsewhere": "the shell failed: Permission denied", "a shell reads elsewhere": "the shell failed: Permission denied",
		"mount": "EPERM", "unshare": "EPERM", "new namespace of a program": "EPERM", "chroot": "EPERM", "trace": "EPERM",
		"set the clock": "EPERM", "load a module of the kernel": "EPERM", "bpf": "EPERM", "io_uring": "EPERM", "open by handle": "EPERM",
		"socket: internet": "ok", "socket: local": "EACCES", "socket: packets": "EACCES", "interfaces": "ok", "privileges": "given up",
	}
	dir := tree(t)
	got := child(t, order{Rules: rules(dir), Dir: dir})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("confined (-want +got):\n%s", diff)
	}
	dir = tree(t)
	r := rules(dir)
	r.Execute, r.NoLocalSockets = nil, false
	got = child(t, order{Rules: r, Dir: dir})
	for _, name := range []string{"start a program", "start another program", "a shell writes in the tree"} {
		if got[name] != "EACCES" {
			t.Errorf("without programs: %s: %s", name, got[name])
		}
	}
	if got["socket: local"] != "ok" {
		t.Errorf("local sockets: %s", got["socket: local"])
	}
	free := child(t, order{Dir: tree(t)})
	if os.Geteuid() != 0 {
		return
	}
	for _, name := range []string{"read elsewhere", "write elsewhere", "truncate elsewhere", "write through a link", "rename out of the tree",
		"write by the process's root", "start another program", "start a written program",
		"start a program in memory", "a shell writes elsewhere", "unshare", "socket: local"} {
		if free[name] != "ok" {
			t.Errorf("without rules it cannot either, so that the test shows nothing: %s: %s", name, free[name])
		}
	}
}

// TestMissing: paths that do not exist are reported, and leave no descriptor open.
func TestMissing(t *testing.T) {
	var report Report
	set, err := ruleset(Rules{Read: []string{"/nothing/here", t.TempDir()}}, minABI, &report)
	if err != nil {
		t.Skip(err)
	}
	unix.Close(set)
	if diff := cmp.Diff([]string{"/nothing/here"}, report.Missing); diff != "" {
		t.Error(diff)
	}
}
