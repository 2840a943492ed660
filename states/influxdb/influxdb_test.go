package influxdb

import (
	"testing"

	"github.com/brine-salt/brine/states"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModules(t *testing.T) {
	for _, m := range []*states.Module{Database, User, RetentionPolicy, ContinuousQuery} {
		t.Run(m.Name, func(t *testing.T) { statestest.Run(t, m) })
	}
}
