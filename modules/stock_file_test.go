//go:build interop

package modules_test

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/file"
)

// fileModules are the modules about files and what is in them.
func fileModules() []*modules.Module { return []*modules.Module{file.Module} }
