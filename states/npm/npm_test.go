package npm_test

import (
	"testing"

	"github.com/brine-salt/brine/states/npm"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, npm.Module) }
