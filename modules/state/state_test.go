package state_test

import (
	"testing"

	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/modules/state"
)

func TestModule(t *testing.T) { modulestest.Run(t, state.Module) }
