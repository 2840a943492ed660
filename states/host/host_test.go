package host_test

import (
	"testing"

	"github.com/brine-salt/brine/states/host"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, host.Module) }
