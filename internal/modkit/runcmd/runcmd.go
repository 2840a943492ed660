// Package runcmd runs programs for execution modules: each in its own session, as another user if requested, with
// limits on the run time, on the stored output and on the number of programs that run at once. When it stops a
// program it also stops all processes that the program started. The exception are proper daemons: those that have
// their own session and whose parent has ended.
//
// It does not interpret commands: no splitting, no quoting, no expansion. Salt's counterpart is
// salt/utils/timed_subprocess.py and the second half of _run in salt/modules/cmdmod.py.
package runcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/brine-salt/brine/internal/descriptors"
	"github.com/brine-salt/brine/internal/memlimit"
	"github.com/brine-salt/brine/modules"
)

const (
	// DefaultLimit is the number of bytes of each output stream that are stored if the command sets no limit. It is
	// lower if the process has a low memory limit.
	DefaultLimit = 16 << 20
	// DefaultTotal limits the stored output of all running programs together, so that many jobs with much output
	// cannot fill the memory. Output beyond it is dropped, like output beyond the program's own limit.
	DefaultTotal = 64 << 20
	// limitPart and totalPart reduce both to one 16th and one quarter of the process's memory limit.
	limitPart, totalPart = 16, 4
	// DefaultMax is how many programs run at once before further ones wait. It is lower if the process may open few
	// files.
	DefaultMax = 256
	// MinLimit is the lowest that a memory limit can make those limits.
	MinLimit = 1 << 20
	// pipeGrace is how long output is still collected after the program's end if another process holds the pipe open.
	pipeGrace = 700 * time.Millisecond
	// killGrace bounds the wait for a killed program.
	killGrace = 1500 * time.Millisecond
	// maxDrains is how many left-over pipes are kept open and drained. Daemons that kept a job's standard output would
	// die of SIGPIPE otherwise. Beyond it, the oldest pipe is closed.
	maxDrains = 32
)

// Runner runs programs. The zero value is ready. It is safe for concurrent use.
//
// A Runner tracks the programs that it runs. With one Runner per job ([Runner.Sub]) a job's programs can be
// signalled.
type Runner struct {
	// Max is how many programs may run at once; 0 means DefaultMax. Detached programs do not count.
	Max int
	// Permit returns an error if the program with an absolute path must not be started. If Permit is nil, any program
	// may.
	Permit func(path string) error
	// Total limits the output of all running programs together; 0 means DefaultTotal.
	Total int64

	once   sync.Once
	shared *shared

	starts  sync.RWMutex // held for reading while a program starts, until it is in running
	mu      sync.Mutex
	running map[int]*process // guarded by mu; by pid
}

// shared is the state that a runner shares with its subs.
type shared struct {
	slots chan struct{}
	total int64
	held  atomic.Int64 // bytes of output that are stored for running programs

	mu     sync.Mutex
	drains []*stream // guarded by mu
}

var _ modules.Runner = (*Runner)(nil)

func (r *Runner) init() {
	r.once.Do(func() {
		if r.shared == nil {
			n := r.Max
			if n <= 0 {
				n = Places(DefaultMax)
			}
			total := r.Total
			if total <= 0 {
				total = share(DefaultTotal, totalPart)
			}
			r.shared = &shared{slots: make(chan struct{}, n), total: total}
		}
		r.running = map[int]*process{}
	})
}

// share limits a number of bytes to 1/n of the process's memory limit. A program's output is copied several times on
// its way to the master.
func share(bytes, n int64) int64 {
	// guard: small-memory TestOutputIsAShareOfMemory instead: return bytes
	return min(bytes, max(memlimit.Limit()/n, MinLimit))
}

// keptDescriptors are reserved for the rest of the process. placeDescriptors is what one program needs: pipes, files,
// and descriptors that are open for a short time.
const (
	keptDescriptors  = 24
	placeDescriptors = 8
)

