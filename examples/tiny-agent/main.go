// Command tiny-agent is a Salt minion with four modules, one of them its own.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/config"
	_ "github.com/brine-salt/brine/modules/saltutil"
	_ "github.com/brine-salt/brine/modules/sysmod"
	_ "github.com/brine-salt/brine/modules/test"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/zeromq"

	_ "example.org/tiny-agent/greet"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		slog.Error(err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: tiny-agent FILE, the configuration of the minion")
	}
	if _, err := os.Stat(args[0]); err != nil { // without it the minion would have Salt's defaults
		return err
	}
	opts, err := config.Load(args[0], nil)
	if err != nil {
		return err
	}
	m, err := minion.New(minion.Options{
		Opts: opts, Log: slog.Default(), Dialers: map[string]transport.Dialer{"zeromq": zeromq.New()},
	})
	if err != nil {
		return err
	}
	return m.Run(ctx)
}
