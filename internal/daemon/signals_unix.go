//go:build unix

package daemon

import (
	"os"
	"os/signal"
	"syscall"
)

func endSignals() []os.Signal { return []os.Signal{syscall.SIGTERM, syscall.SIGINT} }

func notifyExtra(reload, dump chan os.Signal) {
	signal.Notify(reload, syscall.SIGHUP)
	signal.Notify(dump, dumpSignal)
}
