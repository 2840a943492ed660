//go:build unix

package daemon

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// noFollow makes opening a symbolic link fail.
const noFollow = unix.O_NOFOLLOW

// Detach starts a program without a terminal, in a new session, and does not wait for it.
func Detach(program string, args, env []string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	cmd := inSession(program, args, env, null)
	cmd.Stdout, cmd.Stderr = null, null
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// inSession returns a command that runs the program in a new session.
func inSession(program string, args, env []string, null *os.File) *exec.Cmd {
	cmd := exec.Command(program)
	cmd.Args, cmd.Env, cmd.Stdin = args, env, null
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// detachAndWait starts the background process and returns when it has started or ended.
func detachAndWait(program string, args, env []string) (code int, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	cmd := inSession(program, args, env, null)
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	err = cmd.Start()
	w.Close()
	if err != nil {
		return 0, err
	}
	if awaitStart(r) {
		return 0, cmd.Process.Release()
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code, nil
	}
	return 1, nil
}

// leaveTerminal tells the process in awaitStart that the start succeeded, and closes the remaining connections to the
// terminal.
func leaveTerminal() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	_, _ = os.Stdout.WriteString(startedText) // after a restart it has no reader
	for _, fd := range [...]int{1, 2} {
		if err := unix.Dup2(int(null.Fd()), fd); err != nil {
			return err
		}
	}
	return nil
}
