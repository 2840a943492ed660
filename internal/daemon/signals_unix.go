//go:build unix

package daemon

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func endSignals() []os.Signal { return []os.Signal{syscall.SIGTERM, syscall.SIGINT} }

func notifyExtra(reload, dump chan os.Signal) {
	signal.Notify(reload, syscall.SIGHUP)
	signal.Notify(dump, dumpSignal)
}

// Detach starts the program again without a terminal, in a new session. The caller ends afterwards.
func Detach(program string, args, env []string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	cmd := exec.Command(program)
	cmd.Args, cmd.Env = args, env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = null, null, null
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}
