// Package runcmd runs programs for execution modules: in a session of their own, as another user if asked, with a limit on
// time, on the output that is kept and on how many run at once. When a program is stopped, everything that it started is
// stopped with it, except daemons that took leave properly (a session of their own and no living parent).
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
	// DefaultLimit is the number of bytes of each output stream that are stored if the command sets no limit;
	// fewer if the process may have little memory.
	DefaultLimit = 16 << 20
	// DefaultTotal is how many bytes of output all running programs together may have waiting, so that no number of talkative
	// jobs fills the memory. What a program may not keep is dropped, as beyond its own limit.
	DefaultTotal = 64 << 20
	// limitPart and totalPart limit both further, to one part in 16 and 4 of the memory that the process may
	// have.
	limitPart, totalPart = 16, 4
	// DefaultMax is how many programs run at once before further ones wait; fewer where the process may open few files.
	DefaultMax = 256
	// MinLimit is the number of bytes that are kept of each output stream, however little memory there is.
	MinLimit = 1 << 20
	// pipeGrace is how long output is still collected after the program ended but something that it left behind holds the
	// pipe open.
	pipeGrace = 700 * time.Millisecond
	// killGrace bounds the wait for a killed program.
	killGrace = 1500 * time.Millisecond
	// maxDrains is how many left-over pipes are kept open and emptied, so that daemons which kept a job's standard output
	// do not die of SIGPIPE when they write. The oldest is closed when there are more.
	maxDrains = 32
)

// Runner runs programs. The zero value is ready. It is safe for concurrent use.
//
// A Runner tracks the programs that it runs. With one Runner for each job ([Runner.Sub]), a job's programs can be
// signalled.
type Runner struct {
	// Max is how many programs may run at once, 0 is DefaultMax. Detached programs do not count.
	Max int
	// Permit returns why a program may not be started, by its absolute path, or nil. nil lets every program be started.
	Permit func(path string) error
	// Total bounds the output of all running programs together, 0 is DefaultTotal.
	Total int64

	once   sync.Once
	shared *shared

	starts  sync.RWMutex // held for reading while a program starts, until running has it
	mu      sync.Mutex
	running map[int]*process // guarded by mu; by pid
}

// shared is the state that a runner shares with its subs.
type shared struct {
	slots chan struct{}
	total int64
	held  atomic.Int64 // bytes of output that running programs have waiting

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

// share caps a number of bytes at one part in n of the memory that the process may have: a program's output is copied
// several times on its way to the master.
func share(bytes, n int64) int64 {
	// guard: small-memory TestOutputIsAShareOfMemory instead: return bytes
	return min(bytes, max(memlimit.Limit()/n, MinLimit))
}

// What the places of programs leave of the descriptors, and what each needs: pipes, files, and those that come and go with them.
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

// Sub returns a runner with its own list of running programs and the same limits as r: one for each job.
func (r *Runner) Sub() *Runner {
	r.init()
	return &Runner{Max: r.Max, Permit: r.Permit, Total: r.Total, shared: r.shared}
}

// PIDs returns the process ids of the programs that run now, in ascending order, without their descendants.
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

// Signal sends a signal to every running program and all its descendants and returns how many programs there were.
func (r *Runner) Signal(sig int) int {
	r.starts.Lock() // what starts now is signalled too
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

// prepare turns the command into one the operating system can start: the program found, user and environment set.
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
	return cmd, r.permit(cmd) // apply may have put a shell before the program
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

// environment returns the inherited environment (unless CleanEnv), then the defaults, then the login environment
// of the user to run as, then the settings of the command; later ones win. NOTIFY_SOCKET is systemd's line to the
// daemon and not passed on.
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

// start starts a program and puts it into the list of those that run.
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
	// A program that was written a moment ago may still be open for writing in a child of this process that has been forked but
	// has not yet become another program.
	for try := 1; textBusy(err) && try <= busyTries; try++ {
		time.Sleep(time.Duration(try) * time.Millisecond)
		*cmd = exec.Cmd{Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr,
			ExtraFiles: cmd.ExtraFiles, SysProcAttr: cmd.SysProcAttr} // one is started once only
		err = cmd.Start()
	}
	if err != nil {
		return nil, startError(cmd.Args[0], err)
	}
	p := &process{cmd: cmd}
	p.tree.opened(cmd.Process)
	return p, nil
}

// busyTries is how often a program is tried again that is open for writing, with growing pauses: a second altogether.
const busyTries = 45

// StartError reports that a program could not be started.
type StartError struct {
	// Program is the first argument; Err is the operating system's reason.
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

// detach starts the program and lets it go; it is only reaped.
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

// attend runs the program, collects its output and stops it when its time is over.
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

// wait waits for the end of the program, the end of ctx or the timeout, whichever is first.
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
			p.killTree() // what it started and did not take along; its session still has them
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
	case <-t.C: // in uninterruptible sleep; the goroutine above reaps it when the kernel lets go
		res.ExitCode = -9
	}
	return cause
}

// stdin is the pipe into the program.
type stdin struct {
	r, w *os.File
	done chan struct{}
}

// feed connects the program's standard input: the reader through a pipe, or nothing. The minion's own input is
// never inherited.
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
		_, _ = io.Copy(s.w, from) // a program need not read all of it
		s.w.Close()
	}()
}

// close ends the writing, also when a descendant still holds the pipe and does not read.
func (s *stdin) close() {
	if s.w == nil {
		return
	}
	s.r.Close()
	s.w.Close()
	if s.done == nil {
		return
	}
	select { // a reader that blocks is its owner's; the pipe is closed either way
	case <-s.done:
	case <-time.After(100 * time.Millisecond):
	}
}
