// Package daemon does what every Unix daemon needs: a pid file, notifications of the supervisor, signals, and leaving
// the terminal.
//
// TERM and INT end the program, HUP reloads, and USR1 (INFO on BSD) dumps the stacks of all goroutines. Stock ends on
// HUP.
package daemon

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"sync"
)

// Options of [Run]. The zero value runs without a pid file.
type Options struct {
	// PIDFile is written by [Notifier.Started] and removed after the work; "" means no file. If it cannot be written,
	// the error is logged and the work continues: a full disk must not stop a daemon from serving.
	PIDFile string
	// Detached is set in the process that [Background] started. [Notifier.Started] then lets the starting process end.
	Detached bool
	// Reload is called on HUP; Dump on USR1 with the stacks of all goroutines. nil ignores the signal.
	Reload func()
	Dump   func(stacks []byte)
	// Notify is the supervisor's socket (NOTIFY_SOCKET), Watchdog the interval at which it expects a message
	// (WATCHDOG_USEC).
	Notify, Watchdog string
	// Again reports whether the program starts again in this process after the work's error ([Again]). The supervisor
	// then does not learn that the program stops: systemd would kill it when the time for stopping is over. nil means
	// that it never does.
	Again func(error) bool
	// Log receives, with Name, the signal that ends the program; nil means no log.
	Log  *slog.Logger
	Name string
}

// Run runs work until it returns or a signal ends its context.
func Run(ctx context.Context, o Options, work func(ctx context.Context, n *Notifier) error) error {
	LimitMemory()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end := make(chan os.Signal, 1)
	signal.Notify(end, endSignals()...)
	defer signal.Stop(end)
	n := newNotifier(o.Notify)
	defer n.Close()
	n.started = sync.OnceFunc(func() { o.started(n) })
	defer func() {
		if n.wrotePID.Load() {
			removePID(o.PIDFile)
		}
	}()
	done := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		serveSignals(o, end, cancel, done)
	}()
	watched := n.watch(o.Watchdog, done)
	err := work(ctx, n)
	if o.Again == nil || !o.Again(err) {
		n.send("STOPPING=1")
	}
	close(done)
	<-finished
	<-watched
	return err
}

// started writes the pid file and lets the process that started the background process end.
func (o Options) started(n *Notifier) {
	if o.PIDFile != "" {
		if err := writePID(o.PIDFile); err == nil {
			n.wrotePID.Store(true)
		} else if o.Log != nil {
			// guard: unwritable-pid-file TestRunWithoutPIDFile instead: panic(err)
			o.Log.Error(err.Error())
		}
	}
	if o.Detached {
		if err := leaveTerminal(); err != nil && o.Log != nil {
			o.Log.Error("Cannot leave the terminal: " + err.Error())
		}
	}
}

func serveSignals(o Options, end <-chan os.Signal, cancel context.CancelFunc, done <-chan struct{}) {
	reload, dump := make(chan os.Signal, 1), make(chan os.Signal, 1)
	notifyExtra(reload, dump)
	defer signal.Stop(reload)
	defer signal.Stop(dump)
	for {
		select {
		case <-done:
			return
		case sig := <-end:
			if o.Log != nil {
				name := "SIGTERM"
				if sig == os.Interrupt {
					name = "SIGINT"
				}
				o.Log.Warn(o.Name + " received a " + name + ". Exiting.")
			}
			cancel()
		case <-reload:
			if o.Reload != nil {
				o.Reload()
			}
		case <-dump:
			if o.Dump != nil {
				o.Dump(stacks())
			}
		}
	}
}

// maxStacks limits the size of a dump in bytes.
const maxStacks = 8 << 20

func stacks() []byte {
	for size := 64 << 10; ; size *= 2 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size || size >= maxStacks {
			return buf[:n]
		}
	}
}
