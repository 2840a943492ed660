//go:build !windows

package main

import (
	"context"
	"os"

	"github.com/brine-salt/brine/minion/program"
)

func main() {
	os.Exit(run(context.Background(), program.OSConsole(), os.Args))
}
