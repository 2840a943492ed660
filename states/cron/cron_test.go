package cron_test

import (
	"testing"

	"github.com/brine-salt/brine/states/cron"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, cron.Module) }
