package main

import (
	"context"
	"os"

	"golang.org/x/sys/windows/svc"

	"github.com/brine-salt/brine/cmd/internal/winservice"
	"github.com/brine-salt/brine/minion/program"
)

// service is the name of the service and of its source in the event log; it is stock's name.
const service = "salt-minion"

func main() {
	c := program.OSConsole()
	if managed, err := svc.IsWindowsService(); err != nil || !managed {
		os.Exit(run(context.Background(), c, os.Args))
	}
	serve := func(ctx context.Context) int { return run(ctx, c, os.Args) }
	os.Exit(winservice.Serve(service, serve))
}
