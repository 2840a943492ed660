package gem_test

import (
	"testing"

	"github.com/brine-salt/brine/states/gem"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, gem.Module) }
