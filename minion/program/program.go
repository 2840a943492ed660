// Package program holds the programs salt-minion and salt-call: command line, configuration, log, daemon. An assembled
// agent is a main that imports its modules and calls Minion or Call, by the name it was started under. Like package
// standard it chooses no execution modules.
package program

import (
	"context"
	"io"
	"log/slog"

	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/modules"
)

// Options are what an agent changes in the programs. The zero value is the plain minion.
type Options struct {
	// Console is what the program reads from and writes to; nil is the process's own.
	Console *Console
	// Seal is the text of a seal (docs/sealed.md) that is part of the program: the file seal.yaml is then not read.
	// "" is none.
	Seal string
	// NoDefaultMaster keeps a minion whose configuration has no option master from looking for the host salt: it then
	// has no master (master_type: disable).
	NoDefaultMaster bool
	// MasterHost, if set, makes the way to the master on this host, from the path of the minion's configuration file.
	MasterHost func(confFile string, env func(string) string, log *slog.Logger) modules.MasterHost
	// Beside, if set, runs next to the daemon's minion once that is ready, with the minion's configuration. It returns
	// soon after ctx ends. ended is closed when the minion has stopped, for which there are reasons besides ctx: Beside
	// may finish what it is doing, and then returns. It calls idle whenever it has done something and now waits.
	Beside func(ctx context.Context, m *minion.Minion, opts map[string]any, log *slog.Logger,
		ended <-chan struct{}, idle func())
}

// Console is a terminal, or what stands for one.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) string
	Terminal bool // Out is a terminal
	// ErrWidth returns the columns of the terminal that Err is; or nil if it is not a terminal.
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
