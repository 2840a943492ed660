package stateconf_test

import (
	"testing"

	"github.com/brine-salt/brine/states/stateconf"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, stateconf.Module) }