// Places returns how many of the wanted programs can run at once within this process's limit of file descriptors.
func Places(wanted int) int { return places(wanted, descriptors.Limit()) }

func places(wanted, descriptors int) int {
	// guard: few-descriptors TestPlaces instead: return wanted
	return max(min(wanted, (descriptors-keptDescriptors)/placeDescriptors), 1)
}

// Sub returns a Runner with its own list of running programs that shares the limits of r. Each job gets one.
func (r *Runner) Sub() *Runner {
	r.init()
	return &Runner{Max: r.Max, Permit: r.Permit, Total: r.Total, shared: r.shared}
}

// PIDs returns the process ids of the running programs, sorted, without their descendants.
func (r *Runner) PIDs() []int {
	r.init()
	r.mu.Lock()
	defer r.mu.Unlock()
	pids := make([]int, 0, len(r.running))
	for pid := range r.running {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids
}

// Signal sends a signal to every running program and all its descendants, and returns the number of programs.
func (r *Runner) Signal(sig int) int {
	r.starts.Lock() // a program that starts now is signalled too
	pids := r.PIDs()
	r.starts.Unlock()
	for _, pid := range pids {
		r.mu.Lock()
		p := r.running[pid]
		r.mu.Unlock()
		if p != nil {
			p.signalTree(sig)
		}
	}
	return len(pids)
}

// Run implements [modules.Runner].
func (r *Runner) Run(ctx context.Context, c modules.Command) (modules.CommandResult, error) {
	r.init()
	if !c.Detach {
		select {
		case r.shared.slots <- struct{}{}:
			defer func() { <-r.shared.slots }()
		case <-ctx.Done():
			return modules.CommandResult{}, fmt.Errorf("cannot run %s: %w", name(c), ctx.Err())
		}
	}
	if err := ctx.Err(); err != nil {
		return modules.CommandResult{}, fmt.Errorf("cannot run %s: %w", name(c), err)
	}
	cmd, err := r.prepare(ctx, c)
	if err != nil {
		return modules.CommandResult{}, err
	}
	if c.Detach {
		return r.detach(cmd)
	}
	return r.attend(ctx, c, cmd)
}

// prepare turns the command into one that the operating system can start: with the program's path, the user and the
// environment.
func (r *Runner) prepare(ctx context.Context, c modules.Command) (*exec.Cmd, error) {
	// guard: CVE-2020-28243,CVE-2021-31607 TestCVE_2020_28243_NamesAreArguments instead: argv := shellArgs("/bin/sh", strings.Join(c.Args, " "))
	argv := c.Args
	if c.Shell != "" {
		argv = shellArgs(c.Shell, c.Script)
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil, modules.Errorf("cannot run a command without a program")
	}
	for _, a := range argv {
		if strings.IndexByte(a, 0) >= 0 {
			return nil, &modules.PythonError{Type: "ValueError", Msg: "embedded null byte"}
		}
	}
	who, err := lookup(ctx, c)
	if err != nil {
		return nil, err
	}
	env := environment(ctx, c, who)
	path, err := find(argv[0], env, c.Dir)
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: path, Args: argv, Env: env, Dir: c.Dir}
	if cmd.Dir == "" {
		cmd.Dir = homeDir(who)
	}
	if err := r.permit(cmd); err != nil {
		return nil, err
	}
	if info, err := os.Stat(cmd.Dir); err != nil || !info.IsDir() {
		return nil, modules.Errorf("cannot run %s: %s is not a directory", argv[0], cmd.Dir)
	}
	if err := apply(cmd, c, who); err != nil {
		return nil, err
	}
	return cmd, r.permit(cmd) // apply may have put a shell before the program; check that too
}

// permit returns an error if a program must not be started.
func (r *Runner) permit(cmd *exec.Cmd) error {
	if r.Permit == nil {
		return nil
	}
	path := cmd.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(cmd.Dir, path)
	}
	return r.Permit(path)
}

