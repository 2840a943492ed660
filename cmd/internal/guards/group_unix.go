//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup runs a command in its own process group, so that all its processes end with it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
