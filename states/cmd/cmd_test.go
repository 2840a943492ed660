package cmd_test

import (
	"testing"

	"github.com/brine-salt/brine/states/cmd"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, cmd.Module) }
