package modules_test

import (
	"slices"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/cmdmod"
	"github.com/brine-salt/brine/modules/configmod"
	"github.com/brine-salt/brine/modules/grainsmod"
	"github.com/brine-salt/brine/modules/logmod"
	"github.com/brine-salt/brine/modules/pillarmod"
	"github.com/brine-salt/brine/modules/sysmod"
	"github.com/brine-salt/brine/modules/test"
)

// stockModules are the modules that are compared with stock Salt.
func stockModules() []*modules.Module {
	list := slices.Concat(agentModules(), systemModules(), pkgModules(), fileModules(), serverModules())
	return append(list, cmdmod.Module, configmod.Module, grainsmod.Module, logmod.Module, pillarmod.Module, sysmod.Module, test.Module)
}
