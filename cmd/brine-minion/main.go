// Command brine-minion is the Salt minion. It runs as salt-minion or salt-call, depending on the name it is called
// by. Called as brine-minion, its first argument is the program: "brine-minion call test.ping", "brine-minion minion
// -d".
//
// To build your own agent, copy this file and change the modules it imports.
package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/minion/program"
	_ "github.com/brine-salt/brine/modules/all"
	_ "github.com/brine-salt/brine/modules/returners/all"
	_ "github.com/brine-salt/brine/states/all"
)

const usage = `usage: brine-minion minion [options]                          the minion
       brine-minion call   [options] <function> [arguments]   run a function on this host
       brine-minion check  [options] [CONFIG_DIR | STATE_TREE...]   list what will not work
       brine-minion seal   --check [options] [FILE]           show what a seal allows
       brine-minion doctor [options]                          find out why the minion does not work
       brine-minion verify [options] FILE...                  check the signatures of release files
Called as salt-minion or salt-call, it acts as that program.
`

// exitUsage is the exit code for an invalid command line.
const exitUsage = 64

// run selects and runs the program.
func run(ctx context.Context, c *program.Console, args []string) int {
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	args = args[1:]
	if name != "salt-minion" && name != "salt-call" && len(args) > 0 {
		switch args[0] {
		case "minion", "call":
			name, args = "salt-"+args[0], args[1:]
		case "doctor":
			return program.Doctor(ctx, args[1:], program.Options{Console: c})
		case "seal":
			return program.Seal(args[1:], program.Options{Console: c})
		case "check":
			return program.Check(ctx, args[1:], program.Options{Console: c})
		case "verify":
			return program.Verify(ctx, args[1:], program.Options{Console: c})
		case "--version", "-V", "--versions-report":
			name = "salt-minion"
		case "--help", "-h":
			fmt.Fprint(c.Out, usage)
			return 0
		}
	}
	o := program.Options{Console: c, MasterHost: masterOnHost}
	switch name {
	case "salt-call":
		return program.Call(ctx, args, o)
	case "salt-minion":
		return program.Minion(ctx, args, o)
	}
	fmt.Fprint(c.Err, usage)
	return exitUsage
}
