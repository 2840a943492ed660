//go:build interop

package modules_test

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/aptpkg"
	"github.com/brine-salt/brine/modules/dpkglowpkg"
	"github.com/brine-salt/brine/modules/pkgresource"
)

// pkgModules are the modules of packages, services and applications.
func pkgModules() []*modules.Module {
	return []*modules.Module{aptpkg.Module, dpkglowpkg.Module, pkgresource.Module}
}
