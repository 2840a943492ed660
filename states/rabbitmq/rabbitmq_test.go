package rabbitmq

import (
	"testing"

	"github.com/brine-salt/brine/states"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModules(t *testing.T) {
	for _, m := range []*states.Module{User, Vhost, Policy, Plugin, Upstream, Cluster} {
		t.Run(m.Name, func(t *testing.T) { statestest.Run(t, m) })
	}
}
