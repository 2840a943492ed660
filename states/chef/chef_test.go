package chef_test

import (
	"testing"

	"github.com/brine-salt/brine/states/chef"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, chef.Module) }
