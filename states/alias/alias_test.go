package alias_test

import (
	"testing"

	"github.com/brine-salt/brine/states/alias"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, alias.Module) }
