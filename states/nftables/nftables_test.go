package nftables_test

import (
	"testing"

	"github.com/brine-salt/brine/states/nftables"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, nftables.Module) }
