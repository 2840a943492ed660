package virtualenv_mod_test

import (
	"testing"

	"github.com/brine-salt/brine/states/statestest"
	"github.com/brine-salt/brine/states/virtualenv_mod"
)

func TestModule(t *testing.T) { statestest.Run(t, virtualenv_mod.Module) }
