// Command trove-minion is a Salt minion that is also the guest agent of OpenStack Trove. Depending on the name it is
// called by, it is salt-minion or salt-call. Called as trove-minion, its first argument is the program; without it,
// it runs as salt-minion.
package main

import (
	"context"
	"os"

	"github.com/brine-salt/brine/minion/program"
	_ "github.com/brine-salt/brine/modules/agent"
	_ "github.com/brine-salt/brine/modules/beacons"
	_ "github.com/brine-salt/brine/modules/configmod"
	_ "github.com/brine-salt/brine/modules/cpmod"
	_ "github.com/brine-salt/brine/modules/debianservice"
	_ "github.com/brine-salt/brine/modules/disk"
	_ "github.com/brine-salt/brine/modules/event"
	_ "github.com/brine-salt/brine/modules/file"
	_ "github.com/brine-salt/brine/modules/fs"
	_ "github.com/brine-salt/brine/modules/grainsmod"
	_ "github.com/brine-salt/brine/modules/logpub"
	_ "github.com/brine-salt/brine/modules/matchmod"
	_ "github.com/brine-salt/brine/modules/mount"
	_ "github.com/brine-salt/brine/modules/saltutil"
	_ "github.com/brine-salt/brine/modules/state"
	_ "github.com/brine-salt/brine/modules/status"
	_ "github.com/brine-salt/brine/modules/sysmod"
	_ "github.com/brine-salt/brine/modules/systemdservice"
	_ "github.com/brine-salt/brine/modules/test"
	_ "github.com/brine-salt/brine/modules/xfs"
	_ "github.com/brine-salt/brine/openstack/trove"
)

func main() {
	os.Exit(program.Main(context.Background(), os.Args, program.Options{NoDefaultMaster: true}))
}
