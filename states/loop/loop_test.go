package loop_test

import (
	"testing"

	"github.com/brine-salt/brine/states/loop"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, loop.Module) }
