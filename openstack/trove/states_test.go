package trove

import (
	"testing"

	"github.com/brine-salt/brine/states"
	"github.com/brine-salt/brine/states/statestest"
)

func TestStates(t *testing.T) {
	for _, m := range []*states.Module{DatabaseState, UserState} {
		t.Run(m.Name, func(t *testing.T) { statestest.Run(t, m) })
	}
}
