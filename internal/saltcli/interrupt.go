package saltcli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// graceOnSignal is how long a program may take to end after a signal. A read from the terminal never ends.
const graceOnSignal = 2 * time.Second

// Interruptible runs f and returns its exit code, and prints its error. SIGINT (Ctrl-c) and SIGTERM end f's context; the
// exit code is then 0, or 1 with --hard-crash, and after SIGINT the program prints Salt's words with what more returns
// (salt/scripts.py: _handle_signals). more may be nil. A second signal ends the program at once.
func (p *Program) Interruptible(ctx context.Context, f func(context.Context) (int, error), more func() string) int {
	signals := make(chan os.Signal, 1)
	for _, sig := range [...]os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(sig) { // as nohup, and shells for what runs in the background, have it
			signal.Notify(signals, sig)
		}
	}
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type ended struct {
		code int
		err  error
	}
	done := make(chan ended, 1)
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
	cancel()
	text := ""
	select {
	case <-done:
		if more != nil {
			text = more()
		}
	case <-time.After(graceOnSignal):
	}
	hard := p.Values.Bool("hard_crash")
	switch {
	case sig == os.Interrupt:
		fmt.Fprint(p.Err, "\nExiting gracefully on Ctrl-c\n"+text)
	case hard:
		fmt.Fprint(p.Err, "\nExiting with hard crash on Ctrl-c\n")
	}
	if hard {
		return ExitGeneric
	}
	return 0
}
