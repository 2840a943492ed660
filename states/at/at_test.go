package at_test

import (
	"testing"

	"github.com/brine-salt/brine/states/at"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, at.Module) }
