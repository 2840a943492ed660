package beacon

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Limits of the beacon sh: traced shells, programs per shell between two runs, and bytes of a line.
const (
	maxTraces     = 64
	maxTraceCalls = 1000
	maxTraceLine  = 16 << 10
)

// traces is the key in Memory of the traces of the beacon sh.
const traces = "sh.traces"

// shell reports every program that a shell starts (salt/beacons/sh.py). strace traces each shell while it exists and
// the beacon is on.
var shell = Kind{Name: "sh", Available: func(h *Host) bool { return h.Which("strace") != "" }, Validate: func(_ *Host, config any) (bool, string) {
	if _, bad := mustList("sh", config); bad != "" {
		return false, bad
	}
	return true, valid
}, Look: lookShells, Close: func(h *Host, _ []any) {
	running, _ := h.Memory[traces].(map[string]*trace)
	// Stop all of them first, then wait for all.
	for _, t := range running {
		t.end()
	}
	for _, t := range running {
		<-t.done
	}
	delete(h.Memory, traces)
}}

// lookShells starts to trace new shells and reports what all shells have started.
func lookShells(ctx context.Context, h *Host, _ []any) ([]map[string]any, error) {
	running, _ := h.Memory[traces].(map[string]*trace)
	if running == nil {
		running = map[string]*trace{}
		h.Memory[traces] = running
	}
	users, err := shellsOf(ctx, h)
	if err != nil {
		return nil, err
	}
	full := false
	for _, pid := range slices.Sorted(maps.Keys(users)) {
		switch {
		case running[pid] != nil:
		// The limit is on processes of strace.
		case len(running) == maxTraces:
			full = true
		default:
			running[pid] = startTrace(ctx, h, pid, users[pid])
		}
	}
	if full {
		h.Logger().Warn("There are more shells than the beacon sh traces", "limit", maxTraces)
	}
	var found []map[string]any
	for _, pid := range slices.Sorted(maps.Keys(running)) {
		t := running[pid]
		over := false
		select {
		case <-t.done:
			over = true
		default:
		}
		calls, lost := t.takeCalls()
		if lost > 0 {
			h.Logger().Warn("A shell starts programs faster than the beacon sh reports them", "pid", pid, "lost", lost)
		}
		for _, c := range calls {
			c["tag"], c["user"] = pid, t.user
			found = append(found, c)
		}
		if _, alive := users[pid]; over && !alive { // a shell that cannot be traced is not tried again
			delete(running, pid)
		}
	}
	return found, nil
}

// shellsOf returns the processes that are shells, with their users.
func shellsOf(ctx context.Context, h *Host) (map[string]any, error) {
	list, err := h.Exec(ctx, "cmd.shells", nil, nil)
	if err != nil {
		return nil, err
	}
	all, err := h.Exec(ctx, "status.procs", nil, nil)
	if err != nil {
		return nil, err
	}
	shells, _ := list.([]any)
	procs, _ := all.(map[string]any)
	users := map[string]any{}
	for pid, v := range procs {
		proc, _ := v.(map[string]any)
		// The name of a login shell begins with a hyphen. As in Salt, the command must be part of a shell's path.
		cmd := strings.TrimLeft(pytext.Str(proc["cmd"]), "-")
		if cmd != "" && slices.ContainsFunc(shells, func(s any) bool { return strings.Contains(pytext.Str(s), cmd) }) {
			users[pid] = proc["user"]
		}
	}
	return users, nil
}

// A trace is a running strace.
type trace struct {
	user any
	end  context.CancelFunc
	done chan struct{} // closed when strace has ended

	mu    sync.Mutex // guards the fields below
	rest  []byte     // of an incomplete line
	skip  bool       // the line is too long
	calls []map[string]any
	lost  int
}

// startTrace traces a process with strace. The trace ends with the process or with the beacon.
func startTrace(ctx context.Context, h *Host, pid string, user any) *trace {
	t := &trace{user: user, done: make(chan struct{})}
	ctx, t.end = context.WithCancel(ctx)
	log := h.Logger().With("pid", pid)
	go func() {
		defer close(t.done)
		defer t.end()
		// The grace period lets strace detach from the shell.
		res, err := h.Cmd(ctx, modules.Command{Args: []string{"strace", "-f", "-e", "execve", "-p", pid}, Stderr: t, Grace: 5 * time.Second})
		if ctx.Err() == nil && (err != nil || res.ExitCode != 0) {
			log.Warn("Cannot trace a shell", "err", err, "exit", res.ExitCode)
		}
	}()
	return t
}

// Write parses the output of strace.
func (t *trace) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for rest := b; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		rest = after
		// A line that is too long is skipped up to its end.
		if t.skip = t.skip || len(t.rest)+len(line) > maxTraceLine; t.skip {
			t.rest = nil
		} else {
			t.rest = append(t.rest, line...)
		}
		if !whole {
			break
		}
		if call := execve(string(t.rest)); call != nil {
			if len(t.calls) == maxTraceCalls {
				t.lost++
			} else {
				t.calls = append(t.calls, call)
			}
		}
		t.rest, t.skip = t.rest[:0], false
	}
	return len(b), nil
}

// takeCalls returns the programs since the previous call, and how many were lost.
func (t *trace) takeCalls() ([]map[string]any, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	calls, lost := t.calls, t.lost
	t.calls, t.lost = nil, 0
	return calls, lost
}

// execve parses a line of strace as Salt does: the quoted strings are the program and its arguments. It returns nil
// for other lines.
func execve(line string) map[string]any {
	_, after, ok := strings.Cut(line, "execve")
	if !ok {
		return nil
	}
	after, _, _ = strings.Cut(after, "execve")
	call, args := map[string]any{}, []any{}
	for i, field := range strings.Split(after, `"`) {
		switch {
		case i == 1:
			call["cmd"] = field
		case i%2 != 0:
			args = append(args, field)
		}
	}
	call["args"] = args
	return call
}
