package ssh_known_hosts_test

import (
	"testing"

	"github.com/brine-salt/brine/states/ssh_known_hosts"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, ssh_known_hosts.Module) }
