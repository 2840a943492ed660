package main

// The modules of the demonstration's minions. A build with the tag "custom" includes these and what orchestration
// needs, so that the demonstration also works in the smallest brine-master.
import (
	_ "github.com/brine-salt/brine/modules/apkpkg"
	_ "github.com/brine-salt/brine/modules/aptpkg"
	_ "github.com/brine-salt/brine/modules/cmdmod"
	_ "github.com/brine-salt/brine/modules/configmod"
	_ "github.com/brine-salt/brine/modules/cpmod"
	_ "github.com/brine-salt/brine/modules/debianservice"
	_ "github.com/brine-salt/brine/modules/file"
	_ "github.com/brine-salt/brine/modules/gentooservice"
	_ "github.com/brine-salt/brine/modules/grainsmod"
	_ "github.com/brine-salt/brine/modules/pacmanpkg"
	_ "github.com/brine-salt/brine/modules/pkgresource"
	_ "github.com/brine-salt/brine/modules/sysmod"
	_ "github.com/brine-salt/brine/modules/systemdservice"
	_ "github.com/brine-salt/brine/modules/test"
	_ "github.com/brine-salt/brine/modules/yumpkg"
	_ "github.com/brine-salt/brine/modules/zypperpkg"
	_ "github.com/brine-salt/brine/states/cmd"
	_ "github.com/brine-salt/brine/states/file"
	_ "github.com/brine-salt/brine/states/pkg"
	_ "github.com/brine-salt/brine/states/render/jinja"
	_ "github.com/brine-salt/brine/states/service"
)
