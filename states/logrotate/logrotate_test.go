package logrotate_test

import (
	"testing"

	"github.com/brine-salt/brine/states/logrotate"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, logrotate.Module) }
