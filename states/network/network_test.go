package network_test

import (
	"testing"

	"github.com/brine-salt/brine/states/network"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, network.Module) }
