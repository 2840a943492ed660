package beacon_test

import (
	"testing"

	"github.com/brine-salt/brine/states/beacon"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, beacon.Module) }
