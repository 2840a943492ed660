//go:build linux

package lab

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guestDirs are the directories in which a guest's changes do not affect the host. /run is empty after each boot;
// /tmp is the host's.
var guestDirs = []string{"/etc", "/var", "/usr", "/srv", "/root", "/opt", "/home"}

// A Guest replaces a virtual machine. It shares the host's kernel and /tmp, and the host's network unless it was
// started with a Port. Its file system is the host's with its own changes on top, its processes are in their own
// namespace, and its host name is its name. A guest from StartMachine has its own file system and boots systemd.
//
// The changes are in memory; they survive Reboot and are lost with Close.
type Guest struct {
	Name string

	lab    *Lab
	holder *Process // keeps the guest's file system alive
	root   string   // where the holder mounts the file system
	bootup []string // the command that boots, in the holder's namespaces
	below  int      // the number of processes between that command and the guest's first
	// booted reports whether the first process, given by its id on the host, is the one with which the boot is
	// complete.
	booted func(pid int) error

	mu   sync.Mutex
	boot *Process // nil while the guest is off
	init int      // the id of the guest's first process on the host
	runs []*Process
}

// StartGuest creates a guest and boots it. The name must be new in this lab, and valid as a file name.
func (l *Lab) StartGuest(ctx context.Context, name string) (*Guest, error) {
	return l.StartGuestAt(ctx, name, nil)
}

// StartGuestAt is like StartGuest, for a guest in the network of a port, or the host's if port is nil.
func (l *Lab) StartGuestAt(ctx context.Context, name string, port *Port) (*Guest, error) {
	const script = "mount -t tmpfs tmpfs /run && mkdir -p /run/lock && : >/run/lab-ready || exit 1\n" +
		"trap '' TERM HUP INT\nwhile :; do sleep 86400 & wait; done"
	g := &Guest{Name: name, lab: l, root: "/", bootup: port.enter("unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "bash",
		"-c", script)}
	g.booted = func(pid int) error {
		_, err := os.Stat(fmt.Sprintf("/proc/%d/root/run/lab-ready", pid))
		return err
	}
	dir := l.path("guests", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "set -e\nmount -t tmpfs -o mode=700 guest %[1]s\nhostname %[2]s\n", dir, name)
	for _, d := range guestDirs {
		fmt.Fprintf(&b, "mkdir -p %[1]s%[2]s/upper %[1]s%[2]s/work\n", dir, d)
		fmt.Fprintf(&b, "mount -t overlay overlay -o lowerdir=%[2]s,upperdir=%[1]s%[2]s/upper,workdir=%[1]s%[2]s/work %[2]s\n", dir, d)
	}
	// Remove the files of Salt and Heat that are installed on the host, so that a guest does not use the host's
	// identity.
	b.WriteString("rm -rf /etc/salt /var/lib/heat-config /var/lib/os-collect-config /var/lib/heat-cfntools /var/cache/heat-cfntools\n" +
		"rm -f /etc/os-collect-config.conf /etc/machine-id\n")
	fmt.Fprintf(&b, "echo %s >/etc/hostname\nmkdir -p %s/ready\nexec sleep infinity\n", name, dir)
	if err := g.hold(ctx, b.String(), dir+"/ready"); err != nil {
		return nil, err
	}
	return g, g.Boot(ctx)
}

// hold starts the process that keeps the guest's file system: a shell script that creates the file ready.
func (g *Guest) hold(ctx context.Context, script, ready string) (err error) {
	g.holder, err = g.lab.service(spec{name: "guest-" + g.Name + "-disk",
		argv: []string{"unshare", "--mount", "--uts", "--propagation", "private", "sh", "-c", script}})
	if err != nil {
		return err
	}
	ready = fmt.Sprintf("/proc/%d/root%s", g.holder.Pid(), ready)
	return await(ctx, "guest "+g.Name, func(context.Context) error { _, err := os.Stat(ready); return err }, g.holder)
}

// Boot starts a guest that is off. Only its first process runs in it.
func (g *Guest) Boot(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.boot != nil {
		return fmt.Errorf("guest %s is on", g.Name)
	}
	p, err := g.lab.service(spec{name: "guest-" + g.Name,
		argv: append([]string{"nsenter", "--target", fmt.Sprint(g.holder.Pid()), "--mount", "--uts"}, g.bootup...)})
	if err != nil {
		return err
	}
	err = await(ctx, "guest "+g.Name, func(context.Context) error {
		pid := p.Pid()
		for range g.below + 1 {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
			if err != nil {
				return err
			}
			if pid, err = strconv.Atoi(strings.TrimSpace(string(b))); err != nil {
				return err
			}
		}
		g.init = pid
		return g.booted(g.init)
	}, p)
	if err != nil {
		p.kill()
		return err
	}
	g.boot = p
	return nil
}

// PowerOff kills every process of the guest at once, like a power failure.
func (g *Guest) PowerOff() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.boot == nil {
		return
	}
	// The first process ends after all others; the process that booted it ends last.
	first, err := unix.PidfdOpen(g.init, 0)
	g.boot.kill()
	if err == nil {
		awaitEnd(first, 10*time.Second)
		unix.Close(first)
	}
	for _, p := range g.runs {
		<-p.done // the kernel ends it together with the guest's first process
	}
	g.boot, g.runs = nil, nil
}

