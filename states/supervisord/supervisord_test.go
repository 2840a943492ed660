package supervisord_test

import (
	"testing"

	"github.com/brine-salt/brine/states/statestest"
	"github.com/brine-salt/brine/states/supervisord"
)

func TestModule(t *testing.T) { statestest.Run(t, supervisord.Module) }
