package ssh_auth_test

import (
	"testing"

	"github.com/brine-salt/brine/states/ssh_auth"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, ssh_auth.Module) }
