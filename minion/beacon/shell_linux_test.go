package beacon

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
)

// strace is a runner that prints a test's output and then waits for the end.
type strace struct {
	output  string
	started chan []string
	ended   chan struct{}
}

func (s strace) Run(ctx context.Context, c modules.Command) (modules.CommandResult, error) {
	if _, err := c.Stderr.Write([]byte(s.output)); err != nil {
		return modules.CommandResult{}, err
	}
	s.started <- c.Args
	<-ctx.Done()
	s.ended <- struct{}{}
	return modules.CommandResult{}, ctx.Err()
}

// shellHost returns a host with one shell among its processes.
func shellHost(t *testing.T, pid string, r modules.Runner) *Host {
	h := fixture(t, nil)
	h.Runner = r
	h.Exec = func(_ context.Context, fun string, _ []any, _ map[string]any) (any, error) {
		if fun == "cmd.shells" {
			return []any{"/bin/sh", "/bin/bash"}, nil
		}
		return map[string]any{pid: map[string]any{"cmd": "-bash", "user": "ada"}, "1": map[string]any{"cmd": "/sbin/init"}, "2": map[string]any{"cmd": ""}}, nil
	}
	return h
}

func TestShells(t *testing.T) {
	s := strace{started: make(chan []string), ended: make(chan struct{}, 1), output: `strace: Process 77 attached
strace: Process 78 attached
[pid    78] execve("/usr/bin/ls", ["ls", "-l", "/tmp"], 0x55d0 /* 20 vars */) = 0
[pid    78] +++ exited with 0 +++
execve("/bin/missing", ["missing"], 0x55d0 /* 20 vars */) = -1 ENOENT (No such file or directory)
execve("` + strings.Repeat("x", maxTraceLine) + `", ["too long"]) = 0
--- SIGCHLD {si_signo=SIGCHLD} ---
`}
	h := shellHost(t, "77", s)
	if found, err := lookShells(t.Context(), h, nil); err != nil || len(found) > 2 {
		t.Fatal(found, err)
	} else if len(found) > 0 {
		t.Log("strace was faster than the look")
	}
	if diff := cmp.Diff([]string{"strace", "-f", "-e", "execve", "-p", "77"}, <-s.started); diff != "" {
		t.Error(diff)
	}
	h.Memory[traces].(map[string]*trace)["77"].calls = nil
	h.Memory[traces].(map[string]*trace)["77"].Write([]byte(s.output[:100]))
	h.Memory[traces].(map[string]*trace)["77"].Write([]byte(s.output[100:]))
	found, err := lookShells(t.Context(), h, nil)
	want := []map[string]any{{"tag": "77", "user": "ada", "cmd": "/usr/bin/ls", "args": []any{"ls", "-l", "/tmp"}},
		{"tag": "77", "user": "ada", "cmd": "/bin/missing", "args": []any{"missing"}}}
	if diff := cmp.Diff(want, found); err != nil || diff != "" {
		t.Error(err, diff)
	}
	shell.Close(h, nil)
	<-s.ended
	if len(h.Memory) != 0 {
		t.Errorf("the beacon keeps %v", h.Memory)
	}
}

// TestShellsAreBounded: a shell that starts programs faster than the beacon reads them uses bounded memory.
func TestShellsAreBounded(t *testing.T) {
	x := &trace{}
	for range maxTraceCalls + 5 {
		if _, err := x.Write([]byte(`execve("/bin/true", ["true"]) = 0` + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if calls, lost := x.takeCalls(); len(calls) != maxTraceCalls || lost != 5 {
		t.Errorf("%d calls kept, %d lost", len(calls), lost)
	}
	if ok, text := shell.Validate(nil, map[string]any{}); ok || text != "Configuration for sh beacon must be a list." {
		t.Errorf("%v %q", ok, text)
	}
	if ok, text := shell.Validate(nil, []any{}); !ok || text != valid {
		t.Errorf("%v %q", ok, text)
	}
}