// awaitEnd returns when the process of a pidfd has ended, or after the timeout. A signal, such as the one about a child that ended,
// interrupts poll(2) and doesn't end the wait.
func awaitEnd(pidfd int, timeout time.Duration) {
	end := time.Now().Add(timeout)
	for left := timeout; left > 0; left = time.Until(end) {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// Reboot calls PowerOff and Boot.
func (g *Guest) Reboot(ctx context.Context) error {
	g.PowerOff()
	return g.Boot(ctx)
}

// Close ends the guest and discards its file system.
func (g *Guest) Close() {
	g.PowerOff()
	g.holder.kill()
}

func (g *Guest) enter(argv []string) []string {
	return append([]string{"nsenter", "--target", fmt.Sprint(g.init), "--mount", "--uts", "--pid", "--net", "--"}, argv...)
}

// Run executes a program in the guest and returns its standard output and standard error. An error contains the end
// of the output.
func (g *Guest) Run(ctx context.Context, argv ...string) (string, error) {
	return g.RunInput(ctx, "", argv...)
}

// RunInput is like Run, with a standard input.
func (g *Guest) RunInput(ctx context.Context, stdin string, argv ...string) (string, error) {
	out, err := g.lab.runInput(ctx, stdin, g.enter(append([]string{"env", "HOME=/root"}, argv...))...)
	if err != nil {
		return out, fmt.Errorf("guest %s: %w", g.Name, err)
	}
	return out, nil
}

// Start starts a program in the guest that runs until it ends by itself or the guest is powered off. Its output is in
// log/guest-<guest>-<name>.log of the lab.
func (g *Guest) Start(name string, env []string, argv ...string) (*Process, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.boot == nil {
		return nil, fmt.Errorf("guest %s is off", g.Name)
	}
	p, err := g.lab.service(spec{name: "guest-" + g.Name + "-" + name, env: append([]string{"HOME=/root"}, env...), dir: "/",
		argv: g.enter(argv)})
	if err == nil {
		g.runs = append(g.runs, p)
	}
	return p, err
}

// Path returns the path on the host of a file of the guest. Symbolic links in it are resolved on the host.
func (g *Guest) Path(name string) string {
	if g.init == 0 {
		return fmt.Sprintf("/proc/%d/root%s", g.holder.Pid(), filepath.Join(g.root, name))
	}
	return fmt.Sprintf("/proc/%d/root%s", g.init, name)
}

// ReadFile reads a file of the guest.
func (g *Guest) ReadFile(name string) ([]byte, error) { return os.ReadFile(g.Path(name)) }

// WriteFile writes a file of the guest and creates its directory.
func (g *Guest) WriteFile(name, content string, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(g.Path(name)), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(g.Path(name), []byte(content), mode); err != nil {
		return err
	}
	return os.Chmod(g.Path(name), mode)
}

// WaitFile waits until a file of the guest exists and ok accepts its content. If ok is nil, any content is accepted.
func (g *Guest) WaitFile(ctx context.Context, name string, ok func([]byte) bool) ([]byte, error) {
	for {
		b, err := g.ReadFile(name)
		if err == nil && (ok == nil || ok(b)) {
			return b, nil
		}
		select {
		case <-ctx.Done():
			if err == nil {
				err = fmt.Errorf("it contains %q", tail(b, 1000))
			}
			return nil, fmt.Errorf("file %s of guest %s: %w: %w", name, g.Name, ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// A Proc is a process of a guest.
type Proc struct {
	Pid     int // the id on the host
	Command string
	PSS     int64 // memory in bytes, with a proportional share of shared pages; 0 for a zombie
	Zombie  bool
}

// Processes lists the guest's processes, except its first one and the holder.
func (g *Guest) Processes() ([]Proc, error) {
	ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", g.init))
	if err != nil {
		return nil, err
	}
	names, err := filepath.Glob("/proc/[0-9]*/ns/pid")
	if err != nil {
		return nil, err
	}
	var procs []Proc
	for _, name := range names {
		if n, err := os.Readlink(name); err != nil || n != ns {
			continue
		}
		dir := filepath.Dir(filepath.Dir(name))
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == g.init {
			continue
		}
		cmd, err := os.ReadFile(dir + "/cmdline")
		if err != nil {
			continue // it has ended
		}
		p := Proc{Pid: pid, Command: strings.TrimSpace(strings.ReplaceAll(string(cmd), "\x00", " ")), Zombie: len(cmd) == 0}
		if strings.HasPrefix(p.Command, "sleep 86400") {
			continue // the first process's
		}
		if p.PSS, err = pss(dir); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			return nil, err
		}
		procs = append(procs, p)
	}
	return procs, nil
}

// WaitProcesses waits until ok accepts the processes of the guest.
func (g *Guest) WaitProcesses(ctx context.Context, ok func([]Proc) bool) error {
	for {
		procs, err := g.Processes()
		if err != nil {
			return err
		}
		if ok(procs) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("processes of guest %s: %w: %+v", g.Name, ctx.Err(), procs)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func pss(dir string) (int64, error) {
	b, err := os.ReadFile(dir + "/smaps_rollup")
	if err != nil {
		return 0, err
	}
	sc := bufio.NewScanner(bytes.NewReader(b))
	for sc.Scan() {
		if f := strings.Fields(sc.Text()); len(f) == 3 && f[0] == "Pss:" {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			return kb << 10, err
		}
	}
	return 0, nil
}

// Command returns a command that runs in the guest, for callers that need its pipes.
func (g *Guest) Command(ctx context.Context, argv ...string) *exec.Cmd {
	argv = g.enter(argv)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = g.lab.environ("HOME=/root")
	cmd.WaitDelay = 5 * time.Second
	return cmd
}
