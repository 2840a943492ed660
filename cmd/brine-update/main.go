// Command brine-update keeps a host's minion up to date from a repository of signed versions, and restores the old
// version if the new one cannot sign in. docs/update.md describes it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/brine-salt/brine/cmd/internal/update"
	"github.com/brine-salt/brine/internal/saltcli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(update.Main(ctx, os.Args[1:], saltcli.OSConsole()))
}
