package event_test

import (
	"testing"

	"github.com/brine-salt/brine/states/event"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, event.Module) }
