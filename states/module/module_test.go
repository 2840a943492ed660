package module_test

import (
	"testing"

	"github.com/brine-salt/brine/states/module"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, module.Module) }
