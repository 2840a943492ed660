// Package program contains the programs salt-minion and salt-call: command line, configuration, log, daemon. An
// assembled agent is a main package that imports its modules and calls Minion or Call. Like package standard,
// this package chooses no execution modules.
package program

import (
	"context"
	"io"
	"log/slog"

	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/modules"
)

// Options are the settings of an agent's programs. The zero value is the plain minion.
type Options struct {
	// Console is the program's standard streams and environment; nil means the process's own.
	Console *Console
	// Seal is the text of a seal that is built into the program (docs/sealed.md). If it is set, seal.yaml is not read.
	Seal string
	// NoDefaultMaster runs a minion whose configuration has no option master without a master (master_type:
	// disable), instead of connecting to the host "salt".
	NoDefaultMaster bool
	// MasterHost, if set, returns access to the master on this host. confFile is the minion's configuration
	// file.
	MasterHost func(confFile string, env func(string) string, log *slog.Logger) modules.MasterHost
	// Beside, if set, runs next to the daemon's minion once it is ready, with the minion's configuration. It must
	// return soon after ctx ends. ended is closed when the minion has stopped for another reason; Beside may finish
	// its current work and must then return. It calls idle whenever it has finished some work and waits.
	Beside func(ctx context.Context, m *minion.Minion, opts map[string]any, log *slog.Logger,
		ended <-chan struct{}, idle func())
}

// Console is a terminal or a replacement for one.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) string
	Terminal bool // whether Out is a terminal
	// ErrWidth returns the columns of the terminal Err. It is nil if Err is not a terminal.
	ErrWidth func() int
}

// OSConsole returns the process's own console.
func OSConsole() *Console { return (*Console)(saltcli.OSConsole()) }

func (o Options) console() *saltcli.Console {
	if o.Console == nil {
		return saltcli.OSConsole()
	}
	return (*saltcli.Console)(o.Console)
}
