// Command trove-minion is a Salt minion that is also the guest agent of OpenStack Trove. By the name it is called by it is salt-minion
// or salt-call. As trove-minion it takes the program as its first word, and is salt-minion without one.
package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/minion/program"
	_ "github.com/brine-salt/brine/modules/beacons"
	_ "github.com/brine-salt/brine/modules/configmod"
	_ "github.com/brine-salt/brine/modules/cpmod"
	_ "github.com/brine-salt/brine/modules/debianservice"
	_ "github.com/brine-salt/brine/modules/disk"
	_ "github.com/brine-salt/brine/modules/event"
	_ "github.com/brine-salt/brine/modules/file"
	_ "github.com/brine-salt/brine/modules/grainsmod"
	_ "github.com/brine-salt/brine/modules/matchmod"
	_ "github.com/brine-salt/brine/modules/mount"
	_ "github.com/brine-salt/brine/modules/saltutil"
	_ "github.com/brine-salt/brine/modules/status"
	_ "github.com/brine-salt/brine/modules/sysmod"
	_ "github.com/brine-salt/brine/modules/systemdservice"
	_ "github.com/brine-salt/brine/modules/test"
	"github.com/brine-salt/brine/openstack/trove"
)

func main() {
	name, args := filepath.Base(os.Args[0]), os.Args[1:]
	if name != "salt-minion" && name != "salt-call" {
		name = "minion"
		if len(args) > 0 && (args[0] == "minion" || args[0] == "call") {
			name, args = args[0], args[1:]
		}
	}
	run := program.Minion
	if strings.TrimPrefix(name, "salt-") == "call" {
		run = program.Call
	}
	os.Exit(run(context.Background(), args, program.Options{NoDefaultMaster: true}))
}

// The package registers its module and its beacon.
var _ = trove.Module
