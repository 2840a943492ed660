package iptables_test

import (
	"testing"

	"github.com/brine-salt/brine/states/iptables"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, iptables.Module) }
