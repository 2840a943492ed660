//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mark is the environment variable that every process of a lab has. Its value is the lab's directory. The name does
// not begin with BRINE_, because such variables are not passed to the masters that the engines start.
const Mark = "OPENSTACK_LAB_DIR"

// A Process is one service of a lab. Its output is written to Log.
type Process struct {
	Name string
	Log  string

	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done is closed
}

// Pid returns the id of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal to the process only, not to its group.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// CPU returns the processor time of the process, also after its end.
func (p *Process) CPU() (time.Duration, error) {
	select {
	case <-p.done:
		s := p.cmd.ProcessState
		return s.UserTime() + s.SystemTime(), nil
	default:
		return CPU(p.Pid())
	}
}

// CPU returns the processor time of a running process, including its children that have ended.
func CPU(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	const utime, cutime, tick = 11, 14, time.Second / 100 // counted from the state, which follows the name in parentheses
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < cutime+1 {
		return 0, fmt.Errorf("unexpected content of /proc/%d/stat: %q", pid, b)
	}
	var sum time.Duration
	for _, f := range fields[utime : cutime+1] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("unexpected content of /proc/%d/stat: %w", pid, err)
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

// kill kills the process and its group, and waits for the process.
func (p *Process) kill() {
	if p == nil {
		return
	}
	syscall.Kill(-p.Pid(), syscall.SIGKILL)
	<-p.done
}

// spec describes a process to start.
type spec struct {
	name string
	argv []string
	env  []string // added to the lab's environment
	dir  string
	// ownPIDs makes the process the first of a process namespace: its descendants cannot outlive it.
	ownPIDs bool
}

// starter starts processes from one operating system thread that lives as long as the lab. The kernel sends the
// parent-death signal when the thread that started a process ends, so with other threads services would end at
// random.
type starter struct {
	work chan func()
	once sync.Once
}

func newStarter() *starter {
	s := &starter{work: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for f := range s.work {
			f()
		}
	}()
	return s
}

func (s *starter) stop() { s.once.Do(func() { close(s.work) }) }

func (s *starter) start(cmd *exec.Cmd) error {
	res := make(chan error, 1)
	s.work <- func() { res <- cmd.Start() }
	return <-res
}

// environ returns the environment of the lab's processes. From the caller it has only the variables that programs
// need to run.
func (l *Lab) environ(more ...string) []string {
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + l.Dir, "LANG=C.UTF-8", "USER=root",
		"PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1", Mark + "=" + l.Dir,
	}
	return append(env, more...)
}

// spawn starts a process of the lab and returns once it runs.
func (l *Lab) spawn(s spec) (*Process, error) {
	p := &Process{Name: s.name, Log: filepath.Join(l.Dir, "log", s.name+".log"), done: make(chan struct{})}
	out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the log of %s: %w", s.name, err)
	}
	defer out.Close()
	p.cmd = exec.Command(s.argv[0], s.argv[1:]...)
	p.cmd.Env = l.environ(s.env...)
	p.cmd.Dir = s.dir
	if s.dir == "" {
		p.cmd.Dir = l.Dir
	}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if s.ownPIDs {
		p.cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID
	}
	if err := l.starter.start(p.cmd); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", s.name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// run executes a command of the lab and returns its output. An error contains the end of the output.
func (l *Lab) run(ctx context.Context, argv ...string) (string, error) {
	return l.runInput(ctx, "", argv...)
}

func (l *Lab) runInput(ctx context.Context, stdin string, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = l.environ()
	cmd.Dir = l.Dir
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("cannot run %s: %w\n%s", strings.Join(argv, " "), err, tail(out.Bytes(), 4000))
	}
	return out.String(), nil
}

// await calls ready until it returns nil. It fails when ctx ends or when one of the processes ends.
func await(ctx context.Context, what string, ready func(context.Context) error, needs ...*Process) error {
	var last error
	for {
		if last = ready(ctx); last == nil {
			return nil
		}
		for _, p := range needs {
			select {
			case <-p.done:
				return fmt.Errorf("cannot start %s: %s ended: %w\n%s", what, p.Name, cmpErr(p.err), p.tail(6000))
			default:
			}
		}
		select {
		case <-ctx.Done():
			var b strings.Builder
			for _, p := range needs {
				fmt.Fprintf(&b, "\n%s:\n%s", p.Log, p.tail(6000))
			}
			return fmt.Errorf("cannot start %s in time: %w%s", what, last, b.String())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func cmpErr(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// tail returns the last n bytes of the process's log.
func (p *Process) tail(n int) string {
	b, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	return tail(b, n)
}

func tail(b []byte, n int) string {
	if len(b) > n {
		b = b[len(b)-n:]
	}
	return string(b)
}

// Marked returns the processes that have the mark of the lab in dir, except the calling one.
func Marked(dir string) []int {
	want := []byte("\x00" + Mark + "=" + dir + "\x00")
	names, _ := filepath.Glob("/proc/[0-9]*/environ")
	var pids []int
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(append([]byte{0}, b...), want) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}