func name(c modules.Command) string {
	if c.Shell != "" {
		return c.Shell
	}
	if len(c.Args) > 0 {
		return c.Args[0]
	}
	return "a command without a program"
}

// environment returns the inherited environment (unless CleanEnv), then the defaults, then the login environment of
// the user to run as, then the command's settings; later ones win. NOTIFY_SOCKET is for the daemon only and is not
// passed on.
func environment(ctx context.Context, c modules.Command, who *account) []string {
	var env []string
	if !c.CleanEnv {
		for _, kv := range os.Environ() {
			if !strings.HasPrefix(kv, "NOTIFY_SOCKET=") {
				env = append(env, kv)
			}
		}
	}
	env = append(env, c.Defaults...)
	if who != nil {
		env = append(env, loginEnv(ctx, c, who)...)
	}
	env = append(env, c.Env...)
	if who != nil && who.name != "" {
		env = append(env, "USER="+who.name, "HOME="+who.home)
	}
	return lastWins(env)
}

// lastWins keeps the last setting of each name; a bare name removes it.
func lastWins(env []string) []string {
	seen := make(map[string]bool, len(env))
	out := make([]string, 0, len(env))
	for _, kv := range slices.Backward(env) {
		name, _, set := strings.Cut(kv, "=")
		if strings.IndexByte(kv, 0) >= 0 || name == "" || seen[name] {
			continue
		}
		seen[name] = true
		if set {
			out = append(out, kv)
		}
	}
	slices.Reverse(out)
	return out
}

func getenv(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return v
		}
	}
	return ""
}

// process is a program that was started.
type process struct {
	cmd  *exec.Cmd
	tree tree
}

// start starts a program and adds it to the running ones.
func (r *Runner) start(cmd *exec.Cmd) (*process, error) {
	r.starts.RLock()
	defer r.starts.RUnlock()
	p, err := start(cmd)
	if err == nil {
		r.mu.Lock()
		r.running[cmd.Process.Pid] = p
		r.mu.Unlock()
	}
	return p, err
}

func (r *Runner) forget(p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, p.cmd.Process.Pid)
}

func start(cmd *exec.Cmd) (*process, error) {
	err := cmd.Start()
	// A program file that was just written may still be open for writing in a forked child of this process that has
	// not called exec yet.
	for try := 1; textBusy(err) && try <= busyTries; try++ {
		time.Sleep(time.Duration(try) * time.Millisecond)
		*cmd = exec.Cmd{Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr,
			ExtraFiles: cmd.ExtraFiles, SysProcAttr: cmd.SysProcAttr} // an exec.Cmd can be started only once
		err = cmd.Start()
	}
	if err != nil {
		return nil, startError(cmd.Args[0], err)
	}
	p := &process{cmd: cmd}
	p.tree.opened(cmd.Process)
	return p, nil
}

// busyTries is how often the start of a program that is open for writing is retried. The pauses grow, and add up to a
// second.
const busyTries = 45

// StartError reports that a program could not be started.
type StartError struct {
	// Program is the first argument, Err the operating system's error.
	Program string
	Err     error
}

func (e *StartError) Error() string { return "cannot run " + e.Program + ": " + e.Err.Error() }

// Unwrap returns the reason, and also a *modules.MissingCommandError if the program does not exist.
func (e *StartError) Unwrap() []error {
	if errors.Is(e.Err, os.ErrNotExist) {
		return []error{e.Err, &modules.MissingCommandError{Command: e.Program}}
	}
	return []error{e.Err}
}

func startError(program string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return &StartError{Program: program, Err: err}
}

// detach starts the program and returns; a goroutine reaps it later.
func (r *Runner) detach(cmd *exec.Cmd) (modules.CommandResult, error) {
	p, err := r.start(cmd)
	if err != nil {
		return modules.CommandResult{}, err
	}
	pid := cmd.Process.Pid
	go func() {
		_ = cmd.Wait()
		r.forget(p)
		p.tree.closed()
	}()
	return modules.CommandResult{PID: pid}, nil
}

