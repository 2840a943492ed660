package ansiblegate_test

import (
	"testing"

	"github.com/brine-salt/brine/states/ansiblegate"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, ansiblegate.Module) }
