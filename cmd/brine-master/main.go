// Command brine-master is the Salt master and its command line. It runs as salt-master, salt, salt-key, salt-run or
// salt-cp, depending on the name it is called by. Called as brine-master, its first argument is the program:
// "brine-master salt '*' test.ping". "brine-master demo" shows a master with three minions, and "brine-master audit"
// verifies an audit log of calls.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/saltcli"
)

const usage = `usage: brine-master master [options]                                  the master
       brine-master master [options] --with-parent                    the same, until standard input closes
       brine-master salt   [options] '<target>' <function> [arguments]   run something on minions
       brine-master key    [options]                                  manage minion keys
       brine-master run    [options] <function> [arguments]           run something on the master
       brine-master cp     [options] '<target>' <source> <destination>  copy files to minions
       brine-master check  [options] [CONFIG_DIR]                     list what will not work
       brine-master audit  <file> ...                                 check the chain of an audit_log, oldest file first
       brine-master demo   [--stay]                                   show a master and three minions at work on this host
Called as salt-master, salt, salt-key, salt-run or salt-cp, it acts as that program.
`

func main() {
	os.Exit(run(context.Background(), saltcli.OSConsole(), os.Args))
}

// run selects and runs the program.
func run(ctx context.Context, c *saltcli.Console, args []string) int {
	called := strings.TrimSuffix(args[0], ".exe")
	name := filepath.Base(called)
	args = args[1:]
	switch name {
	case "salt-master", "salt", "salt-key", "salt-run", "salt-cp":
	default:
		name = ""
		if len(args) > 0 {
			name, args = args[0], args[1:]
		}
	}
	switch name {
	case "salt-master", "master":
		return runMaster(ctx, c, args)
	case "salt":
		return runSalt(ctx, c, args)
	case "salt-key", "key":
		return runKey(ctx, c, args)
	case "salt-run", "run":
		return runRun(ctx, c, args)
	case "salt-cp", "cp":
		return runCp(ctx, c, args)
	case "check":
		return runCheck(ctx, c, args)
	case "audit":
		return runAudit(c, args)
	case "demo":
		return runDemo(ctx, c, args)
	case "--version", "-V", "--versions-report":
		return runMaster(ctx, c, []string{name})
	case "--help", "-h":
		fmt.Fprint(c.Out, usage)
		return 0
	}
	if filepath.Base(called) == "salt-api" {
		fmt.Fprintln(c.Err, "The master serves the HTTP interface itself if rest_cherrypy is configured: disable the unit salt-api")
		return saltcli.ExitUsage
	}
	fmt.Fprint(c.Err, usage)
	return saltcli.ExitUsage
}