// attend runs the program, collects its output and stops it after its timeout.
func (r *Runner) attend(ctx context.Context, c modules.Command, cmd *exec.Cmd) (modules.CommandResult, error) {
	limit := c.Limit
	if limit <= 0 {
		limit = share(DefaultLimit, limitPart)
	}
	streams, err := connect(r.shared, cmd, c, limit)
	if err != nil {
		return modules.CommandResult{}, err
	}
	in, err := feed(cmd, c.Stdin)
	if err != nil {
		streams.abandon()
		return modules.CommandResult{}, err
	}
	p, err := r.start(cmd)
	streams.started()
	if err != nil {
		in.close()
		streams.abandon()
		return modules.CommandResult{}, err
	}
	in.run(c.Stdin)
	res := modules.CommandResult{PID: cmd.Process.Pid}
	err = r.wait(ctx, c, p, &res)
	in.close()
	streams.finish(r.shared)
	p.tree.closed()
	res.Stdout, res.Stderr, res.Truncated = streams.output()
	return res, err
}

// wait waits for the program's end, the end of ctx or the timeout, whichever comes first.
func (r *Runner) wait(ctx context.Context, c modules.Command, p *process, res *modules.CommandResult) error {
	done := make(chan error, 1)
	go func() {
		err := p.cmd.Wait()
		r.forget(p)
		done <- err
	}()
	var expired <-chan time.Time
	if c.Timeout > 0 {
		t := time.NewTimer(c.Timeout)
		defer t.Stop()
		expired = t.C
	}
	var cause error
	select {
	case <-done:
		res.ExitCode = exitCode(p.cmd.ProcessState)
		return nil
	case <-expired:
		res.TimedOut = true
	case <-ctx.Done():
		cause = fmt.Errorf("cannot finish %s: %w", p.cmd.Args[0], context.Cause(ctx))
	}
	if c.Grace > 0 {
		p.signalTree(int(syscall.SIGTERM))
		t := time.NewTimer(c.Grace)
		defer t.Stop()
		select {
		case <-done:
			res.ExitCode = exitCode(p.cmd.ProcessState)
			p.killTree() // kill remaining descendants, which still have its session
			return cause
		case <-t.C:
		}
	}
	p.killTree()
	t := time.NewTimer(killGrace)
	defer t.Stop()
	select {
	case <-done:
		res.ExitCode = exitCode(p.cmd.ProcessState)
	case <-t.C: // uninterruptible sleep; the goroutine above reaps it later
		res.ExitCode = -9
	}
	return cause
}

// stdin is the pipe to the program's standard input.
type stdin struct {
	r, w *os.File
	done chan struct{}
}

// feed connects the program's standard input to a reader, or to the null device. The program never inherits the
// minion's own input.
func feed(cmd *exec.Cmd, from io.Reader) (*stdin, error) {
	if from == nil {
		return &stdin{}, nil // os/exec opens the null device
	}
	if f, ok := from.(*os.File); ok {
		cmd.Stdin = f
		return &stdin{}, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe for %s: %w", cmd.Args[0], err)
	}
	cmd.Stdin = r
	return &stdin{r: r, w: w}, nil
}

func (s *stdin) run(from io.Reader) {
	if s.w == nil {
		return
	}
	s.r.Close()
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		_, _ = io.Copy(s.w, from) // a program need not read all of its input
		s.w.Close()
	}()
}

// close ends the writing, even if a descendant still holds the pipe and does not read.
func (s *stdin) close() {
	if s.w == nil {
		return
	}
	s.r.Close()
	s.w.Close()
	if s.done == nil {
		return
	}
	select { // from may block; the pipe is closed either way
	case <-s.done:
	case <-time.After(100 * time.Millisecond):
	}
}
