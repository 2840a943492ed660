package grains_test

import (
	"testing"

	"github.com/brine-salt/brine/states/grains"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, grains.Module) }
