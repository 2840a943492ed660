//go:build interop && !linux

package modules_test

import (
	"testing"

	"github.com/brine-salt/brine/modules"
)

func serverModules() []*modules.Module { return nil }

type servers struct{ t *testing.T }

func (*servers) fill(*stockCase) {}
