package modules_test

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/beacons"
	"github.com/brine-salt/brine/modules/cpmod"
	"github.com/brine-salt/brine/modules/data"
	"github.com/brine-salt/brine/modules/defaults"
	"github.com/brine-salt/brine/modules/environ"
	"github.com/brine-salt/brine/modules/event"
	"github.com/brine-salt/brine/modules/hashutil"
	"github.com/brine-salt/brine/modules/jinja"
	"github.com/brine-salt/brine/modules/matchmod"
	"github.com/brine-salt/brine/modules/minemod"
	"github.com/brine-salt/brine/modules/minionmod"
	"github.com/brine-salt/brine/modules/publish"
	"github.com/brine-salt/brine/modules/random"
	"github.com/brine-salt/brine/modules/ret"
	"github.com/brine-salt/brine/modules/saltutil"
	"github.com/brine-salt/brine/modules/schedule"
	"github.com/brine-salt/brine/modules/sdb"
	"github.com/brine-salt/brine/modules/slsutil"
	"github.com/brine-salt/brine/modules/status"
)

// agentModules are the modules that ask the minion and its master rather than the host.
func agentModules() []*modules.Module {
	return []*modules.Module{beacons.Module, minionmod.Module, publish.Module, ret.Module, schedule.Module, sdb.Module, cpmod.Module, data.Module, defaults.Module, environ.Module, event.Module, hashutil.Module, jinja.Module, matchmod.Module, minemod.Module, random.Module, saltutil.Module, slsutil.Module, status.Module}
}
