package pip_state_test

import (
	"testing"

	"github.com/brine-salt/brine/states/pip_state"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, pip_state.Module) }
