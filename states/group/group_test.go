package group_test

import (
	"testing"

	"github.com/brine-salt/brine/states/group"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, group.Module) }
