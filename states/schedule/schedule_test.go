package schedule_test

import (
	"testing"

	"github.com/brine-salt/brine/states/schedule"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, schedule.Module) }
