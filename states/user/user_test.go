package user_test

import (
	"testing"

	"github.com/brine-salt/brine/states/statestest"
	"github.com/brine-salt/brine/states/user"
)

func TestModule(t *testing.T) { statestest.Run(t, user.Module) }
