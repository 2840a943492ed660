//go:build chaos && linux

package interop

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

// victim is a program that is killed and started again. All its processes write to one log, whose end is shown if the
// test fails.
type victim struct {
	t    *testing.T
	log  *os.File
	args []string

	mu   sync.Mutex // guards the fields below
	cmd  *exec.Cmd
	done chan struct{}
	over bool // the test has ended, so the program is not started again
}

// startVictim starts a program that ends with the test.
func startVictim(t *testing.T, name string, args ...string) *victim {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	v := &victim{t: t, log: log, args: append([]string{name}, args...)}
	t.Cleanup(func() {
		v.mu.Lock()
		v.over = true
		v.mu.Unlock()
		v.kill()
		if t.Failed() {
			t.Logf("end of the output of %q:\n%s", v.args, tail(log.Name()))
		}
		log.Close()
	})
	v.up()
	return v
}

// up starts the program in a separate process group.
func (v *victim) up() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.over {
		return
	}
	cmd := exec.Command(v.args[0], v.args[1:]...)
	cmd.Stdout, cmd.Stderr = v.log, v.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		v.t.Errorf("cannot start %q: %v", v.args, err)
		return
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	v.cmd, v.done = cmd, done
}

// signal sends a signal to the program, but not to the processes that it started.
func (v *victim) signal(sig syscall.Signal) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.cmd.Process.Signal(sig)
}

// kill kills the program with SIGKILL and waits for its end.
func (v *victim) kill() {
	v.signal(syscall.SIGKILL)
	v.mu.Lock()
	done := v.done
	v.mu.Unlock()
	<-done
}

// again kills the program and starts it again at once.
func (v *victim) again() {
	v.kill()
	v.up()
}
