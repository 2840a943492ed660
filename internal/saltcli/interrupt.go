package saltcli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Interruptible runs f and returns its exit code, and prints its error. After SIGINT (Ctrl-c) or SIGTERM it returns at
// once, as stock's handlers end the program where it is: the exit code is 0, or 1 with --hard-crash, and after SIGINT
// it prints Salt's words with what leave returns (salt/scripts.py: _handle_signals). f still runs then, so the caller
// must end the process. f's context stays as it is, because its end would kill the programs that f runs, such as a
// package manager. leave is called after a signal, while f runs; nil means that there is nothing to do.
func (p *Program) Interruptible(ctx context.Context, f func(context.Context) (int, error),
	leave func() string) int {
	signals := make(chan os.Signal, 1)
	for _, sig := range [...]os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(sig) { // as nohup, and shells for what runs in the background, have it
			signal.Notify(signals, sig)
		}
	}
	defer signal.Stop(signals)
	type ended struct {
		code int
		err  error
	}
	done := make(chan ended, 1)
	stderr := p.Err // f may replace it by that of a meter
	go func() {
		code, err := f(ctx)
		done <- ended{code, err}
	}()
	var sig os.Signal
	select {
	case e := <-done:
		return p.ExitCode(e.code, e.err)
	case sig = <-signals:
	}
	signal.Stop(signals)
	text := ""
	if leave != nil {
		text = leave()
	}
	hard := p.Values.Bool("hard_crash")
	switch {
	case sig == os.Interrupt:
		fmt.Fprint(stderr, "\nExiting gracefully on Ctrl-c\n"+text)
	case hard:
		fmt.Fprint(stderr, "\nExiting with hard crash on Ctrl-c\n")
	}
	if hard {
		return ExitGeneric
	}
	return 0
}
