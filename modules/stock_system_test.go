//go:build interop

package modules_test

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/cron"
	"github.com/brine-salt/brine/modules/groupadd"
	"github.com/brine-salt/brine/modules/linux_shadow"
	"github.com/brine-salt/brine/modules/mount"
	"github.com/brine-salt/brine/modules/useradd"
)

// systemModules are the modules about the machine itself: accounts, devices, mounts, network, kernel.
func systemModules() []*modules.Module {
	return []*modules.Module{
		cron.Module, groupadd.Module, linux_shadow.Module, mount.Module, useradd.Module,
	}
}
