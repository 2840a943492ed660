package runcmd

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/windows"

	"github.com/brine-salt/brine/modules"
)

// account exists on Windows so that the code is shared: commands run as the service's user.
type account struct{ name, home string }

func lookup(_ context.Context, c modules.Command) (*account, error) {
	if c.Group != "" {
		return nil, modules.Usagef("group is not currently available on Windows")
	}
	if c.RunAs != "" {
		return nil, modules.Errorf("cannot run %s as %s: running as another user is not available on Windows", name(c), c.RunAs)
	}
	return nil, nil
}

func homeDir(*account) string {
	if home, err := os.UserHomeDir(); err == nil {
		if info, err := os.Stat(home); err == nil && info.IsDir() {
			return home
		}
	}
	return filepath.VolumeName(os.Getenv("SystemRoot")) + `\`
}

func loginEnv(context.Context, modules.Command, *account) []string { return nil }

func find(program string, _ []string, _ string) (string, error) {
	path, err := exec.LookPath(program)
	if err == nil || errors.Is(err, exec.ErrDot) {
		return path, nil
	}
	return "", &StartError{Program: program, Err: syscall.ERROR_FILE_NOT_FOUND}
}

func shellArgs(shell, script string) []string {
	base := strings.ToLower(filepath.Base(shell))
	if strings.HasPrefix(base, "powershell") || strings.HasPrefix(base, "pwsh") {
		return []string{shell, "-NonInteractive", "-NoProfile", "-ExecutionPolicy", "Bypass", "-Command", script}
	}
	return []string{shell, "/c", script}
}

func apply(cmd *exec.Cmd, c modules.Command, _ *account) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
	if base := strings.ToLower(filepath.Base(c.Shell)); c.Shell != "" && strings.HasPrefix(base, "cmd") {
		// cmd.exe does not parse quoted arguments as other programs do
		cmd.SysProcAttr.CmdLine = syscall.EscapeArg(c.Shell) + ` /s /c "` + c.Script + `"`
	}
	return nil
}

func exitCode(s *os.ProcessState) int {
	if s == nil {
		return -1
	}
	return s.ExitCode()
}

// tree is a job object that contains the program and all processes it starts.
type tree struct{ job windows.Handle }

func (t *tree) opened(p *os.Process) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return
	}
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid))
	if err == nil {
		err = windows.AssignProcessToJobObject(job, h)
		_ = windows.CloseHandle(h)
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return
	}
	t.job = job
}

func (t *tree) closed() {
	if t.job != 0 {
		_ = windows.CloseHandle(t.job)
		t.job = 0
	}
}

// signalTree kills the program and everything it started: Windows has no other signals.
func (p *process) signalTree(int) { p.killTree() }

func (p *process) killTree() {
	if p.tree.job != 0 {
		_ = windows.TerminateJobObject(p.tree.job, 1)
	}
	_ = p.cmd.Process.Kill()
}
