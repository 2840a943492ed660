package environ_test

import (
	"testing"

	"github.com/brine-salt/brine/states/environ"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, environ.Module) }
